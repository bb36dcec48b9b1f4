import { cli, show, throws } from '../../../../kernel/kit/annotations/index.js'
import { ok, type Route } from '../../../../kernel/plugin.js'
import { WorktreeDiffQuery, WorktreeDiffReply, WorktreesReply } from '../../../../schemas/sessions/worktrees.js'
import { REFERENCE_ERRORS } from '../../../desk/workspaces/api.js'
import { SessionErrors } from '../api.js'
import { listWorktrees, worktreeDiff } from '../fork/diff.js'
import type { SessionsService } from '../service.js'
import { route } from './common.js'

const base = '/api/workspaces/{workspace_id}/worktrees'
const inWorkspace = { workspace: 'workspace_id' } as const

/** Routes of git worktrees. */
export const worktreeRoutes: readonly Route<SessionsService>[] = [
  route({
    method: 'GET',
    path: base,
    summary: 'List the git worktrees of a workspace',
    replies: { 200: WorktreesReply },
    with: [
      throws(...REFERENCE_ERRORS),
      cli('worktree list', {
        ...inWorkspace,
        args: [],
        view: show(WorktreesReply, 'worktrees', ['name', 'branch', 'sessions~list', 'folder'], {
          empty: 'no worktrees; make one: svc session fork <session>',
        }),
      }),
    ],
    handle: async (service, { params }) => {
      const { kernel } = service.context
      return ok({ worktrees: await listWorktrees(kernel, await kernel.needs.workspaces.find(params.workspace_id)) })
    },
  }),
  route({
    method: 'GET',
    path: `${base}/{name}/diff`,
    summary: 'Show what changed in a git worktree since it began',
    query: WorktreeDiffQuery,
    replies: { 200: WorktreeDiffReply },
    with: [
      throws(...REFERENCE_ERRORS, SessionErrors.worktree_not_found, SessionErrors.worktree_failed),
      cli('worktree diff', {
        ...inWorkspace,
        args: [{ name: 'name', in: 'path', summary: 'name of a worktree' }],
        view: show(
          WorktreeDiffReply,
          'files',
          ['path', 'status', 'additions', 'deletions', { of: 'patch', below: true, header: 'Changes' }],
          { empty: 'nothing changed' },
        ),
      }),
    ],
    handle: async (service, { params, query }) => {
      const { kernel } = service.context
      const workspace = await kernel.needs.workspaces.find(params.workspace_id)
      return ok(await worktreeDiff(kernel, workspace, params.name, query))
    },
  }),
]
