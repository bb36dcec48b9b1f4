import { definePlugin, type Plugin, type PluginKernel, type Setting } from '../../kernel/plugin.js'
import { OwnUserErrors } from './errors.js'
import { TrustOwnUser } from './settings.js'

/**
 * The plugin over another list of connections than that of the system.
 * @param tables folder of the connection tables; one without `tcp` is a system that does not tell
 */
export function ownUserWith(tables?: string): Plugin {
  return definePlugin({
    name: 'own-user',
    version: '0.1.0',
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
    hooks: { vouch: (self, incoming, connection) => self.vouch(incoming, connection) },
  })
}

export default ownUserWith()
