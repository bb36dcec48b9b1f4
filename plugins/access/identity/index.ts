import { definePlugin, surfaceOf } from '../../../kernel/plugin.js'
import { AuditedEvents } from '../../platform/audit/api.js'
import { Sessions } from '../../work/sessions/api.js'
import { ActingFor, IdentityErrors } from './api.js'
import { needs } from './needs.js'
import type { IdentityService } from './service.js'

const { contribute, tap } = surfaceOf<IdentityService>()

export default definePlugin({
  name: 'identity',
  version: '0.1.0',
  requires: needs,
  service: () => import('./service.js').then(module => module.IdentityService),
}).surface({
  errors: [IdentityErrors],
  events: [ActingFor],
  registries: [contribute(AuditedEvents, () => [ActingFor.name])],
  secrets: [service => service.hidden],
  hooks: {
    authenticate: (service, incoming) => service.authenticate(incoming),
    admit: (service, incoming, route) => service.admit(incoming, route),
  },
  taps: [
    tap(
      Sessions,
      sessions => sessions.prepare,
      service => (start, session) => service.prepare(start, session),
    ),
    tap(
      Sessions,
      sessions => sessions.stopped,
      service => session => service.end(session.id),
    ),
  ],
})
