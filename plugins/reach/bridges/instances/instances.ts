import type { Actor, StoredRecord, Tx } from '../../../../kernel/plugin.js'
import type { BridgeTotals } from '../../../../schemas/bridges.js'
import {
  BridgeErrors,
  BridgeInstanceKind,
  type BridgeInstanceSpec,
  type BridgeProvider,
  BridgeProviders,
  type BridgeStatus,
  type RoutingPolicy,
} from '../api.js'
import type { K } from '../needs.js'
import { type InstanceState, states } from './table.js'

/** A bridge instance as the rooms of this plugin see it. */
export interface Instance {
  readonly id: string
  readonly displayName: string
  readonly extension: string
  readonly platform: string
  readonly scope: 'global' | 'workspace'
  readonly workspaceId?: string
  readonly enabled: boolean
  readonly status: BridgeStatus
  readonly dmPolicy: BridgeInstanceSpec['dm_policy']
  readonly routingPolicy: RoutingPolicy
  readonly providerConfig: Readonly<Record<string, unknown>>
  readonly deliveryDefaults: NonNullable<BridgeInstanceSpec['delivery_defaults']> | undefined
  /** It sends no notifications. */
  readonly suppress: boolean
}

/** What the other rooms know of an instance, for its health. */
export interface Figures {
  /** Conversations that are bound to a session. */
  routes(id: string): number
  /** Parts on their way out. */
  backlog(id: string): number
}

/** A counter of the health of an instance. */
export type Counter = 'auth_failures' | 'delivery_failures' | 'dropped'

type Source = StoredRecord<BridgeInstanceSpec>

/** Bridge instances: their records say what is wanted, the table `bridges_state` what is reported. */
export class Instances {
  /** What the other rooms say of an instance; they set it when they are made. */
  figures: Figures = { routes: () => 0, backlog: () => 0 }

  constructor(private readonly kernel: K) {}

  get(id: string): Instance | undefined {
    const record = this.kernel.records.get(BridgeInstanceKind, id)
    return record && this.instanceOf(record, states.get(this.kernel.db, { id }))
  }

  list(): Instance[] {
    const known = new Map(states.all(this.kernel.db).map(state => [state.id, state]))
    return this.kernel.records
      .list({ kind: BridgeInstanceKind })
      .map(record => this.instanceOf(record, known.get(record.id)))
  }

  /** The adapter of an instance, where its extension runs. */
  provider(id: string): BridgeProvider | undefined {
    const instance = this.get(id)
    return instance && this.providerOf(instance)
  }

  /** All adapters. */
  providers(): readonly BridgeProvider[] {
    return this.kernel.collect(BridgeProviders).map(({ entry }) => entry)
  }

  /** Whether events of the instance are taken and messages are sent by it. */
  accepts(id: string): boolean {
    const { status } = this.get(id) ?? {}
    return status === 'ready' || status === 'degraded'
  }

  /** Adds one to a counter. @param by why a delivery was dropped */
  count(t: Tx, id: string, counter: Counter, by = 'unknown'): void {
    const state = states.get(t, { id })
    if (!state) return
    const { authFailures, deliveryFailures, dropped } = state
    const changes = {
      auth_failures: { authFailures: authFailures + 1 },
      delivery_failures: { deliveryFailures: deliveryFailures + 1 },
      dropped: { dropped: { ...dropped, [by]: (dropped[by] ?? 0) + 1 } },
    }
    this.change(t, state, changes[counter])
  }

  /** A delivery, or a request to the platform, failed. */
  failed(t: Tx, id: string, message: string): void {
    const state = states.get(t, { id })
    if (state) this.change(t, state, { lastError: message.slice(0, 1000), lastErrorAt: this.kernel.clock.now() })
  }

  /** The platform took a message. @param hasRemoteId it named the message */
  succeeded(t: Tx, id: string, hasRemoteId = false): void {
    const state = states.get(t, { id })
    const now = this.kernel.clock.now()
    if (state) this.change(t, state, { lastSuccessAt: now, ...(hasRemoteId && { outboundAt: now }) })
  }

  /** An event came from the platform. */
  heard(t: Tx, id: string): void {
    const state = states.get(t, { id })
    if (state) this.change(t, state, { inboundAt: this.kernel.clock.now() })
  }

  /** All instances together. */
  totals(): BridgeTotals {
    const status_counts = { auth_required: 0, degraded: 0, disabled: 0, error: 0, ready: 0, starting: 0 }
    const sums = {
      auth_failures_total: 0,
      delivery_backlog: 0,
      delivery_dropped_total: 0,
      delivery_failures_total: 0,
      route_count: 0,
    }
    const all = this.list()
    for (const { id, status } of all) {
      status_counts[status]++
      sums.delivery_backlog += this.figures.backlog(id)
      sums.route_count += this.figures.routes(id)
    }
    for (const state of states.all(this.kernel.db)) {
      sums.auth_failures_total += state.authFailures
      sums.delivery_failures_total += state.deliveryFailures
      sums.delivery_dropped_total += sumOf(state.dropped)
    }
    return { ...sums, status_counts, total_instances: all.length }
  }

  /** @throws Fault `bridge_not_found` */
  found(id: string, _actor?: Actor): Instance {
    const instance = this.get(id)
    if (!instance) throw BridgeErrors.bridge_not_found(`no bridge has the id ${JSON.stringify(id)}`)
    return instance
  }

  private change(t: Tx, state: InstanceState, changes: Partial<InstanceState>): void {
    states.update(t, { id: state.id }, { ...changes, version: state.version + 1, updatedAt: this.kernel.clock.now() })
  }

  private providerOf({ extension, platform }: Instance): BridgeProvider | undefined {
    return this.providers().find(provider => provider.extension === extension && provider.platform === platform)
  }

  private instanceOf({ id, scope, spec }: Source, state: InstanceState | undefined): Instance {
    const enabled = state?.enabled ?? spec.enabled
    return {
      id,
      displayName: spec.display_name,
      extension: spec.extension_name,
      platform: spec.platform,
      scope: scope.kind === 'workspace' ? 'workspace' : 'global',
      ...(scope.id === undefined ? {} : { workspaceId: scope.id }),
      enabled,
      status: enabled ? (state?.status ?? 'starting') : 'disabled',
      dmPolicy: spec.dm_policy,
      routingPolicy: spec.routing_policy,
      providerConfig: spec.provider_config ?? {},
      deliveryDefaults: spec.delivery_defaults ?? undefined,
      suppress: spec.notification_suppress,
    }
  }
}

/** The sum of counts by name. */
export const sumOf = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((sum, n) => sum + n, 0)
