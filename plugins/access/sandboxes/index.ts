import { definePlugin, surfaceOf } from '../../../kernel/plugin.js'
import { Checks } from '../../desk/daemon/api.js'
import { Sessions } from '../../work/sessions/api.js'
import { Confinement, SandboxErrors } from './api.js'
import { guardTable } from './kept-guards.js'
import { needs } from './needs.js'
import { sandboxRoutes } from './routes.js'
import type { SandboxesService } from './service.js'
import { DefaultSandbox, Sandboxes } from './settings.js'

const { contribute, tap } = surfaceOf<SandboxesService>()

/** Confines the processes of sessions. */
export default definePlugin({
  name: 'sandboxes',
  version: '0.1.0',
  requires: needs,
  provides: Confinement,
  service: () => import('./service.js').then(module => module.SandboxesService),
}).surface({
  errors: [SandboxErrors],
  routes: sandboxRoutes,
  settings: [Sandboxes, DefaultSandbox],
  tables: [{ id: '001-guard', sql: guardTable }],
  registries: [contribute(Checks, service => [{ id: 'sandboxes', category: 'sandboxes', run: () => service.check() }])],
  taps: [
    tap(
      Sessions,
      sessions => sessions.creating,
      service => session => service.choose(session),
    ),
    tap(
      Sessions,
      sessions => sessions.launching,
      service => launch => service.enclose(launch),
    ),
    tap(
      Sessions,
      sessions => sessions.stopped,
      service => session => service.stopped(session),
    ),
  ],
})
