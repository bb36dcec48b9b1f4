import { definePlugin, maybe, surfaceOf } from '../../../kernel/plugin.js'
import { SecretOwners, VaultSecretDeleted, VaultSecretPut } from '../../access/vault/api.js'
import { Extensions, ProvisionOwners } from '../../delivery/extensions/api.js'
import { Checks, StatusMembers } from '../../desk/daemon/api.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Events } from '../../platform/events/api.js'
import { SessionErrors, Sessions } from '../../work/sessions/api.js'
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
import { deliveryRoutes } from './delivery/routes.js'
import { deliveryTables } from './delivery/table.js'
import { inboundRoutes } from './inbound/routes.js'
import { inboundTables } from './inbound/table.js'
import { instanceCommands } from './instances/command-list.js'
import { instanceRoutes } from './instances/routes.js'
import { instanceTables } from './instances/table.js'
import { needs } from './needs.js'
import type { BridgesService } from './service.js'

const { contribute, reconciler, tap } = surfaceOf<BridgesService>()

/** Bridges: each subfolder exports its routes, tables and errors, and this surface lists them. */
export default definePlugin({
  name: 'bridges',
  version: '0.1.0',
  requires: needs,
  provides: Bridges,
  service: () => import('./service.js').then(module => module.BridgesService),
}).surface({
  declares: [BridgeProviders],
  kinds: [BridgeInstanceKind],
  tables: [...instanceTables, ...deliveryTables, ...inboundTables],
  errors: [BridgeErrors],
  events: [BridgeReady, BridgeDegraded, BridgeAuthRequired, BridgeFailed, BridgeDeliveryFailed],
  taps: [
    tap(
      maybe(Extensions),
      extensions => extensions.changed,
      service => () => service.processes.refresh(),
    ),
    tap(
      Workspaces,
      workspaces => workspaces.deleting,
      service =>
        (t, { id }) =>
          service.inUse(t, id),
    ),
    tap(
      maybe(Sessions),
      sessions => sessions.points.retiring,
      service => async session =>
        service.inbound.conversations.continues(session)
          ? SessionErrors.session_busy(`a conversation of a bridge continues session ${session.id}`)
          : undefined,
    ),
    // A secret can also change in the vault directly, without a change of its slot.
    tap(
      Events,
      events => events.of(VaultSecretPut),
      service => event => service.secretChanged(event.payload.ref, 'put'),
    ),
    tap(
      Events,
      events => events.of(VaultSecretDeleted),
      service => event => service.secretChanged(event.payload.ref, 'deleted'),
    ),
  ],
  routes: [...instanceRoutes, ...deliveryRoutes, ...inboundRoutes],
  commands: [...instanceCommands],
  // The desired state of an instance is written in the transaction of its record; adapters are notified when it is
  // durable.
  reconcilers: [
    reconciler({
      kind: BridgeInstanceKind,
      run: (service, { first }) => {
        if (!first) service.adapters.markAll()
      },
    }),
  ],
  services: [
    { name: 'adapters', run: (service, signal) => service.adapters.run(signal) },
    { name: 'exchange', run: (service, signal) => service.exchange(signal) },
  ],
  quiesce: [{ phase: 'bridges', run: (service, signal) => service.quiesce(signal) }],
  hooks: {
    write: { [BridgeInstanceKind.name]: (service, t, change) => service.guard(t, change) },
    written: (service, t, { change }) => {
      const { kind } = change.verb === 'put' ? change.after : change.before
      if (kind === BridgeInstanceKind.name) service.written(t, change)
    },
    // Added or removed extensions can have adapters.
    running: service => service.adapters.markAll(),
    changed: service => service.adapters.markAll(),
  },
  registries: [
    contribute(ProvisionOwners, service => [service.processes.owner()]),
    contribute(BridgeProviders, service => service.processes.providers()),
    contribute(Checks, service => [{ id: 'runtime.bridges', category: 'bridges', run: () => service.check() }]),
    contribute(StatusMembers, service => [
      { path: 'bridges', read: () => service.totals() },
      { path: 'health.bridges', read: () => service.totals() },
    ]),
    contribute(SecretOwners, () => [
      { what: 'bridge', deleted: { record: BridgeInstanceKind.name }, paths: id => [`bridges/${id}`] },
    ]),
  ],
})
