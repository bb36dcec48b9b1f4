import { definePlugin, perConsumer } from '../../../kernel/plugin.js'
import { Ownership } from './api.js'
import { needs } from './needs.js'
import type { OwnershipService } from './service.js'
import { migrations } from './tables.js'

/** Deletes rows that belong to things of other plugins after these have ended. */
export default definePlugin({
  name: 'ownership',
  version: '0.1.0',
  requires: needs,
  provides: perConsumer(Ownership, (service: OwnershipService, consumer) => service.for(consumer)),
  service: () => import('./service.js').then(module => module.OwnershipService),
}).surface({ tables: migrations, hooks: { running: (service, change) => service.running(change) } })
