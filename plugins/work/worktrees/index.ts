import { definePlugin, type Setting } from '../../../kernel/plugin.js'
import { WorktreeErrors, Worktrees, WorktreeUsers } from './api.js'
import { needs } from './needs.js'
import { worktreeRoutes } from './routes.js'
import { WorktreeSettings } from './settings.js'

/** Makes, compares and removes git worktrees of workspaces, in which sessions work. */
export default definePlugin({
  name: 'worktrees',
  version: '0.1.0',
  requires: needs,
  provides: Worktrees,
  service: () => import('./service.js').then(module => module.WorktreesService),
}).surface({
  declares: [WorktreeUsers],
  errors: [WorktreeErrors],
  settings: Object.values(WorktreeSettings) as Setting[],
  routes: worktreeRoutes,
})
