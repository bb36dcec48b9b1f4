import { definePlugin, type Setting, surfaceOf } from '../../kernel/plugin.js'
import { Tcp } from '../tcp/api.js'
import type { TlsService } from './service.js'
import { TlsSettings } from './settings.js'

const { tap } = surfaceOf<TlsService>()

/** How TCP is served: its certificate, and what it takes where other machines reach it. */
export default definePlugin({
  name: 'tls',
  version: '0.1.0',
  requires: { tcp: Tcp },
  service: () => import('./service.js').then(module => module.TlsService),
}).surface({
  settings: Object.values(TlsSettings) as Setting[],
  taps: [
    tap(
      Tcp,
      tcp => tcp.bind,
      self => (host, isLoopback) => self.bind(host, isLoopback),
    ),
  ],
})
