import { messageOf } from './running.js'
import { clip } from './text.js'
import { backoffMs, type Timing } from './timing.js'
import { type Check, type Host, InstanceProblem, NotSent, type StateReport } from './types.js'

/** A connection that lasted this long starts the back-off anew. */
const STABLE_MS = 60_000

/** How an instance stands, by what its requests or its connection tell; it is reported when it changes. */
export class Standing {
  #last: StateReport | undefined
  #begun = false
  #why = ''

  constructor(
    private readonly host: Host,
    private readonly timing: Timing,
    private readonly publicUrl?: string,
  ) {}

  /** Why the last connection ended, for the end of a sentence; empty where there was none. */
  get lastAttempt(): string {
    return this.#why === '' ? '' : clip(` The last attempt: ${this.#why}`, 1000)
  }

  /**
   * Keeps a connection until the instance is closed: opens it anew after each end, with growing waits.
   * @param name what the connection is to
   * @param connect resolves with why it ended, or rejects; an {@link InstanceProblem} needs the operator and ends it
   */
  async keep(name: string, connect: () => Promise<string>): Promise<void> {
    const { signal } = this.host
    for (let failures = 1; !signal.aborted; failures++) {
      const begun = this.timing.now()
      const why = await connect().catch(error => error as Error)
      if (signal.aborted) return
      if (why instanceof InstanceProblem) {
        this.#why = why.message
        this.report(why.state)
        return
      }
      if (this.timing.now() - begun > STABLE_MS) failures = 1
      const message = clip(`${name}: ${typeof why === 'string' ? why : messageOf(why)}`, 500)
      this.#why = message
      this.report({ status: 'degraded', reason: 'provider_timeout', message })
      await this.timing.sleep(backoffMs(failures, this.timing), signal).catch(() => {})
    }
  }

  /**
   * Makes the first call of an instance until it succeeds, after which the instance is ready. Refused credentials end it: they need
   * the operator, and binding others opens the instance anew.
   */
  async begin(first: () => Promise<void>): Promise<void> {
    const { signal } = this.host
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        await first()
        this.#begun = true
        this.well()
        return
      } catch (error) {
        if (signal.aborted) return
        this.#failed(error, true)
        if (error instanceof NotSent && error.kind === 'missing_token') return
        const asked = error instanceof NotSent ? error.how.retryAfterMs : undefined
        await this.timing.sleep(asked ?? backoffMs(failures, this.timing), signal).catch(() => {})
      }
    }
  }

  /** A call succeeded. */
  well(): void {
    if (!this.#begun) return
    this.report({ status: 'ready', ...(this.publicUrl === undefined ? {} : { webhook_public_url: this.publicUrl }) })
  }

  /** A call failed. A refusal that concerns one message alone changes nothing. */
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

  /** What was reported last. */
  get last(): StateReport | undefined {
    return this.#last
  }

  report(state: StateReport): void {
    if (JSON.stringify(state) === JSON.stringify(this.#last)) return
    this.#last = state
    this.host.report(state)
  }
}

/** Says that nothing was heard for longer than that; undefined: it was. */
export function silence(name: string, lastHeard: number, mostMs: number, timing: Timing): string | undefined {
  const silentMs = timing.now() - lastHeard
  return silentMs > mostMs ? `nothing was heard of ${name} for ${Math.round(silentMs / 1000)} s` : undefined
}

/** Checks of an instance with a webhook: whether its login works, and whether an event has come. */
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

/** The check of a webhook that a person registers at the platform. @param how what to do there with the address */
export function webhookCheck(publicUrl: string | undefined, how: (url: string) => string): Check {
  return publicUrl === undefined
    ? { check: 'webhook.registered', status: 'warn', remediation: 'Set provider_config.public_url.' }
    : { check: 'webhook.registered', status: 'skipped', remediation: how(publicUrl) }
}
