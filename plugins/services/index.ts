import { definePlugin, Faults } from '../../kernel/plugin.js'

/** Runs the background loops of plugins, the `services` of their surfaces. */
export default definePlugin({
  name: 'services',
  version: '0.1.0',
  requires: { report: Faults },
  service: () => import('./service.js').then(module => module.ServicesService),
}).surface({ hooks: { running: (self, change) => self.running(change) } })
