import { DiskSpace, definePlugin, Host } from '../../kernel/plugin.js'

export default definePlugin({
  name: 'discovery',
  version: '0.1.0',
  requires: { host: Host, disk: DiskSpace },
  service: () => import('./service.js').then(module => module.DiscoveryService),
}).surface({ hooks: { listening: self => self.tell() } })
