import { definePlugin, Host, Listeners, type Setting } from '../../kernel/plugin.js'
import { Tcp } from './api.js'
import { TcpErrors } from './errors.js'
import { TcpSettings } from './settings.js'

/** Serves TCP: where, to whom, and what is refused there by looking at it. */
export default definePlugin({
  name: 'tcp',
  version: '0.1.0',
  requires: { host: Host, listeners: Listeners },
  provides: Tcp,
  service: () => import('./service.js').then(module => module.TcpService),
}).surface({
  errors: [TcpErrors],
  settings: Object.values(TcpSettings) as Setting[],
  hooks: { open: self => self.open(), running: (self, change) => self.openAgain(change) },
})
