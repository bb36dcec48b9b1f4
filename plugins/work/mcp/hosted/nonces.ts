import { createHash, timingSafeEqual } from 'node:crypto'
import type { Clock, Ids } from '../../../../kernel/plugin.js'

/** From the moment when its agent runs; before that it has not had time to use it. */
const LIFETIME_MS = 30_000
/** However long an agent takes to start. */
const LONGEST_MS = 10 * 60_000

interface Nonce {
  readonly hash: Buffer
  expiresAt: number
}

/** One nonce a session and start: a connection that shows it speaks for the process that the daemon started, until it is spent. */
export class Nonces {
  readonly #bySession = new Map<string, Nonce>()

  constructor(
    private readonly clock: Clock,
    private readonly ids: Ids,
  ) {}

  /** A new one; that of the start before counts no more. */
  issue(sessionId: string): string {
    const nonce = this.ids.hex(24)
    this.#bySession.set(sessionId, { hash: hashOf(nonce), expiresAt: this.clock.monotonic() + LONGEST_MS })
    return nonce
  }

  /** The agent of a session runs: it has 30 s from now. */
  started(sessionId: string): void {
    const nonce = this.#bySession.get(sessionId)
    if (nonce) nonce.expiresAt = Math.min(nonce.expiresAt, this.clock.monotonic() + LIFETIME_MS)
  }

  /** Whether it is the one of this session and counts. */
  admits(sessionId: string, given: string): boolean {
    const nonce = this.#bySession.get(sessionId)
    if (!nonce || !timingSafeEqual(nonce.hash, hashOf(given))) return false
    return this.clock.monotonic() <= nonce.expiresAt
  }

  /** The nonce of a session counts no more: it was spent, or the session has stopped. */
  forget(sessionId: string): void {
    this.#bySession.delete(sessionId)
  }
}

const hashOf = (text: string) => createHash('sha256').update(text).digest()
