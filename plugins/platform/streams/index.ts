import { Servers, Streams } from '../../../kernel/platform.js'
import { definePlugin, type Setting } from '../../../kernel/plugin.js'
import { StreamErrors } from './errors.js'
import { MaxStreams } from './settings.js'

export default definePlugin({
  name: 'streams',
  version: '0.1.0',
  requires: { streams: Streams, servers: Servers },
  service: () => import('./service.js').then(module => module.StreamsService),
}).surface({ errors: [StreamErrors], settings: [MaxStreams] as Setting[] })
