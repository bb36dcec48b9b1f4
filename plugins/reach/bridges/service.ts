import { command } from '../../../kernel/kit/commands/command-line.js'
import { type Fault, messageOf, type RecordChange, type Tx } from '../../../kernel/plugin.js'
import type { BridgeTotals } from '../../../schemas/bridges.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import { WorkspaceErrors } from '../../desk/workspaces/api.js'
import {
  type BridgeAddress,
  type BridgeInfo,
  type BridgesApi,
  type ChatConversation,
  type DeliveryStanding,
  type FoundTarget,
  type PostedMessage,
  points,
} from './api.js'
import { Deliveries } from './delivery/delivery.js'
import { Inbound } from './inbound/inbound.js'
import { Adapters } from './instances/adapters.js'
import { parseRoute, routeOf } from './instances/addresses.js'
import { ConfigCheck } from './instances/config-check.js'
import { Directory } from './instances/directory.js'
import { Edits } from './instances/edits.js'
import { Health } from './instances/health.js'
import { type Instance, Instances } from './instances/instances.js'
import { Secrets } from './instances/secrets.js'
import { TestMessages } from './instances/test-messages.js'
import { Trials } from './instances/trials.js'
import type { K } from './needs.js'
import { BridgeProcesses } from './processes/processes.js'

/** Connects messaging platforms to the daemon; each part of the work has its own folder. */
export class BridgesService implements BridgesApi {
  readonly deliveryEnded
  readonly instances: Instances
  readonly processes: BridgeProcesses
  readonly edits: Edits
  readonly secrets: Secrets
  readonly health: Health
  readonly adapters: Adapters
  readonly directory: Directory
  readonly trials: Trials
  readonly deliveries: Deliveries
  readonly inbound: Inbound

  constructor(readonly kernel: K) {
    const { deliveryEnded } = kernel.hooks.of(points)
    this.deliveryEnded = deliveryEnded
    this.instances = new Instances(kernel)
    this.processes = new BridgeProcesses(kernel)
    const configs = new ConfigCheck(kernel)
    this.edits = new Edits(kernel, this.instances, configs)
    this.secrets = new Secrets(kernel, this.instances)
    this.health = new Health(kernel, this.instances, this.secrets, configs)
    this.adapters = new Adapters(kernel, this.instances, this.secrets)
    this.directory = new Directory(kernel, this.instances)
    this.adapters.refresh = id => this.directory.refresh(id)
    const tests = new TestMessages(kernel, this.instances, () => this.deliveries)
    this.deliveries = new Deliveries(kernel, this.instances, (key, standing) => {
      if (!tests.ended(key, standing)) void deliveryEnded.call(key, standing)
    })
    this.trials = new Trials(kernel, this.instances, this.secrets, this.adapters, tests, configs)
    this.inbound = new Inbound(kernel, this.instances, this.deliveries)
    this.instances.figures = {
      routes: id => this.inbound.conversations.count(id),
      backlog: id => this.deliveries.ledger.backlog(id),
    }
    this.instances.moved = id => this.deliveries.changed(id)
    this.adapters.reportDelivery = (extension, report) => this.deliveries.reported(extension, report)
    this.adapters.ingest = (extension, event) => this.inbound.ingest(extension, event)
  }

  async start(): Promise<void> {
    this.kernel.scope.defer(
      'bridges.providers',
      this.processes.onChange(() => this.adapters.markAll()),
    )
    await this.instances.start()
  }

  /** Notifies the adapter of a changed or deleted vault value. */
  async secretChanged(ref: string, change: 'put' | 'deleted'): Promise<void> {
    const instance = await this.secrets.follow(ref, change)
    if (instance) this.adapters.mark(instance)
  }

  /** The doctor's items of bridges. */
  async check(): Promise<DiagnosticItem[]> {
    const { bridgeItems, unavailable } = await import('./instances/checks.js')
    try {
      return [...bridgeItems(this.instances, this.health), ...this.deliveries.findings()]
    } catch (error) {
      return [unavailable(messageOf(error))]
    }
  }

  /** Checks a change of an instance's record; the delivery part can refuse a deletion. */
  guard(t: Tx, change: RecordChange): Fault | undefined {
    return change.verb !== 'delete' ? undefined : this.deliveries.guard(t, change.before.id)
  }

  /** Why a workspace cannot be deleted: an instance of it has messages in progress. */
  inUse(t: Tx, workspaceId: string): Fault | undefined {
    for (const { id, workspaceId: of } of this.instances.list()) {
      const busy = of === workspaceId ? this.deliveries.busy(t, id) : undefined
      if (busy === undefined) continue
      const next = command('bridge deliveries', id)
      return WorkspaceErrors.workspace_in_use(`its bridge ${id} has ${busy}`, { next })
    }
    return undefined
  }

  /**
   * Applies a change of an instance's record in its transaction. A deletion also removes the instance's messages and
   * events.
   */
  written(t: Tx, change: RecordChange): void {
    this.instances.written(t, change)
    if (change.verb !== 'delete') return
    const own = this.kernel.db.within(t)
    this.deliveries.ledger.forget(own, change.before.id)
    this.inbound.forget(own, change.before.id)
  }

  /** Continues the work of an earlier daemon, sends messages and settles events until the signal aborts. */
  async exchange(signal: AbortSignal): Promise<void> {
    await this.kernel.needs.daemon.released(signal)
    await Promise.all([this.deliveries.run(signal), this.inbound.run(signal)])
  }

  /** Stops the work in progress, then the adapters. */
  async quiesce(signal: AbortSignal): Promise<void> {
    await this.deliveries.close(signal)
    await this.inbound.close()
    await this.adapters.end()
  }

  get(id: string): BridgeInfo | undefined {
    const instance = this.instances.get(id)
    return instance && infoOf(instance)
  }

  list(): readonly BridgeInfo[] {
    return this.instances.list().map(infoOf)
  }

  post(t: Tx, message: PostedMessage): 'queued' | 'known' | 'suppressed' | 'missing' {
    return this.deliveries.post(t, message)
  }

  standing(key: string): DeliveryStanding | undefined {
    return this.deliveries.standing(key)
  }

  failedDeliveries(): ReadonlySet<string> {
    return this.deliveries.failed()
  }

  parseRoute(route: string): BridgeAddress | undefined {
    return parseRoute(route)
  }

  findTarget(bridgeId: string, name: string): Promise<FoundTarget> {
    return this.directory.find(bridgeId, name)
  }

  conversationOf(bridgeId: string, sessionId: string): ChatConversation | undefined {
    return this.inbound.conversations.ofSession(bridgeId, sessionId)
  }

  routeOf(address: BridgeAddress): string {
    return routeOf(address)
  }

  totals(): BridgeTotals {
    return this.instances.totals()
  }
}

function infoOf({
  id,
  displayName,
  platform,
  extension,
  workspaceId,
  status,
  suppress,
  deliveryDefaults,
}: Instance): BridgeInfo {
  const { peer_id, group_id, thread_id } = deliveryDefaults ?? {}
  const target = {
    ...(peer_id === undefined ? {} : { peer_id }),
    ...(group_id === undefined ? {} : { group_id }),
    ...(thread_id === undefined ? {} : { thread_id }),
  }
  return {
    id,
    displayName,
    platform,
    extension,
    ...(workspaceId === undefined ? {} : { workspaceId }),
    status,
    notificationSuppress: suppress,
    defaultTarget: peer_id === undefined && group_id === undefined ? undefined : target,
  }
}
