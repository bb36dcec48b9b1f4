import { definePlugin } from '../../kernel/plugin.js'
import { BridgeInstanceKind } from './api.js'

export default definePlugin({
  name: 'bridges',
  version: '0.1.0',
  service: () => import('./service.js').then(module => module.BridgesService),
}).surface({
  kinds: [BridgeInstanceKind],
})
