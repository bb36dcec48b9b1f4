import { createHash, timingSafeEqual } from 'node:crypto'
import type { Clock, Ids } from '../../../../kernel/plugin.js'

/** Milliseconds from the start of the agent; it cannot use the nonce earlier. */
const LIFETIME_MS = 30_000
/** Milliseconds for an agent to start. */
const LONGEST_MS = 10 * 60_000

interface Nonce {
  readonly hash: Buffer
  expiresAt: number
}

/** One nonce per start of a session: a connection with it acts for the started process, until it is spent. */
export class Nonces {
  readonly #bySession = new Map<string, Nonce>()

  constructor(
    private readonly clock: Clock,
    private readonly ids: Ids,
  ) {}

  /** Creates a nonce, which invalidates that of an earlier start. */
  issue(sessionId: string): string {
    const nonce = this.ids.hex(24)
    this.#bySession.set(sessionId, { hash: hashOf(nonce), expiresAt: this.clock.monotonic() + LONGEST_MS })
    return nonce
  }

  /** Limits the nonce to 30 s from the start of the agent. */
  started(sessionId: string): void {
    const nonce = this.#bySession.get(sessionId)
    if (nonce) nonce.expiresAt = Math.min(nonce.expiresAt, this.clock.monotonic() + LIFETIME_MS)
  }

  /** Whether it is the session's valid nonce. */
  admits(sessionId: string, candidate: string): boolean {
    const nonce = this.#bySession.get(sessionId)
    if (!nonce || !timingSafeEqual(nonce.hash, hashOf(candidate))) return false
    return this.clock.monotonic() <= nonce.expiresAt
  }

  /** Invalidates the nonce of a session, because it was spent or the session has stopped. */
  forget(sessionId: string): void {
    this.#bySession.delete(sessionId)
  }
}

const hashOf = (text: string) => createHash('sha256').update(text).digest()
