import { definePlugin, type Setting } from '../../kernel/plugin.js'
import { TlsSettings } from './settings.js'

/** How TCP is served: its certificate, and what it takes where other machines reach it. */
export default definePlugin({
  name: 'tls',
  version: '0.1.0',
  service: () => import('./service.js').then(module => module.TlsService),
}).surface({
  settings: Object.values(TlsSettings) as Setting[],
  hooks: { bind: (self, host, isLoopback) => self.bind(host, isLoopback) },
})
