import { cli, describe, show, throws } from '../../../kernel/kit/annotations/index.js'
import { ok, type Route, routeOf } from '../../../kernel/plugin.js'
import { WorktreeDiffQuery, WorktreeDiffReply, WorktreesReply } from '../../../schemas/sessions/worktrees.js'
import { REFERENCE_ERRORS } from '../../desk/workspaces/api.js'
import { listWorktrees, worktreeDiff } from './diff.js'
import { WorktreeErrors } from './errors.js'
import type { WorktreesService } from './service.js'

const route = routeOf<WorktreesService>(describe('Sessions'))
const base = '/api/workspaces/{workspace_id}/worktrees'
const inWorkspace = { workspace: 'workspace_id' } as const

/** Routes of git worktrees. */
export const worktreeRoutes: readonly Route<WorktreesService>[] = [
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
      const { kernel } = service
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
      throws(...REFERENCE_ERRORS, WorktreeErrors.worktree_not_found, WorktreeErrors.worktree_failed),
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
      const { kernel } = service
      const workspace = await kernel.needs.workspaces.find(params.workspace_id)
      return ok(await worktreeDiff(kernel, workspace, params.name, query))
    },
  }),
]
