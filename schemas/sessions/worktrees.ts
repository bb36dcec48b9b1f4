/** Git worktrees of workspaces, and the changes in them. */
import * as v from 'valibot'
import { Integer, queryInteger } from '../kernel/common.js'

export const Worktree = v.object({
  name: v.pipe(v.string(), v.description('name of its folder')),
  folder: v.string(),
  branch: v.optional(v.pipe(v.string(), v.description('absent: a commit is checked out'))),
  sessions: v.pipe(v.array(v.string()), v.description('ids of sessions that work in it')),
})
export type Worktree = v.InferOutput<typeof Worktree>

/** GET /api/workspaces/{workspace_id}/worktrees. */
export const WorktreesReply = v.object({ worktrees: v.array(Worktree) })

/** GET /api/workspaces/{workspace_id}/worktrees/{name}/diff. */
export const WorktreeDiffQuery = v.strictObject({
  limit: v.optional(v.pipe(queryInteger(1, 50), v.description('most files; default: 20'))),
  after: v.optional(
    v.pipe(v.string(), v.maxLength(4096), v.description('path of the last file of the page before: next_after')),
  ),
})
export type WorktreeDiffQuery = v.InferOutput<typeof WorktreeDiffQuery>

export const WorktreeFile = v.object({
  path: v.pipe(v.string(), v.description('relative to the top of the worktree')),
  status: v.picklist(['added', 'modified', 'deleted', 'type_changed']),
  additions: v.optional(v.pipe(Integer, v.description('lines; absent for a file that has none or is too large'))),
  deletions: v.optional(Integer),
  patch: v.optional(
    v.pipe(v.string(), v.description('changes by line, as of git diff; absent: not text, or too large')),
  ),
  truncated: v.pipe(v.boolean(), v.description('the patch ends before the changes do')),
})
export type WorktreeFile = v.InferOutput<typeof WorktreeFile>

export const WorktreeDiffReply = v.object({
  worktree: Worktree,
  base: v.pipe(v.string(), v.description('commit that the files are compared with: where the worktree began')),
  files: v.array(WorktreeFile),
  total: v.pipe(Integer, v.description('changed files, also those of other pages')),
  next_after: v.optional(v.pipe(v.string(), v.description('`after` of the next page; absent on the last one'))),
})
export type WorktreeDiffReply = v.InferOutput<typeof WorktreeDiffReply>
