import { definePlugin, perConsumer } from '../../kernel/plugin.js'
import { Journals } from './api.js'
import type { JournalsService } from './service.js'

export default definePlugin({
  name: 'journals',
  version: '0.1.0',
  provides: perConsumer(Journals, (self: JournalsService, consumer) => self.for(consumer)),
  service: () => import('./service.js').then(module => module.JournalsService),
}).surface({})
