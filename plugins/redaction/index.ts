import { definePlugin, Faults, type Setting } from '../../kernel/plugin.js'
import { RedactionEnabled } from './settings.js'

export default definePlugin({
  name: 'redaction',
  version: '0.1.0',
  requires: { faults: Faults },
  service: () => import('./service.js').then(module => module.RedactionService),
}).surface({
  settings: [RedactionEnabled] as Setting[],
  hooks: { redact: self => (self.isOn ? [self] : []) },
})
