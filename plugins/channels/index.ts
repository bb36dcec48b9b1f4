import { definePlugin, Servers } from '../../kernel/plugin.js'

export default definePlugin({
  name: 'channels',
  version: '0.1.0',
  requires: { servers: Servers },
  service: () => import('./service.js').then(module => module.ChannelsService),
}).surface({})
