import * as v from 'valibot'
import { registry, token } from '../../../kernel/plugin.js'
import type { ForkSessionBody } from '../../../schemas/sessions.js'
import type { Workspace } from '../../desk/workspaces/api.js'

export { WorktreeErrors } from './errors.js'

/** A git worktree used by a session. */
export interface SessionWorktree {
  readonly name: string
  /** Canonical. */
  readonly folder: string
  /** Empty: no branch is checked out. */
  readonly branch: string
  /** Git folder of the worktree; absolute. */
  readonly gitDir: string
  /** Working folder of sessions: the workspace's subfolder of its repository. Absent, from an earlier version: `folder`. */
  readonly place?: string
  /** The workspace for which it was made; absent for a worktree that existed before. */
  readonly workspaceId?: string
  /** Submodules that were checked out in it. */
  readonly submodules?: readonly SubmoduleTree[]
  /** Digest of the uncommitted files at the time of its creation; absent: there were none. */
  readonly untouched?: string
}

/** A submodule in a worktree. */
export interface SubmoduleTree {
  /** Relative to the folder of the worktree. */
  readonly path: string
  readonly gitDir: string
  /** ID of the checked-out commit. */
  readonly commit: string
}

/** A worktree that was made, or that existed before. */
export interface WorktreeInUse extends SessionWorktree {
  /** Missing parts of the workspace, one line each. */
  readonly warnings: readonly string[]
  /** Removes a worktree that was made; an existing one stays. Never throws. */
  undo(): Promise<void>
}

/** Worktrees for other plugins. */
export interface SessionWorktrees {
  /**
   * Makes or finds a worktree of a workspace's repository; a new one gets its own branch `svc/<name>`.
   * Throws `workspace_not_found` (404), `worktree_invalid` (400), `worktree_failed` (409).
   */
  of(workspaceId: string, wish: { readonly create: string } | { readonly use: string }): Promise<WorktreeInUse>
  /** Commits all changes in a worktree; returns the ID of its newest commit. Throws `worktree_failed` (409). */
  save(worktree: SessionWorktree, message: string): Promise<string>
  /**
   * Removes an unused worktree and its branch: no changed or new file, except in folders that git ignores, and no commit that is
   * missing in all other branches. Resolves to whether it was removed. Throws `worktree_failed` (409).
   */
  discardUnused(worktree: SessionWorktree): Promise<boolean>
}

export interface WorktreesApi extends SessionWorktrees {
  /** The worktree of a request: an existing one by its name or folder, or a new one. Throws as {@link of} does. */
  requested(
    workspace: Pick<Workspace, 'id' | 'rootDir'>,
    request: Pick<ForkSessionBody, 'worktree' | 'new_worktree'>,
  ): Promise<WorktreeInUse>
}

export const Worktrees = token<WorktreesApi>('worktrees@1')

/** Contributes the sessions that work in worktrees. */
export interface WorktreeUser {
  /** IDs of the sessions of a workspace, ascending, with the names of their worktrees. */
  readonly sessionsOf: (workspaceId: string) => readonly { readonly id: string; readonly worktree: string }[]
}

export const WorktreeUsers = registry<WorktreeUser>('worktrees.users@1', v.looseObject({ sessionsOf: v.function() }))

/** The working folder of sessions in a worktree. */
export const workingFolderOf = ({ place, folder }: SessionWorktree): string => place ?? folder
