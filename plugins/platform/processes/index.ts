import { definePlugin, Faults, type Plugin, perConsumer } from '../../../kernel/plugin.js'
import { Processes } from './api.js'
import type { ProcessesOptions, ProcessesService } from './service.js'
import { processTables } from './tables.js'

/** The plugin for programs that embed the kernel; the package itself uses no options. */
export function processesWith(options: ProcessesOptions = {}): Plugin {
  return definePlugin({
    name: 'processes',
    version: '0.1.0',
    requires: { report: Faults },
    provides: perConsumer(Processes, (service: ProcessesService, consumer) => service.for(consumer)),
    service: () => import('./service.js').then(module => module.ProcessesService.bind(undefined, options)),
  }).surface({ inherits: [processTables] })
}

export default processesWith()
