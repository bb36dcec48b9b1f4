import { Listeners } from '../../../kernel/platform.js'
import { definePlugin, Host, type Plugin, type Setting } from '../../../kernel/plugin.js'
import { Tcp } from './api.js'
import { TcpErrors } from './errors.js'
import { TcpSettings } from './settings.js'

/**
 * Serves TCP: address, transport, authentication of callers, and guards.
 * @param tables folder of the connection tables; one without `tcp` acts as a system that does not identify peers
 */
export function tcpWith(tables?: string): Plugin {
  return definePlugin({
    name: 'tcp',
    version: '0.1.0',
    requires: { host: Host, listeners: Listeners },
    provides: Tcp,
    service: () => import('./service.js').then(module => module.TcpService.bind(undefined, tables)),
  }).surface({
    errors: [TcpErrors],
    settings: Object.values(TcpSettings) as Setting[],
    hooks: { open: service => service.open(), running: (service, change) => service.openAgain(change) },
  })
}

export default tcpWith()
