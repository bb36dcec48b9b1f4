import { definePlugin, type Plugin, type PluginKernel, type Setting, surfaceOf } from '../../kernel/plugin.js'
import { Tcp } from '../tcp/api.js'
import { OwnUserErrors } from './errors.js'
import type { OwnUserService } from './service.js'
import { TrustOwnUser } from './settings.js'

const { tap } = surfaceOf<OwnUserService>()

/**
 * The plugin over another list of connections than that of the system.
 * @param tables folder of the connection tables; one without `tcp` is a system that does not tell
 */
export function ownUserWith(tables?: string): Plugin {
  return definePlugin({
    name: 'own-user',
    version: '0.1.0',
    requires: { tcp: Tcp },
    service: async () => {
      const { OwnUserService } = await import('./service.js')
      return class extends OwnUserService {
        constructor(kernel: PluginKernel) {
          super(kernel, tables)
        }
      }
    },
  }).surface({
    errors: [OwnUserErrors],
    settings: [TrustOwnUser] as Setting[],
    taps: [
      tap(
        Tcp,
        tcp => tcp.vouch,
        self => (incoming, connection) => self.vouch(incoming, connection),
      ),
    ],
  })
}

export default ownUserWith()
