import { definePlugin, Host } from '../../kernel/plugin.js'
import { Files } from '../files/api.js'

export default definePlugin({
  name: 'discovery',
  version: '0.1.0',
  requires: { host: Host, file: Files },
  service: () => import('./service.js').then(module => module.DiscoveryService),
}).surface({ hooks: { listening: self => self.tell() } })
