import { spawn } from 'node:child_process'
import { PassThrough, type Readable, type Writable } from 'node:stream'
import {
  type Bridge,
  type Check,
  type Delivery,
  type DeliveryReport,
  type DeliveryResult,
  type InboundEvent,
  type ManagedInstance,
  RpcConnection,
  RpcError,
  runBridge,
  type SettleResult,
  type StateReport,
  type Target,
  type Timing,
} from '../../../packages/bridge-kit/src/index.js'

const MS = 20_000

export type Ingested = InboundEvent & { readonly bridge_instance_id: string }
export type DeliveryReported = DeliveryReport & { readonly bridge_instance_id: string }
export type Reported = StateReport & { readonly bridge_instance_id: string }

interface Kept {
  readonly key: string
  readonly value?: unknown
}

/** The daemon's side of the protocol, which answers as a test says. */
export class ScriptedDaemon {
  readonly reports: Reported[] = []
  readonly events: Ingested[] = []
  /** Messages that did not arrive. */
  readonly deliveryReports: DeliveryReported[] = []
  /** Answers such a report; a throw refuses it. */
  reportDelivery: (report: DeliveryReported) => 'recorded' | 'unknown' = () => 'recorded'
  /** Events that were refused, once for each attempt. */
  readonly refused: Ingested[] = []
  /** Answers an event; a throw refuses it. */
  ingest: (event: Ingested) => unknown = ({ idempotency_key }) => ({ idempotency_key, outcome: 'prompted' })
  /** Values that the adapter keeps; the same map in two daemons is a restart. */
  values = new Map<string, string>()
  /** Refuses a value, by a throw. */
  keep: (key: string) => void = () => {}
  /** Folder that the adapter is given for its data. */
  dataDir: string | undefined
  purpose: 'service' | 'control' = 'service'
  readonly #connection: RpcConnection
  readonly #watchers = new Set<() => void>()
  #nonces = 0

  private constructor(
    input: Readable,
    output: Writable,
    /** Resolves when the adapter has ended. */
    readonly ended: Promise<unknown>,
  ) {
    this.#connection = new RpcConnection(input, output, async (method, params) => {
      if (method === 'bridges/instances/report_state') {
        this.reports.push(params as Reported)
        this.#changed()
        return {}
      }
      if (method === 'bridges/deliveries/report') {
        const report = params as DeliveryReported
        const outcome = this.reportDelivery(report)
        this.deliveryReports.push(report)
        this.#changed()
        return { outcome }
      }
      if (method === 'state/get' || method === 'state/put') return this.#kept(method, params as Kept)
      if (method !== 'bridges/messages/ingest') throw new RpcError(-32601, method, { code: 'method_not_found' })
      const event = params as Ingested
      const result = this.#taken(event)
      this.events.push(event)
      this.#changed()
      return result
    })
  }

  #kept(method: string, { key, value }: Kept): unknown {
    this.keep(key)
    if (method === 'state/put') {
      this.values.set(key, JSON.stringify(value))
      this.#changed()
    }
    const text = this.values.get(key)
    return { key, found: text !== undefined, value: text === undefined ? null : JSON.parse(text) }
  }

  #taken(event: Ingested): unknown {
    try {
      return this.ingest(event)
    } catch (error) {
      this.refused.push(event)
      this.#changed()
      throw error
    }
  }

  /** Runs the adapter in this process. */
  static inProcess(bridge: Bridge, timing?: Timing): ScriptedDaemon {
    const [there, back] = [new PassThrough(), new PassThrough()]
    const ended = runBridge(bridge, { input: there, output: back, ...(timing ? { timing } : {}) })
    return new ScriptedDaemon(back, there, ended)
  }

  /** Starts the adapter as the daemon does. */
  static ofProgram(argv: readonly string[]): ScriptedDaemon & { readonly pid: number } {
    const [command = '', ...args] = argv
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    const ended = new Promise(resolve => child.once('exit', code => resolve(code)))
    return Object.assign(new ScriptedDaemon(child.stdout, child.stdin, ended), { pid: child.pid ?? 0 })
  }

  request(method: string, params: unknown): Promise<unknown> {
    return this.#connection.request(method, params)
  }

  async initialize(instances: readonly ManagedInstance[]): Promise<unknown> {
    return this.request('initialize', {
      protocol_version: '1',
      capabilities: { provides: ['bridge.adapter'], granted_permissions: ['bridges/messages/ingest'] },
      runtime: {
        ...(this.dataDir === undefined ? {} : { data_dir: this.dataDir }),
        bridge: { runtime_version: '2', purpose: this.purpose, managed_instances: instances },
      },
    })
  }

  set(instances: readonly ManagedInstance[]): Promise<unknown> {
    return this.request('bridges/instances/set', { managed_instances: instances })
  }

  /** A delivery with a nonce of its own, a final one unless it says otherwise. */
  delivery(id: string, target: Delivery['target'], text: string, more: Partial<Delivery> = {}): Delivery {
    const n = ++this.#nonces
    const own = { delivery_id: `dlv_${n}`, part: 0, event: 'final', nonce: `nonce-${n}-${process.pid}` } as const
    return { bridge_instance_id: id, target, text, ...own, ...more }
  }

  async deliver(delivery: Delivery): Promise<DeliveryResult> {
    return (await this.request('bridges/deliver', { delivery })) as DeliveryResult
  }

  say(id: string, target: Delivery['target'], text: string, more: Partial<Delivery> = {}): Promise<DeliveryResult> {
    return this.deliver(this.delivery(id, target, text, more))
  }

  async settle(delivery: Delivery, since: number): Promise<SettleResult> {
    return (await this.request('bridges/settle', { delivery, since })) as SettleResult
  }

  async targets(id: string): Promise<readonly Target[]> {
    const reply = await this.request('bridges/targets/snapshot', { bridge_instance_id: id })
    return (reply as { targets: readonly Target[] }).targets
  }

  async verify(id: string): Promise<readonly Check[]> {
    const reply = await this.request('bridges/verify', { bridge_instance_id: id })
    return (reply as { checks: readonly Check[] }).checks
  }

  health(): Promise<unknown> {
    return this.request('health_check', {})
  }

  /** Resolves with the first value that is not undefined, looked for at each report and event. */
  until<T>(find: () => T | undefined, what: string): Promise<T> {
    return new Promise((resolve, reject) => {
      const look = () => {
        const found = find()
        if (found === undefined) return
        this.#watchers.delete(look)
        clearTimeout(timer)
        resolve(found)
      }
      const timer = setTimeout(() => {
        this.#watchers.delete(look)
        const seen = JSON.stringify({ reports: this.reports.slice(-10), events: this.events.slice(-10) })
        reject(new Error(`waited for ${what}; there was ${seen}`))
      }, MS)
      this.#watchers.add(look)
      look()
    })
  }

  /** Resolves with the next report of a status, from the given index of reports on. */
  status(status: StateReport['status'], from = 0): Promise<Reported> {
    return this.until(() => this.reports.slice(from).find(report => report.status === status), `the status ${status}`)
  }

  /** Resolves with the event of a text. */
  heard(text: string): Promise<Ingested> {
    return this.until(() => this.events.find(event => event.text === text), `the text ${text}`)
  }

  async shutdown(): Promise<void> {
    await this.request('shutdown', { reason: 'test', deadline_ms: 1000 })
    await this.ended
  }

  #changed(): void {
    for (const look of [...this.#watchers]) look()
  }
}

/** An instance as the daemon hands it over. */
export function managed(
  id: string,
  config: Readonly<Record<string, unknown>>,
  secrets: Readonly<Record<string, string>> = {},
): ManagedInstance {
  const bound = Object.entries(secrets).map(([binding_name, value]) => ({ binding_name, kind: 'secret', value }))
  return {
    instance: { id, display_name: id, platform: 'test', dm_policy: 'open', provider_config: config },
    bound_secrets: bound,
  }
}
