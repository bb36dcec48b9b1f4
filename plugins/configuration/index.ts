import { ConfigFile, DiskSpace, definePlugin, Faults, Host, perConsumer, surfaceOf } from '../../kernel/plugin.js'
import { ConfigErrors, Configuration } from './api.js'
import type { ConfigurationService } from './service.js'

const { tap } = surfaceOf<ConfigurationService>()

/**
 * The configuration as layers with provenance, following its file and writing it. Values are read from the kernel, which has those
 * of the start without this plugin.
 */
export default definePlugin({
  name: 'configuration',
  version: '0.1.0',
  requires: { source: ConfigFile, report: Faults, disk: DiskSpace, host: Host },
  provides: perConsumer(Configuration, (self: ConfigurationService, consumer) => self.for(consumer)),
  service: () => import('./service.js').then(module => module.ConfigurationService),
}).surface({
  errors: [ConfigErrors],
  services: [{ name: 'follow', run: (self, signal) => self.watch(signal) }],
  taps: [
    tap(
      ConfigFile,
      source => source.changed,
      self => anew => self.follow(anew),
    ),
  ],
})
