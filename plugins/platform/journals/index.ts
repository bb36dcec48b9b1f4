import { DiskSpace, definePlugin, perConsumer } from '../../../kernel/plugin.js'
import { Processes } from '../processes/api.js'
import { Journals } from './api.js'
import type { JournalsService } from './service.js'

export default definePlugin({
  name: 'journals',
  version: '0.1.0',
  // Processes must have ended those of an earlier daemon before a journal gets its next generation.
  requires: { processes: Processes, disk: DiskSpace },
  provides: perConsumer(Journals, (service: JournalsService, consumer) => service.for(consumer)),
  service: () => import('./service.js').then(module => module.JournalsService),
}).surface({})
