import { definePlugin, maybe, surfaceOf } from '../../../kernel/plugin.js'
import { SecretOwners } from '../../access/vault/api.js'
import { Extensions, ProvisionOwners } from '../../delivery/extensions/api.js'
import {
  BridgeAuthRequired,
  BridgeDegraded,
  BridgeDeliveryFailed,
  BridgeErrors,
  BridgeFailed,
  BridgeInstanceKind,
  BridgeProviders,
  BridgeReady,
  Bridges,
} from './api.js'
import { instanceTables } from './instances/table.js'
import { needs } from './needs.js'
import type { BridgesService } from './service.js'

const { contribute, tap } = surfaceOf<BridgesService>()

/** Bridges: each room exports its routes, tables and errors, and this surface lists them. */
export default definePlugin({
  name: 'bridges',
  version: '0.1.0',
  requires: needs,
  provides: Bridges,
  service: () => import('./service.js').then(module => module.BridgesService),
}).surface({
  declares: [BridgeProviders],
  kinds: [BridgeInstanceKind],
  tables: [...instanceTables],
  errors: [BridgeErrors],
  events: [BridgeReady, BridgeDegraded, BridgeAuthRequired, BridgeFailed, BridgeDeliveryFailed],
  taps: [
    tap(
      maybe(Extensions),
      extensions => extensions.changed,
      self => () => self.processes.look(),
    ),
  ],
  registries: [
    contribute(ProvisionOwners, self => [self.processes.owner()]),
    contribute(BridgeProviders, self => self.processes.providers()),
    contribute(SecretOwners, () => [
      { what: 'bridge', deleted: { record: BridgeInstanceKind.name }, paths: id => [`bridges/${id}`] },
    ]),
  ],
})
