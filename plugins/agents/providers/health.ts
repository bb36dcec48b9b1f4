import { column, table } from '../../../kernel/kit/table.js'
import { cut } from '../../../kernel/kit/text.js'
import type { EventType, Tx } from '../../../kernel/plugin.js'
import type { Recorded } from '../../work/sessions/api.js'
import {
  ProviderAuthRequired,
  type ProviderEvent,
  ProviderPermissionDenied,
  ProviderRateLimited,
  ProviderRecovered,
  ProviderUnavailable,
} from './api.js'
import type { K } from './needs.js'

export const healthTable = `CREATE TABLE providers_health (
  provider TEXT NOT NULL PRIMARY KEY, state TEXT NOT NULL, at INTEGER NOT NULL
) STRICT`

/** Reason why a provider does not answer. */
export type ProviderTrouble = 'auth_required' | 'rate_limited' | 'permission_denied' | 'unavailable'

const { text, time } = column
/** Providers whose latest turn failed because of the provider. */
export const troubled = table('providers_health', { provider: text(), state: text<ProviderTrouble>(), at: time() })

const EVENTS: Readonly<Record<ProviderTrouble, EventType<ProviderEvent>>> = {
  auth_required: ProviderAuthRequired,
  rate_limited: ProviderRateLimited,
  permission_denied: ProviderPermissionDenied,
  unavailable: ProviderUnavailable,
}

/** Patterns for the error messages of all agents about a model that did not answer, most specific first. */
const WORDS: readonly (readonly [ProviderTrouble, RegExp])[] = [
  ['rate_limited', /\brate.?limit|\btoo many requests\b|\busage limit|\bquota\b|\b429\b/i],
  [
    'auth_required',
    /(?:wants|requires) a login|authentication required|not logged in|please (?:log|sign) ?in|\b(?:invalid|missing|incorrect|expired)\b.{0,20}\b(?:api.?key|token|credential)|\bunauthori[sz]ed\b|\bauthentication_error\b|\b401\b/i,
  ],
  ['permission_denied', /\bpermission_error\b|\bforbidden\b|\b(?:access|permission) denied\b|\b403\b/i],
  [
    'unavailable',
    /\boverloaded|\bservice unavailable\b|\bbad gateway\b|\bgateway time-?out\b|\b(?:502|503|504|529)\b|\bECONNREFUSED\b|\bECONNRESET\b|\bENOTFOUND\b|\bEAI_AGAIN\b|\bETIMEDOUT\b|\bfetch failed\b/i,
  ],
]

/** The provider-related reason of a failed turn; undefined for another reason. */
export const troubleOf = (error: string): ProviderTrouble | undefined =>
  WORDS.find(([, words]) => words.test(error))?.[0]

/** Most characters of an error text in an event. */
const MESSAGE = 500
/**
 * Turns that must fail for unknown reasons within UNKNOWN_MS, with no completed one between them, to count as a failure
 * of the provider.
 */
const UNKNOWN = 3
const UNKNOWN_MS = 10 * 60_000

/** Writes an event when a provider begins to fail and when it recovers: changes only, also across restarts. */
export class ProviderHealth {
  /** Times of the latest turns that failed for unknown reasons, by provider. */
  readonly #unknown = new Map<string, readonly number[]>()

  constructor(private readonly kernel: Pick<K, 'clock' | 'db' | 'needs' | 'redact'>) {}

  /** Handles the end of a turn. */
  turnEnded({ sessionId, type, content }: Recorded): Promise<void> | undefined {
    const provider = this.kernel.needs.sessions.current?.get(sessionId)?.provider
    if (provider === undefined) return undefined
    if (type === 'done') return content.status === 'completed' ? this.works(provider) : undefined
    if (typeof content.error !== 'string') return undefined
    const trouble = troubleOf(content.error)
    if (trouble) return this.fails(provider, trouble, content.error)
    // A synthetic error of a turn interrupted by a restart is not the provider's failure.
    return content.synthetic === true ? undefined : this.#failsUnknown(provider, content.error)
  }

  #failsUnknown(provider: string, message: string): Promise<void> | undefined {
    const now = this.kernel.clock.now()
    const times = [...(this.#unknown.get(provider) ?? []).filter(at => now - at < UNKNOWN_MS), now].slice(-UNKNOWN)
    this.#unknown.set(provider, times)
    if (times.length < UNKNOWN || this.#stateOf(provider) !== undefined) return undefined
    return this.fails(provider, 'unavailable', `${UNKNOWN} turns in a row failed; the last error: ${message}`)
  }

  /** Handles the result of a login check. */
  loginChecked(provider: string, isLoggedIn: boolean): Promise<void> | undefined {
    if (!isLoggedIn) return this.fails(provider, 'auth_required', 'it is not logged in')
    return this.#stateOf(provider) === 'auth_required' ? this.works(provider) : undefined
  }

  fails(provider: string, state: ProviderTrouble, message: string): Promise<void> | undefined {
    if (this.#stateOf(provider) === state) return undefined
    const { clock, db } = this.kernel
    return db.tx(t => {
      if (this.#stateOf(provider) === state) return
      troubled.replace(t, { provider, state, at: clock.now() })
      this.#tell(t, EVENTS[state], { provider, message: cut(this.kernel.redact.text(message), MESSAGE) })
    })
  }

  works(provider: string): Promise<void> | undefined {
    this.#unknown.delete(provider)
    if (this.#stateOf(provider) === undefined) return undefined
    return this.kernel.db.tx(t => {
      if (troubled.delete(t, { provider }) > 0) this.#tell(t, ProviderRecovered, { provider })
    })
  }

  #stateOf(provider: string): ProviderTrouble | undefined {
    return troubled.get(this.kernel.db, { provider })?.state
  }

  #tell(t: Tx, type: EventType<ProviderEvent>, payload: ProviderEvent): void {
    this.kernel.needs.events.emit(t, type, payload, { subject: payload.provider })
  }
}
