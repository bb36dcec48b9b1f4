import { definePlugin, perConsumer } from '../../../kernel/plugin.js'
import { ArchivedThings, ArchiveErrors, Archives } from './api.js'
import type { ArchivesService } from './service.js'

export default definePlugin({
  name: 'archives',
  version: '0.1.0',
  provides: perConsumer(Archives, (service: ArchivesService, consumer) => service.for(consumer)),
  service: () => import('./service.js').then(module => module.ArchivesService),
}).surface({
  declares: [ArchivedThings],
  errors: [ArchiveErrors],
  hooks: { admit: (service, { url }, route) => service.admit(url, route) },
})
