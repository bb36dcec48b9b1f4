/** A git worktree that a session works in. */
export interface SessionWorktree {
  readonly name: string
  /** Canonical. */
  readonly folder: string
  /** Empty: none is checked out. */
  readonly branch: string
  /** Where git keeps what belongs to it; absolute. */
  readonly gitDir: string
  /** Where sessions work in it: the folder that the workspace is in its repository. Absent, from an earlier version: `folder`. */
  readonly place?: string
  /** The workspace that it was made for; absent for one that was there. */
  readonly workspaceId?: string
  /** Submodules that were checked out in it. */
  readonly submodules?: readonly SubmoduleTree[]
  /** Digest of uncommitted files when the worktree was handed out; absent: there were none. */
  readonly untouched?: string
}

/** A submodule in a worktree. */
export interface SubmoduleTree {
  /** Below the folder of the worktree. */
  readonly path: string
  readonly gitDir: string
  /** Id of the commit that was checked out. */
  readonly commit: string
}

/** A worktree that was made, or that was there. */
export interface WorktreeInUse extends SessionWorktree {
  /** Parts of the workspace that the worktree lacks, a line each. */
  readonly warnings: readonly string[]
  /** Nothing is left of one that was made; one that was there stays. Never throws. */
  undo(): Promise<void>
}

/** Worktrees for other plugins. */
export interface SessionWorktrees {
  /**
   * A worktree of the repository of a workspace, on a branch `svc/<name>` of its own where it is new. Throws
   * `workspace_not_found` (404), `worktree_invalid` (400), `worktree_failed` (409).
   */
  of(workspaceId: string, wish: { readonly create: string } | { readonly use: string }): Promise<WorktreeInUse>
  /** Commits what is not committed in a worktree; the id of its newest commit. Throws `worktree_failed` (409). */
  save(worktree: SessionWorktree, message: string): Promise<string>
  /**
   * Removes a worktree and its branch if both are as they were made: no changed or new file, whatever is in folders that git
   * ignores, and no commit that no other branch has. Resolves to whether it is removed. Throws `worktree_failed` (409).
   */
  discardUnused(worktree: SessionWorktree): Promise<boolean>
}
