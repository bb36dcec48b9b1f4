import { DiskSpace, definePlugin, surfaceOf } from '../../../kernel/plugin.js'
import { Checks, StatusMembers } from '../../desk/daemon/api.js'
import type { DiskService } from './service.js'

const { contribute } = surfaceOf<DiskService>()

export default definePlugin({
  name: 'disk',
  version: '0.1.0',
  requires: { disk: DiskSpace },
  service: () => import('./service.js').then(module => module.DiskService),
}).surface({
  registries: [
    contribute(Checks, service => [{ id: 'home.disk', category: 'home', run: () => service.check() }]),
    contribute(StatusMembers, service => [{ path: 'health', read: () => service.health() }]),
  ],
})
