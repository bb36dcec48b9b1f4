import { Listeners } from '../../../kernel/platform.js'
import { definePlugin, Host, type Plugin, type PluginKernel, type Setting } from '../../../kernel/plugin.js'
import { Tcp } from './api.js'
import { TcpErrors } from './errors.js'
import { TcpSettings } from './settings.js'

const requires = { host: Host, listeners: Listeners }

/**
 * Serves TCP: address, transport, authentication of callers, and guards.
 * @param tables folder of the connection tables; one without `tcp` acts as a system that does not identify peers
 */
export function tcpWith(tables?: string): Plugin {
  return definePlugin({
    name: 'tcp',
    version: '0.1.0',
    requires,
    provides: Tcp,
    service: async () => {
      const { TcpService } = await import('./service.js')
      return class extends TcpService {
        constructor(kernel: PluginKernel<typeof requires>) {
          super(kernel, tables)
        }
      }
    },
  }).surface({
    errors: [TcpErrors],
    settings: Object.values(TcpSettings) as Setting[],
    hooks: { open: service => service.open(), running: (service, change) => service.openAgain(change) },
  })
}

export default tcpWith()
