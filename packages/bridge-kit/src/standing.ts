import { messageOf } from './running.js'
import { clip } from './text.js'
import { backoffMs, type Timing } from './timing.js'
import { type Check, type Host, InstanceProblem, NotSent, type StateReport } from './types.js'

/** A connection that lasted this long resets the back-off. */
const STABLE_MS = 60_000

/** The state of an instance, derived from its requests or its connection and reported on change. */
export class Standing {
  #last: StateReport | undefined
  #hasBegun = false
  #why = ''

  constructor(
    private readonly host: Host,
    private readonly timing: Timing,
    private readonly publicUrl?: string,
  ) {}

  /** Why the last connection ended, as the end of a message; empty if there was none. */
  get lastAttempt(): string {
    return this.#why === '' ? '' : clip(` The last attempt: ${this.#why}`, 1000)
  }

  /**
   * Keeps a connection until the instance is closed: reopens it after each end, with back-off.
   * @param name The other end of the connection
   * @param connect Resolves with why the connection ended, or rejects; an {@link InstanceProblem} needs the operator and stops the
   * retries
   */
  async keep(name: string, connect: () => Promise<string>): Promise<void> {
    const { signal } = this.host
    for (let failures = 1; !signal.aborted; failures++) {
      const startedAt = this.timing.now()
      const why = await connect().catch(error => error as Error)
      if (signal.aborted) return
      if (why instanceof InstanceProblem) {
        this.#why = why.message
        this.report(why.state)
        return
      }
      if (this.timing.now() - startedAt > STABLE_MS) failures = 1
      const message = clip(`${name}: ${typeof why === 'string' ? why : messageOf(why)}`, 500)
      this.#why = message
      this.report({ status: 'degraded', reason: 'provider_timeout', message })
      await this.timing.sleep(backoffMs(failures, this.timing), signal).catch(() => {})
    }
  }

  /**
   * Retries the first call of an instance until it succeeds; the instance is then ready. Refused credentials stop the retries,
   * because the operator has to bind others, which reopens the instance.
   */
  async begin(first: () => Promise<void>): Promise<void> {
    const { signal } = this.host
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        await first()
        this.#hasBegun = true
        this.well()
        return
      } catch (error) {
        if (signal.aborted) return
        this.#failed(error, true)
        if (error instanceof NotSent && error.kind === 'missing_token') return
        const retryAfterMs = error instanceof NotSent ? error.how.retryAfterMs : undefined
        await this.timing.sleep(retryAfterMs ?? backoffMs(failures, this.timing), signal).catch(() => {})
      }
    }
  }

  /** Records a successful call. */
  well(): void {
    if (!this.#hasBegun) return
    this.report({ status: 'ready', ...(this.publicUrl === undefined ? {} : { webhook_public_url: this.publicUrl }) })
  }

  /** Records a failed call. A refusal of a single message does not change the state. */
  failed(error: unknown): void {
    this.#failed(error, false)
  }

  #failed(error: unknown, isFirst: boolean): void {
    const message = clip(messageOf(error), 500)
    const { kind, how } = error instanceof NotSent ? error : { kind: 'transient_delivery_failure', how: {} }
    if (kind === 'missing_token') this.report({ status: 'auth_required', reason: 'auth_failed', message })
    else if (kind === 'transient_delivery_failure' || isFirst) {
      const reason = 'retryAfterMs' in how && how.retryAfterMs !== undefined ? 'rate_limited' : 'provider_timeout'
      this.report({ status: 'degraded', reason, message })
    }
  }

  /** The last reported state. */
  get last(): StateReport | undefined {
    return this.#last
  }

  report(state: StateReport): void {
    if (JSON.stringify(state) === JSON.stringify(this.#last)) return
    this.#last = state
    this.host.report(state)
  }
}

/** A message if the last sign of life is more than `mostMs` ago; else undefined. */
export function silence(name: string, lastHeard: number, mostMs: number, timing: Timing): string | undefined {
  const silentMs = timing.now() - lastHeard
  return silentMs > mostMs ? `no data from ${name} for ${Math.round(silentMs / 1000)} s` : undefined
}

/** Checks of a webhook instance: whether its login works and whether an event has arrived. */
export async function checksOf(
  platform: string,
  login: () => Promise<string | undefined>,
  bind: string,
  hasHeard: boolean,
  webhook: Check,
): Promise<readonly Check[]> {
  const [status, remediation] = await login().then(
    who => ['pass', who ?? ''] as const,
    error => ['fail', `${bind}: ${messageOf(error)}`] as const,
  )
  return [
    { check: `${platform}.login`, status, remediation },
    {
      check: `${platform}.webhook`,
      status: hasHeard ? 'pass' : 'warn',
      remediation: hasHeard ? '' : webhook.remediation,
    },
  ]
}

/**
 * The check of a webhook that a person has to register at the platform.
 * @param how The instructions for a URL
 */
export function webhookCheck(publicUrl: string | undefined, how: (url: string) => string): Check {
  return publicUrl === undefined
    ? { check: 'webhook.registered', status: 'warn', remediation: 'Set provider_config.public_url.' }
    : { check: 'webhook.registered', status: 'skipped', remediation: how(publicUrl) }
}
