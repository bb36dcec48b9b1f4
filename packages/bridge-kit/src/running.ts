import { Inbox } from './inbox.js'
import { type RpcConnection, RpcError } from './rpc.js'
import { clip } from './text.js'
import { backoffMs, retrying, type Timing } from './timing.js'
import {
  type Adapter,
  type Check,
  type Delivery,
  type DeliveryResult,
  type Host,
  type Instance,
  InstanceProblem,
  NotSent,
  type SettleResult,
  type StateReport,
  type Target,
  type Unsettled,
  type Values,
} from './types.js'

/** An instance with its secrets, in the form of the protocol. */
export interface ManagedInstance {
  readonly instance: {
    readonly id: string
    readonly display_name?: string
    readonly platform?: string
    readonly workspace_id?: string
    readonly dm_policy?: string
    readonly provider_config?: Readonly<Record<string, unknown>> | null
  }
  readonly bound_secrets?: readonly { readonly binding_name: string; readonly kind?: string; readonly value: string }[]
}

/** Opens an adapter for one instance. */
export type Open = (instance: Instance, host: Host) => Adapter | Promise<Adapter>

/** Time limit for closing an instance. */
const CLOSE_MS = 5000

/** States that can only be left through `starting`. */
const RESTARTS: readonly StateReport['status'][] = ['auth_required', 'error']

/** Attempts for a value call while the daemon refuses calls. */
const VALUE_ATTEMPTS = 8
const BUSY = new Set(['rate_limited', 'too_many_requests', 'not_initialized'])

/** One open instance with its adapter, inbox and reports. */
export class Running implements Host {
  readonly #abort = new AbortController()
  readonly #inbox: Inbox
  #adapter: Adapter | undefined
  #opened: Promise<void> = Promise.resolve()
  #reported: StateReport['status'] | undefined
  #reports: Promise<void> = Promise.resolve()

  constructor(
    readonly managed: ManagedInstance,
    private readonly connection: RpcConnection,
    private readonly timing: Timing,
    readonly dataDir: string | undefined,
    readonly purpose: Host['purpose'],
  ) {
    const bridge = { bridge_instance_id: managed.instance.id }
    this.#inbox = new Inbox(
      event => connection.request('bridges/messages/ingest', { ...bridge, ...event }),
      timing,
      this.signal,
    )
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Opens the adapter; a failure becomes the reported state of the instance. */
  open(open: Open): Promise<void> {
    this.#opened = this.#open(open)
    return this.#opened
  }

  report(state: StateReport): void {
    if (this.signal.aborted) return
    if (this.#reported && RESTARTS.includes(this.#reported) && !RESTARTS.includes(state.status))
      if (state.status !== 'starting') this.#report({ status: 'starting' })
    this.#report(state)
  }

  readonly values: Values = {
    get: async key => ((await this.#value('state/get', key)) as { readonly value?: unknown }).value ?? undefined,
    put: async (key, value) => void (await this.#value('state/put', key, { value })),
  }

  ingest: Host['ingest'] = event => this.#inbox.ingest(event)

  reportDelivery: Host['reportDelivery'] = async report => {
    const params = { bridge_instance_id: this.managed.instance.id, ...report, reason: clip(report.reason, 4000) }
    const answer = await this.#inbox.untilTaken(() => this.connection.request('bridges/deliveries/report', params))
    return (answer as { outcome: 'recorded' | 'unknown' }).outcome
  }

  log(text: string): void {
    process.stderr.write(`${this.managed.instance.id}: ${clip(text.replace(/\s*\n\s*/g, ' '), 2000)}\n`)
  }

  async deliver(delivery: Delivery): Promise<DeliveryResult> {
    if (!this.#adapter) {
      const retry = { kind: 'transient_delivery_failure', message: 'the instance is not open yet', retry_after_ms: 500 }
      return { status: 'not_sent', permanent: false, ...retry } as DeliveryResult
    }
    try {
      return await this.#adapter.deliver(delivery)
    } catch (error) {
      if (error instanceof NotSent) return error.toResult()
      return { status: 'unknown', message: messageOf(error) }
    }
  }

  async settle(unsettled: Unsettled): Promise<SettleResult> {
    return (await this.#adapter?.settle?.(unsettled)) ?? { outcome: 'unknown' }
  }

  async targets(): Promise<readonly Target[]> {
    return (await this.#adapter?.targets()) ?? []
  }

  async verify(): Promise<readonly Check[]> {
    if (!this.#adapter) {
      const remediation = 'See the log of the adapter: svc extension logs'
      return [{ check: 'adapter.open', status: 'fail', remediation }]
    }
    return (await this.#adapter.verify?.()) ?? []
  }

  async registerWebhook(): Promise<Check> {
    const none = {
      check: 'webhook.registered',
      status: 'skipped',
      remediation: 'The platform has no webhook.',
    } as const
    return (await this.#adapter?.registerWebhook?.()) ?? none
  }

  deaf(): string | undefined {
    return this.#adapter?.deaf?.()
  }

  async close(): Promise<void> {
    this.#abort.abort()
    const closing = this.#opened.then(() => this.#adapter?.close()).catch(error => this.log(messageOf(error)))
    const timeout = new AbortController()
    await Promise.race([closing, this.timing.sleep(CLOSE_MS, timeout.signal).catch(() => {})])
    timeout.abort()
  }

  async #open(open: Open): Promise<void> {
    this.report({ status: 'starting' })
    try {
      this.#adapter = await open(instanceOf(this.managed), this)
    } catch (error) {
      this.log(messageOf(error))
      this.report(error instanceof InstanceProblem ? error.state : { status: 'error', message: messageOf(error) })
    }
  }

  /** Instances of one extension share its values, so each key is prefixed with the instance. */
  #value(method: string, key: string, more: object = {}): Promise<unknown> {
    const params = { key: `${this.managed.instance.id}/${key}`, ...more }
    return retrying(() => this.connection.request(method, params), {
      attempts: VALUE_ATTEMPTS,
      signal: this.signal,
      timing: this.timing,
      transient: error => error instanceof RpcError && BUSY.has(error.reason),
      retryAfter: error => (error instanceof RpcError ? error.retryAfterMs : undefined),
    })
  }

  #report(state: StateReport): void {
    this.#reported = state.status
    this.#reports = this.#reports.then(() => this.#sendReport(state))
  }

  async #sendReport(state: StateReport): Promise<void> {
    const params = { bridge_instance_id: this.managed.instance.id, ...state }
    for (let failures = 1; failures <= 5; failures++) {
      try {
        await this.connection.request('bridges/instances/report_state', params)
        return
      } catch (error) {
        if (this.signal.aborted) return
        this.log(`the state ${state.status} is not reported: ${messageOf(error)}`)
        await this.timing.sleep(backoffMs(failures, this.timing), this.signal).catch(() => {})
      }
    }
  }
}

function instanceOf({ instance, bound_secrets: secrets = [] }: ManagedInstance): Instance {
  return {
    id: instance.id,
    displayName: instance.display_name ?? instance.id,
    platform: instance.platform ?? '',
    ...(instance.workspace_id === undefined ? {} : { workspaceId: instance.workspace_id }),
    dmPolicy: instance.dm_policy ?? 'open',
    config: instance.provider_config ?? {},
    secret: slot => secrets.find(({ binding_name: name }) => name === slot)?.value,
  }
}

/** The message of any thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
