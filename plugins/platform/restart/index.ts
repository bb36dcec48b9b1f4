import { describe, throws } from '../../../kernel/kit/annotations/index.js'
import { accepted, definePlugin, ok, routeOf } from '../../../kernel/plugin.js'
import { RestartOperation, RestartTriggered } from '../../../schemas/daemon/restart.js'
import { undo } from '../../desk/changes/api.js'
import { Relaunchers, Restart, RestartErrors, RestartRequested } from './api.js'
import { needs } from './needs.js'
import type { RestartService } from './service.js'

const route = routeOf<RestartService>(describe('Settings'))

/** The restart of the daemon as an operation that survives a crash of any of its processes. */
export default definePlugin({
  name: 'restart',
  version: '0.1.0',
  requires: needs,
  provides: Restart,
  service: () => import('./service.js').then(module => module.RestartService),
}).surface({
  declares: [Relaunchers],
  errors: [RestartErrors],
  events: [RestartRequested],
  services: [{ name: 'finish', run: (service, signal) => service.finish(signal) }],
  routes: [
    route({
      method: 'POST',
      path: '/api/settings/actions/restart',
      with: [
        undo({ by: 'never', why: 'it changes no setting' }),
        throws(RestartErrors.restart_unsupported, RestartErrors.restart_failed),
      ],
      summary: 'Restart the daemon, or join a restart in progress',
      recovery: true,
      essential: true,
      privileged: true,
      replies: { 202: RestartTriggered },
      handle: async (service, { actor }) => accepted(await service.restart(actor)),
    }),
    route({
      method: 'GET',
      path: '/api/settings/actions/restart/{operation_id}',
      summary: 'Show the progress of a daemon restart',
      recovery: true,
      replies: { 200: RestartOperation },
      with: [throws(RestartErrors.restart_not_found)],
      handle: (service, { params }) => ok(service.operation(params.operation_id)),
    }),
  ],
})
