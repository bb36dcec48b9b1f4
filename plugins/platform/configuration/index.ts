import { SettingValues } from '../../../kernel/platform.js'
import { definePlugin, perConsumer, surfaceOf } from '../../../kernel/plugin.js'
import { ConfigErrors, Configuration } from './api.js'
import { valuesOf } from './in-effect.js'
import { needs } from './needs.js'
import type { ConfigurationService } from './service.js'

const { tap } = surfaceOf<ConfigurationService>()

/** The configuration as layers with provenance: follows the file that the port `settings` read at the start, and writes it. */
export default definePlugin({
  name: 'configuration',
  version: '0.1.0',
  requires: needs,
  provides: perConsumer(Configuration, (service: ConfigurationService, consumer) => service.for(consumer)),
  service: () => import('./service.js').then(module => module.ConfigurationService),
}).surface({
  errors: [ConfigErrors],
  services: [{ name: 'follow', run: (service, signal) => service.watch(signal) }],
  taps: [
    tap(
      SettingValues,
      values => valuesOf(values).changed,
      service => anew => service.follow(anew),
    ),
  ],
})
