import { cli, describe, show, throws } from '../../../kernel/kit/annotations/index.js'
import { definePlugin, maybe, ok, routeOf, surfaceOf } from '../../../kernel/plugin.js'
import { ListProvidersQuery, ListProvidersReply, ProbeProviderReply, Provider } from '../../../schemas/providers.js'
import { SecretOwners } from '../../access/vault/api.js'
import { Checks, StatusMembers } from '../../desk/daemon/api.js'
import { WorkspaceDetailMembers } from '../../desk/workspaces/api.js'
import { Sessions } from '../../work/sessions/api.js'
import {
  ENVIRONMENT_ERRORS,
  ProviderAuthRequired,
  ProviderCatalog,
  ProviderErrors,
  ProviderPermissionDenied,
  ProviderRateLimited,
  ProviderRecovered,
  Providers,
  ProviderUnavailable,
  ProviderUsers,
} from './api.js'
import { entryTable, providerSecrets } from './entry-secrets.js'
import { healthTable } from './health.js'
import { needs } from './needs.js'
import type { ProvidersService } from './service.js'
import { DefaultProvider, ProviderEntries } from './settings.js'

const route = routeOf<ProvidersService>(describe('Models and providers'))
const { contribute, tap } = surfaceOf<ProvidersService>()

const provider = { name: 'provider_id', summary: 'name of a provider' }
const columns = ['name', { of: 'display_name', header: 'Title' }, 'auth_status.state', 'version', 'command'] as const

export default definePlugin({
  name: 'providers',
  version: '0.1.0',
  requires: needs,
  provides: Providers,
  service: () => import('./service.js').then(m => m.ProvidersService),
}).surface({
  declares: [ProviderUsers, ProviderCatalog],
  settings: [DefaultProvider, ProviderEntries],
  errors: [ProviderErrors],
  tables: [
    { id: '001-entry', sql: entryTable },
    { id: '002-health', sql: healthTable },
  ],
  events: [ProviderAuthRequired, ProviderRateLimited, ProviderPermissionDenied, ProviderUnavailable, ProviderRecovered],
  taps: [
    tap(
      maybe(Sessions),
      sessions => sessions.points.turnEnd,
      service => event => service.health.turnEnded(event),
    ),
  ],
  owned: [{ by: Providers, table: 'providers_health', column: 'provider' }],
  services: [{ name: 'secrets', run: (service, signal) => service.entrySecrets.run(signal) }],
  routes: [
    route({
      method: 'GET',
      path: '/api/providers',
      summary: 'List providers and whether they are installed',
      query: ListProvidersQuery,
      replies: { 200: ListProvidersReply },
      with: [
        cli('provider list', {
          environment: { search_path: 'PATH' },
          view: show(ListProvidersReply, 'providers', [
            ...columns,
            { of: 'auth_status.message', header: 'Note', below: true },
          ]),
        }),
      ],
      handle: async (service, { query }) => ok({ providers: await service.wireList(query.search_path) }),
    }),
    route({
      method: 'GET',
      path: '/api/providers/{provider_id}',
      summary: 'Show a provider',
      replies: { 200: Provider },
      with: [
        throws(ProviderErrors.provider_not_found),
        cli('provider info', {
          args: [provider],
          view: show(Provider, '', [
            ...columns,
            { of: 'install_command', header: 'Install', below: true },
            { of: 'executable', header: 'Found at' },
            { of: 'auth_status.message', header: 'Note' },
            { of: 'auth_status.login_command', header: 'Login' },
            'default',
          ]),
        }),
      ],
      handle: async (service, { params }) => ok(await service.wire(service.named(params.provider_id))),
    }),
    route({
      method: 'POST',
      path: '/api/providers/{provider_id}/auth/probe',
      audited: false,
      summary: 'Show the login status of a provider',
      replies: { 200: ProbeProviderReply },
      with: [
        throws(
          ProviderErrors.provider_not_found,
          ProviderErrors.provider_probe_unavailable,
          ProviderErrors.provider_cli_missing,
          ...ENVIRONMENT_ERRORS,
        ),
        cli('provider auth status', {
          args: [provider],
          view: show(ProbeProviderReply, '', [
            'provider',
            'auth_status.state',
            { of: 'auth_status.message', header: 'Note' },
            { of: 'auth_status.status_command', header: 'Asked' },
          ]),
        }),
      ],
      handle: async (service, { params }) => ok(await service.probe(params.provider_id)),
    }),
  ],
  registries: [
    contribute(SecretOwners, () => [providerSecrets]),
    contribute(StatusMembers, service => [{ path: 'providers', read: () => service.status() }]),
    contribute(Checks, service => [{ id: 'runtime.providers', category: 'providers', run: () => service.check() }]),
    contribute(WorkspaceDetailMembers, service => [{ member: 'providers' as const, read: () => service.detail() }]),
  ],
})
