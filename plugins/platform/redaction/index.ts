import { Redactors } from '../../../kernel/platform.js'
import { definePlugin, Faults, type Setting, surfaceOf } from '../../../kernel/plugin.js'
import type { RedactionService } from './service.js'
import { RedactionEnabled } from './settings.js'

const { contribute } = surfaceOf<RedactionService>()

export default definePlugin({
  name: 'redaction',
  version: '0.1.0',
  requires: { faults: Faults },
  service: () => import('./service.js').then(module => module.RedactionService),
}).surface({
  settings: [RedactionEnabled] as Setting[],
  registries: [contribute(Redactors, service => (service.isOn ? [service] : []))],
})
