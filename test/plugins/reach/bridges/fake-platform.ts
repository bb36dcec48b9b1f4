import { definePlugin, type Plugin, surfaceOf } from '../../../../kernel/plugin.js'
import {
  type BridgeAddress,
  type BridgeCapabilities,
  type BridgeHost,
  type BridgeProvider,
  BridgeProviders,
  type DeliveryRequest,
  type DeliveryResult,
  type InboundEvent,
  type ManagedInstance,
  type SecretSlot,
  type SettleResult,
  type SnapshotTarget,
  type StateReport,
  type VerifyCheck,
} from '../../../../plugins/reach/bridges/api.js'

/** A message in a room of the platform. */
export interface FakeMessage {
  readonly id: string
  text: string
  readonly nonce: string
  readonly instance: string
  readonly address: BridgeAddress
  /** Every text that it had, the first one first. */
  readonly texts: string[]
  deleted?: true
}

/** What becomes of one of the next deliveries. `lost`: it arrives or not, and the adapter does not know. */
type Scripted =
  | { readonly does: 'answer'; readonly result: DeliveryResult }
  | { readonly does: 'throw'; readonly message: string; readonly arrives: boolean }
  | { readonly does: 'wait'; readonly until: Promise<unknown> }

type NotSent = Extract<DeliveryResult, { status: 'not_sent' }>

const USUAL: BridgeCapabilities = {
  edits: true,
  canSettle: true,
  threads: true,
  authenticatesSenders: true,
  textLimit: 2000,
  textUnit: 'code_points',
  fences: true,
}

export interface FakeOptions {
  readonly name?: string
  readonly platform?: string
  readonly capabilities?: Partial<BridgeCapabilities>
  readonly secretSlots?: readonly SecretSlot[]
  readonly configSchema?: string
  /** Status that is reported of each instance once it is managed; `null`: none. Default `ready`. */
  readonly reports?: StateReport | null
  readonly targets?: readonly SnapshotTarget[]
  /** The platform gives messages no ids, as IRC. */
  readonly withoutIds?: true
}

/** A platform in memory with its adapter, which a plugin of a test contributes: rooms with messages, and failures that a test scripts. */
export class FakePlatform {
  readonly plugin: Plugin
  readonly provider: BridgeProvider
  /** What `manage` was called with, the latest last. */
  readonly managed: (readonly ManagedInstance[])[] = []
  readonly messages: FakeMessage[] = []
  /** Every call of `deliver`. */
  readonly requests: DeliveryRequest[] = []
  /** Every call of `settle`. */
  readonly settled: DeliveryRequest[] = []
  targets: readonly SnapshotTarget[]
  checks: readonly VerifyCheck[] = []
  webhook: VerifyCheck = { check: 'webhook', status: 'pass', remediation: '' }
  /** Status that is reported of each instance once it is managed. */
  reports: StateReport | null
  /** Rejections of the next calls of `manage`. */
  readonly refusals: string[] = []
  /** What `settle` answers; undefined: what is in the rooms. */
  settling: SettleResult | undefined
  readonly #script: Scripted[] = []
  #host: BridgeHost | undefined
  /** Instances that run; an adapter that could not start has none. */
  #known: ReadonlySet<string> = new Set()
  readonly #withoutIds: boolean
  #ids = 0
  #events = 0

  constructor({
    name = 'fakechat',
    platform = 'fakechat',
    capabilities = {},
    secretSlots = [],
    configSchema,
    reports = { status: 'ready' },
    targets = [],
    withoutIds,
  }: FakeOptions = {}) {
    this.#withoutIds = withoutIds === true
    this.reports = reports
    this.targets = targets
    const can = { ...USUAL, ...capabilities }
    this.provider = {
      extension: name,
      platform,
      displayName: 'Fake chat',
      capabilities: can,
      secretSlots,
      ...(configSchema === undefined ? {} : { configSchema }),
      manage: (instances, host) => this.#manage(instances, host),
      deliver: (request, signal) => this.#deliver(request, signal),
      targets: async () => this.targets,
      ...(can.canSettle ? { settle: async (request: DeliveryRequest) => this.#settle(request) } : {}),
      verify: async () => this.checks,
      registerWebhook: async () => this.webhook,
    }
    const { contribute } = surfaceOf()
    this.plugin = definePlugin({ name, version: '1.0.0' }).surface({
      registries: [contribute(BridgeProviders, () => [this.provider])],
    })
  }

  /** What the daemon gave the adapter. */
  get host(): BridgeHost {
    if (!this.#host) throw new Error('no instance was ever enabled')
    return this.#host
  }

  /** Instances that run. */
  get running(): readonly ManagedInstance[] {
    return this.managed.at(-1) ?? []
  }

  /** Texts of the messages in a room, oldest first. */
  room(address: BridgeAddress): string[] {
    const key = keyOf(address)
    return this.messages.filter(message => !message.deleted && keyOf(message.address) === key).map(({ text }) => text)
  }

  /** The next deliveries are not sent. */
  failNext(more: Partial<NotSent> = {}, times = 1): void {
    const result: NotSent = {
      status: 'not_sent',
      permanent: false,
      kind: 'transient_delivery_failure',
      message: 'the platform did not answer',
      ...more,
    }
    for (let n = 0; n < times; n++) this.#script.push({ does: 'answer', result })
  }

  /** The next delivery is refused for so long. */
  rateLimitNext(ms: number): void {
    this.failNext({ message: 'rate limited', retry_after_ms: ms })
  }

  /** The result of the next delivery is not known. */
  unknownNext({ arrives }: { readonly arrives: boolean }): void {
    this.#script.push({ does: 'throw', message: 'the connection broke', arrives })
  }

  /** The next delivery does not end before this. */
  holdNext(until: Promise<unknown>): void {
    this.#script.push({ does: 'wait', until })
  }

  /** Something happens in a room. Members that are not named: a direct message of ada, authenticated and addressed. */
  say(event: Partial<InboundEvent> & Pick<InboundEvent, 'bridge_instance_id'>) {
    return this.host.ingest({
      idempotency_key: `event-${++this.#events}`,
      family: 'message',
      sender: { id: 'ada', username: 'ada', authenticated: true },
      peer_id: 'ada',
      message_id: `in-${this.#events}`,
      text: 'hello',
      addressed: true,
      ...event,
    })
  }

  async #manage(instances: readonly ManagedInstance[], host: BridgeHost): Promise<void> {
    this.#host = host
    const refusal = this.refusals.shift()
    const before = this.#known
    this.#known = new Set(refusal === undefined ? instances.map(({ id }) => id) : [])
    if (refusal !== undefined) throw new Error(refusal)
    this.managed.push(instances)
    const { reports } = this
    if (!reports) return
    for (const { id } of instances) if (!before.has(id)) await host.report(id, reports)
  }

  async #deliver(request: DeliveryRequest, signal: AbortSignal): Promise<DeliveryResult> {
    this.requests.push(request)
    if (request.event === 'typing') return { status: 'delivered' }
    const next = this.#script.shift()
    if (next?.does === 'wait') {
      const aborted = new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      await Promise.race([next.until, aborted])
    }
    if (next?.does === 'answer') return next.result
    if (next?.does === 'throw') {
      if (next.arrives) this.#arrive(request)
      throw new Error(next.message)
    }
    const remote_message_id = this.#arrive(request)
    return { status: 'delivered', ...(this.#withoutIds ? {} : { remote_message_id }) }
  }

  #arrive({ bridge_instance_id, event, target, text, nonce, remote_message_id }: DeliveryRequest): string {
    const known = this.messages.find(({ id }) => id === remote_message_id)
    if (event === 'delete') {
      if (known) known.deleted = true
      return remote_message_id ?? ''
    }
    if (known) {
      known.text = text
      known.texts.push(text)
      return known.id
    }
    const id = `m${++this.#ids}`
    this.messages.push({ id, text, nonce, instance: bridge_instance_id, address: target, texts: [text] })
    return id
  }

  #settle(request: DeliveryRequest): SettleResult {
    this.settled.push(request)
    if (this.settling) return this.settling
    const found = this.messages.find(({ nonce }) => nonce === request.nonce)
    return found ? { outcome: 'delivered', remote_message_id: found.id } : { outcome: 'absent' }
  }
}

const keyOf = ({ group_id = '', peer_id = '', thread_id = '' }: BridgeAddress) => `${group_id}|${peer_id}|${thread_id}`
