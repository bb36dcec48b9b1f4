import { definePlugin, Host, perConsumer } from '../../../kernel/plugin.js'
import { Extensions } from '../extensions/api.js'
import { Storage } from './api.js'
import type { StorageService } from './service.js'

export default definePlugin({
  name: 'storage',
  version: '0.1.0',
  requires: { host: Host, extensions: Extensions },
  provides: perConsumer(Storage, (service: StorageService, { name }) => service.of(name)),
  service: () => import('./service.js').then(module => module.StorageService),
}).surface({})
