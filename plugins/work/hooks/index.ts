import { definePlugin, Settings, surfaceOf } from '../../../kernel/plugin.js'
import { SecretOwners } from '../../access/vault/api.js'
import { ResourceFamilies, type ResourceFamily } from '../../delivery/extensions/api.js'
import { Checks } from '../../desk/daemon/api.js'
import { WorkspaceDeleted } from '../../desk/workspaces/api.js'
import { Sessions } from '../sessions/api.js'
import { HookDeclarers, HookErrors, HookKind, Hooks, HookValues, NativeHooks } from './api.js'
import { needs } from './needs.js'
import { networkTaps } from './points/network.js'
import { optionalPluginTaps } from './points/optional-plugins.js'
import { sessionTaps } from './points/sessions.js'
import { toolValues, workTaps } from './points/work.js'
import { hookRoutes } from './routes.js'
import { RUN_TABLES } from './runs.js'
import type { HooksService } from './service.js'
import { ConfiguredHooks } from './settings.js'

const { contribute, reconciler, tap } = surfaceOf<HooksService>()

/** Reads `[[resources.hooks]]` of extension manifests. */
const family: ResourceFamily = {
  name: 'hooks',
  kinds: [HookKind],
  load: async extension => (await import('./shipped.js')).readHooks(extension),
}

/** Runs programs and functions on events and applies their patches and denials. */
export default definePlugin({
  name: 'hooks',
  version: '0.2.0',
  requires: needs,
  provides: Hooks,
  service: () => import('./service.js').then(module => module.HooksService),
}).surface({
  declares: [NativeHooks, HookDeclarers, HookValues],
  kinds: [HookKind],
  errors: [HookErrors],
  settings: [ConfiguredHooks],
  tables: [{ id: '001-run', sql: RUN_TABLES }],
  owned: [{ by: Sessions, table: 'hooks_run', column: 'session_id' }],
  reconcilers: [reconciler({ kind: HookKind, run: service => service.changed() })],
  registries: [
    contribute(ResourceFamilies, () => [family]),
    contribute(SecretOwners, () => [
      { what: 'workspace', deleted: { event: WorkspaceDeleted.name }, paths: id => [`hooks/ws/${id}`] },
    ]),
    contribute(HookValues, service => [...service.values(), ...toolValues(service)]),
    contribute(Checks, service => [{ id: 'hooks', category: 'hooks', run: () => service.warnings.findings() }]),
  ],
  taps: [
    tap(
      Settings,
      settings => settings.of(ConfiguredHooks),
      service => () => void service.refresh(),
    ),
    ...sessionTaps,
    ...optionalPluginTaps,
    ...workTaps,
    ...networkTaps,
  ],
  routes: hookRoutes,
  commands: [
    {
      path: 'hooks info',
      summary: 'Show a hook with its shadowed sources and coverage',
      args: [{ name: 'name', summary: 'name of the hook' }],
      options: [
        { name: 'workspace', type: 'workspace', summary: 'include the hooks of this workspace (id, name or path)' },
        { name: 'agent', type: 'text', summary: 'include the hooks of this agent' },
      ],
      load: () => import('./commands.js').then(module => ({ run: module.runInfo })),
    },
  ],
  quiesce: [{ phase: 'hooks', run: service => service.quiesce() }],
  // Plugins that start later may contribute hooks.
  services: [{ name: 'warm', run: (service, signal) => service.warm(signal) }],
  hooks: { running: service => service.started(), admit: (service, incoming) => service.nesting.nest(incoming) },
})
