import { definePlugin, surfaceOf } from '../../../kernel/plugin.js'
import { Extensions, ResourceFamilies, type ResourceFamily } from '../../delivery/extensions/api.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { InboxSources, Sessions } from '../sessions/api.js'
import { NativeTools, ToolAllowances, ToolBackends, ToolErrors, ToolKind, Tools } from './api.js'
import { GRANT_TABLE } from './approvals/grants.js'
import { approvalRoutes } from './approvals/routes.js'
import { ApprovalDecided, ApprovalRequested, ToolCalled } from './events.js'
import { ApprovalErrors } from './faults.js'
import { needs } from './needs.js'
import { ARTIFACT_FOLDER, ARTIFACT_TABLE } from './results/artifacts.js'
import { toolRoutes, toolsetRoutes } from './routes.js'
import type { ToolsService } from './service.js'
import { ToolSettings } from './settings.js'

const { contribute, reconciler, tap } = surfaceOf<ToolsService>()

/** The family that reads tools of extension processes. */
const family: ResourceFamily = {
  name: 'tools',
  kinds: [ToolKind],
  load: async extension => (await import('./shipped.js')).readTools(extension),
}

export default definePlugin({
  name: 'tools',
  version: '0.1.0',
  requires: needs,
  provides: Tools,
  service: () => import('./service.js').then(module => module.ToolsService),
}).surface({
  kinds: [ToolKind],
  declares: [ToolBackends, NativeTools, ToolAllowances],
  errors: [ToolErrors, ApprovalErrors],
  events: [ApprovalRequested, ApprovalDecided, ToolCalled],
  settings: Object.values(ToolSettings),
  tables: [
    { id: '001-grant', sql: GRANT_TABLE },
    { id: '002-artifact', sql: ARTIFACT_TABLE },
  ],
  owned: [
    { by: Workspaces, table: 'tools_grant', column: 'workspace_id' },
    {
      ...{ by: Workspaces, table: 'tools_artifact', column: 'workspace_id' },
      forget: (service, { id }) => service.artifacts.unlink(`${id}`),
    },
  ],
  ofCatalog: [ARTIFACT_FOLDER],
  reconcilers: [reconciler({ kind: ToolKind, run: service => service.renewRecords() })],
  routes: [...toolRoutes, ...approvalRoutes, ...toolsetRoutes],
  commands: [
    {
      path: 'tool call',
      summary: 'Call a tool with a JSON input',
      args: [
        { name: 'id', summary: 'id of a tool' },
        {
          name: 'input',
          optional: true,
          summary: 'JSON such as \'{"limit":5}\', @file, or - for standard input; default: {}',
        },
      ],
      options: [
        { name: 'session', type: 'text', summary: 'id of the session to call it for' },
        { name: 'workspace', type: 'workspace', summary: 'workspace to call it in; default: that of the caller' },
        { name: 'token', type: 'text', summary: 'approval token for this one call' },
      ],
      load: () => import('./commands.js').then(module => ({ run: module.runCall })),
    },
    {
      path: 'tool approve',
      summary: 'Approve or reject a pending tool call',
      args: [{ name: 'approval', summary: 'id of an approval, as in svc tool approvals' }],
      options: [
        { name: 'reject', type: 'boolean', summary: 'reject the call' },
        {
          name: 'remember',
          type: 'text',
          values: ['input', 'agent'],
          summary: 'what to remember: this input, or all calls of the agent',
        },
      ],
      load: () => import('./commands.js').then(module => ({ run: module.runApprove })),
    },
  ],
  taps: [
    tap(
      Extensions,
      extensions => extensions.changed,
      service => names => service.extension.renew(names),
    ),
    tap(
      Sessions,
      sessions => sessions.stopped,
      service => session => service.approvals.endSession(session.id),
    ),
  ],
  hooks: {
    published: service => service.native.renew(),
    running: service => service.artifacts.sweep(),
  },
  registries: [
    contribute(ResourceFamilies, () => [family]),
    contribute(InboxSources, service => [{ read: () => service.asking.inbox() }]),
  ],
})
