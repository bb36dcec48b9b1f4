import { shown } from '../../../../kernel/kit/text.js'
import type { Actor, RecordChange, StoredRecord, Tx } from '../../../../kernel/plugin.js'
import type { BridgeTotals } from '../../../../schemas/bridges.js'
import { isElsewhere } from '../../../desk/workspaces/api.js'
import {
  BridgeAuthRequired,
  BridgeDegraded,
  BridgeErrors,
  BridgeFailed,
  BridgeInstanceKind,
  type BridgeInstanceSpec,
  type BridgeProvider,
  BridgeProviders,
  BridgeReady,
  type BridgeStatus,
  type RoutingPolicy,
} from '../api.js'
import type { K } from '../needs.js'
import { Changes } from './changes.js'
import { leadsTo, type Standing } from './states.js'
import { type InstanceState, secrets, states, targets } from './table.js'

/** A bridge instance as the parts of this plugin see it. */
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
  /** Whether it sends no notifications. */
  readonly suppress: boolean
}

/** The record of an instance. */
export type InstanceRecord = StoredRecord<BridgeInstanceSpec>

/** Figures of other parts for the health of an instance. They call `touched` on changes. */
export interface Figures {
  /** Conversations that are bound to a session. */
  routes(id: string): number
  /** Number of parts being sent. */
  backlog(id: string): number
}

/** A counter of the health of an instance. */
export type Counter = 'auth_failures' | 'delivery_failures' | 'dropped'

/** Kept characters of an adapter's message. */
const MESSAGE_MAX = 1000
const ANNOUNCED = {
  ready: BridgeReady,
  degraded: BridgeDegraded,
  auth_required: BridgeAuthRequired,
  error: BridgeFailed,
}

/** Bridge instances: records have the desired state, the table `bridges_state` the reported one. */
export class Instances {
  /** Figures of other parts, which set it on creation. */
  figures: Figures = { routes: () => 0, backlog: () => 0 }
  /** Called durably for each new status of an instance; set by the part that waits for it. */
  moved: (id: string) => void = () => {}
  readonly changes: Changes

  constructor(private readonly kernel: K) {
    this.changes = new Changes(kernel.clock.now())
  }

  /**
   * Aligns the table with the records, which may have changed while this plugin did not run; running instances start
   * again.
   */
  async start(): Promise<void> {
    const { db, records } = this.kernel
    const known = new Map(states.all(db).map(state => [state.id, state]))
    const ids = new Set(records.ids(BridgeInstanceKind.name))
    if (ids.size === 0 && known.size === 0) return
    const gone = [...known.keys()].filter(id => !ids.has(id))
    const stale = records.list({ kind: BridgeInstanceKind }).filter(({ id, spec: { enabled } }) => {
      const state = known.get(id)
      return state?.status !== ((state?.enabled ?? enabled) ? 'starting' : 'disabled')
    })
    if (gone.length + stale.length === 0) return
    await db.tx(t => {
      for (const id of gone) this.#forget(t, id)
      for (const { id, spec } of stale) this.#follow(t, id, spec.enabled, true)
    })
  }

  get(id: string): Instance | undefined {
    const record = this.kernel.records.get(BridgeInstanceKind, id)
    return record && instanceOf(record, states.get(this.kernel.db, { id }))
  }

  list(): Instance[] {
    const known = new Map(states.all(this.kernel.db).map(state => [state.id, state]))
    return this.kernel.records
      .list({ kind: BridgeInstanceKind })
      .map(record => instanceOf(record, known.get(record.id)))
  }

  /** Whether any instance is enabled, by a single statement. */
  get isNeeded(): boolean {
    return this.kernel.db.row("SELECT 1 FROM bridges_state WHERE status <> 'disabled' LIMIT 1") !== undefined
  }

  /** The adapter of an instance, if its extension runs. */
  provider(id: string): BridgeProvider | undefined {
    const instance = this.get(id)
    return instance && this.providerOf(instance)
  }

  /** All adapters. */
  providers(): readonly BridgeProvider[] {
    return this.kernel.collect(BridgeProviders).map(({ entry }) => entry)
  }

  providerOf({ extension, platform }: Pick<Instance, 'extension' | 'platform'>): BridgeProvider | undefined {
    return this.providers().find(provider => provider.extension === extension && provider.platform === platform)
  }

  /** Whether the instance accepts events and sends messages. */
  accepts(id: string): boolean {
    const { status } = this.get(id) ?? {}
    return status === 'ready' || status === 'degraded'
  }

  /** The record, if the caller may see it. @throws Fault `bridge_not_found` */
  found(id: string, actor?: Actor): InstanceRecord {
    const record = this.kernel.records.get(BridgeInstanceKind, id)
    if (record && !(actor && isElsewhere(actor, record.scope))) return record
    throw BridgeErrors.bridge_not_found(`no bridge has the id ${shown(id)}`)
  }

  /** The instance, if the caller may see it. @throws Fault `bridge_not_found` */
  getVisible(id: string, actor?: Actor): Instance {
    return instanceOf(this.found(id, actor), states.get(this.kernel.db, { id }))
  }

  state(id: string): InstanceState | undefined {
    return states.get(this.kernel.db, { id })
  }

  /** Increments a counter. @param by why the delivery was dropped; only for the counter `dropped` */
  count(t: Tx, id: string, counter: Counter, by = 'unknown'): void {
    const state = states.get(t, { id })
    if (!state) return
    const { authFailures, deliveryFailures, dropped } = state
    const changes = {
      auth_failures: { authFailures: authFailures + 1 },
      delivery_failures: { deliveryFailures: deliveryFailures + 1 },
      dropped: { dropped: { ...dropped, [by]: (dropped[by] ?? 0) + 1 } },
    }
    this.change(t, id, changes[counter])
  }

  /** A text of an adapter with secrets redacted. */
  plain(message: string): string {
    return this.kernel.redact.text(message, MESSAGE_MAX)
  }

  /** Records a failed delivery or platform request. */
  failed(t: Tx, id: string, message: string): void {
    this.change(t, id, { lastError: this.plain(message), lastErrorAt: this.kernel.clock.now() })
  }

  /** Records a delivered message. @param hasRemoteId whether the platform returned an id */
  succeeded(t: Tx, id: string, hasRemoteId = false): void {
    const now = this.kernel.clock.now()
    this.change(t, id, { lastSuccessAt: now, ...(hasRemoteId && { outboundAt: now }) })
  }

  /** Records an event from the platform. */
  heard(t: Tx, id: string): void {
    this.change(t, id, { inboundAt: this.kernel.clock.now() })
  }

  /** Changes the reported state of an instance; health streams are notified when it is durable. */
  change(t: Tx, id: string, changes: Partial<InstanceState>): void {
    if (states.update(t, { id }, { ...changes, updatedAt: this.kernel.clock.now() }) > 0) this.touched(t, id)
  }

  /** Notifies health streams of a change once the transaction is durable. */
  touched(t: Tx, id: string): void {
    this.kernel.db.onDurable(t, () => this.changes.touch(id))
  }

  /**
   * Moves an instance to a status and announces it, unless the last announcement was the same. Returns false for an
   * invalid transition.
   * @param afresh whether the daemon just started, which allows a transition from any status
   */
  move(t: Tx, id: string, to: Standing, afresh = false): boolean {
    const state = states.get(t, { id })
    if (!state || !(afresh || leadsTo(state.status, to.status))) return false
    const { reason, message } = 'reason' in to || 'message' in to ? to : {}
    const text = message === undefined ? undefined : this.plain(message)
    if (state.status === to.status && state.reason === reason && state.message === text) return true
    const now = this.kernel.clock.now()
    const { status } = to
    this.kernel.db.onDurable(t, () => this.moved(id))
    const announces = status === 'disabled' || status === 'starting' ? undefined : ANNOUNCED[status]
    const isNews = announces !== undefined && state.announced !== status
    this.change(t, id, {
      status,
      reason,
      message: text,
      ...(text !== undefined && { lastError: text, lastErrorAt: now }),
      ...(reason === 'auth_failed' && state.reason !== reason && { authFailures: state.authFailures + 1 }),
      ...(isNews && { announced: status }),
      ...(status === 'disabled' && { announced: undefined, webhookUrl: undefined }),
    })
    if (isNews) {
      const { scope } = this.kernel.records.get(BridgeInstanceKind.name, id) ?? {}
      const payload = { bridge_id: id, status, ...(text === undefined ? {} : { message: text }) }
      this.kernel.needs.events.emit(this.kernel.db.within(t), announces, payload, { subject: id, scope: scope?.id })
    }
    return true
  }

  /** Applies the write of a record from any source, in its transaction. */
  written(anyT: Tx, change: RecordChange): void {
    const t = this.kernel.db.within(anyT)
    const { id } = change.verb === 'put' ? change.after : change.before
    if (change.verb === 'delete') this.#forget(t, id)
    else this.#follow(t, id, (change.after.spec as BridgeInstanceSpec).enabled)
  }

  /** @param afresh whether the daemon just started */
  #follow(t: Tx, id: string, wanted: boolean, afresh = false): void {
    const state = states.get(t, { id })
    const status = (state?.enabled ?? wanted) ? 'starting' : 'disabled'
    if (!state) {
      const none = { authFailures: 0, deliveryFailures: 0, dropped: {} }
      states.insert(t, { id, status, ...none, updatedAt: this.kernel.clock.now() })
    } else if (afresh || (status === 'disabled') !== (state.status === 'disabled')) this.move(t, id, { status }, afresh)
    this.touched(t, id)
  }

  #forget(t: Tx, id: string): void {
    states.delete(t, { id })
    secrets.delete(t, { instanceId: id })
    targets.delete(t, { instanceId: id })
    this.touched(t, id)
  }

  /** Totals of all instances. */
  totals(): BridgeTotals {
    const status_counts = { auth_required: 0, degraded: 0, disabled: 0, error: 0, ready: 0, starting: 0 }
    const sums = {
      auth_failures_total: 0,
      delivery_backlog: 0,
      delivery_dropped_total: 0,
      delivery_failures_total: 0,
      route_count: 0,
    }
    const all = states.all(this.kernel.db)
    for (const { id, status, authFailures, deliveryFailures, dropped } of all) {
      status_counts[status]++
      sums.auth_failures_total += authFailures
      sums.delivery_failures_total += deliveryFailures
      sums.delivery_dropped_total += sumOf(dropped)
      sums.delivery_backlog += this.figures.backlog(id)
      sums.route_count += this.figures.routes(id)
    }
    return { ...sums, status_counts, total_instances: all.length }
  }
}

/** Whether an instance belongs to a package: its reported state may change, its spec may not. */
export const isPackaged = ({ owner, source, spec }: InstanceRecord): boolean =>
  owner.kind === 'bundle.activation' || source.kind === 'extension' || spec.source === 'package'

/** Combines the record with its reported state. */
export function instanceOf({ id, scope, spec }: InstanceRecord, state: InstanceState | undefined): Instance {
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

/** Sum of named counts. */
export const sumOf = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((sum, n) => sum + n, 0)
