import { definePlugin, surfaceOf } from '../../kernel/plugin.js'
import { Checks, Daemon, StatusMembers } from '../daemon/api.js'
import { WorkspaceDetailMembers } from '../workspaces/api.js'
import { Providers } from './api.js'
import type { ProvidersService } from './service.js'
import { DefaultProvider } from './settings.js'

const { contribute } = surfaceOf<ProvidersService>()

export default definePlugin({
  name: 'providers',
  version: '0.1.0',
  requires: { daemon: Daemon },
  provides: Providers,
  service: () => import('./service.js').then(m => m.ProvidersService),
}).surface({
  settings: [DefaultProvider],
  registries: [
    contribute(StatusMembers, self => [{ path: 'providers', read: () => self.status() }]),
    contribute(Checks, self => [{ id: 'runtime.providers', category: 'providers', run: () => self.check() }]),
    contribute(WorkspaceDetailMembers, self => [{ member: 'providers' as const, read: () => self.detail() }]),
  ],
})
