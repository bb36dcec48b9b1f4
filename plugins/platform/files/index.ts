import { DiskSpace, definePlugin, perConsumer } from '../../../kernel/plugin.js'
import { Files } from './api.js'
import type { FilesService } from './service.js'

export default definePlugin({
  name: 'files',
  version: '0.1.0',
  requires: { disk: DiskSpace },
  provides: perConsumer(Files, (service: FilesService) => service.file),
  service: () => import('./service.js').then(module => module.FilesService),
}).surface({})
