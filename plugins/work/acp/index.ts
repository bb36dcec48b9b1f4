import { definePlugin, type Setting } from '../../../kernel/plugin.js'
import { Acp, AcpErrors } from './api.js'
import { needs } from './needs.js'
import { AcpSettings } from './settings.js'

/** Speaks the Agent Client Protocol with agent processes, and answers what they ask of their client. */
export default definePlugin({
  name: 'acp',
  version: '0.1.0',
  requires: needs,
  provides: Acp,
  service: () => import('./service.js').then(module => module.AcpService),
}).surface({
  errors: [AcpErrors],
  settings: Object.values(AcpSettings) as Setting[],
})
