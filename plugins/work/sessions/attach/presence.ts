import type { Clock, Ids } from '../../../../kernel/plugin.js'
import type { PresenceBody } from '../../../../schemas/sessions.js'
import { SessionErrors } from '../api.js'

/** Milliseconds for which a viewer counts as present without a new report. */
const LASTS_MS = 60_000
/** Maximum viewers of one session, and of all sessions. */
const MAX_OF_ONE = 64
const MAX_OF_ALL = 4096

/** The current viewers of sessions, in memory only: viewers repeat their report periodically. */
export class Presence {
  readonly #leases = new Map<string, { readonly sessionId: string; readonly until: number }>()

  constructor(
    private readonly clock: Pick<Clock, 'monotonic'>,
    private readonly ids: Pick<Ids, 'id'>,
  ) {}

  /**
   * Records whether a viewer shows a session; returns the lease for later reports, none when it stopped showing it.
   * @throws Fault `presence_lost` (409) for an expired lease, `presence_full` (409)
   */
  report(sessionId: string, { visible, lease_id: leaseId }: PresenceBody): string | undefined {
    this.#forgetOld()
    if (leaseId !== undefined && this.#leases.get(leaseId)?.sessionId !== sessionId) {
      if (!visible) return undefined
      throw SessionErrors.presence_lost()
    }
    if (!visible) {
      if (leaseId !== undefined) this.#leases.delete(leaseId)
      return undefined
    }
    if (leaseId === undefined && (this.#of(sessionId) >= MAX_OF_ONE || this.#leases.size >= MAX_OF_ALL)) {
      throw SessionErrors.presence_full()
    }
    const id = leaseId ?? this.ids.id('pre')
    this.#leases.set(id, { sessionId, until: this.clock.monotonic() + LASTS_MS })
    return id
  }

  /** Whether a viewer shows this session. */
  sees(sessionId: string): boolean {
    this.#forgetOld()
    return this.#of(sessionId) > 0
  }

  #of(sessionId: string): number {
    let count = 0
    for (const lease of this.#leases.values()) if (lease.sessionId === sessionId) count++
    return count
  }

  #forgetOld(): void {
    const now = this.clock.monotonic()
    for (const [id, { until }] of this.#leases) if (until <= now) this.#leases.delete(id)
  }
}
