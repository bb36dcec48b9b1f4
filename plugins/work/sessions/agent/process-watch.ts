import type { Clock, Timer } from '../../../../kernel/plugin.js'
import { stoppedGroups } from './pulse.js'

/** Looks within the time after which an unresponsive process is stale. */
const LOOKS = 3
/** Milliseconds for which the result of a look is reused. */
const FRESH_MS = 500

/** A watched process, with its process group. */
export interface Watched {
  readonly group: number
  /** Receives the result of a look: whether the process runs. */
  looked(runs: boolean): void
}

/**
 * Looks at the processes of all sessions with one timer, which exists only while there are processes. It asks the operating system
 * alone: a process that runs but never answers is found by the supervision of its turn.
 */
export class ProcessWatch {
  readonly #watched = new Set<Watched>()
  #timer: Timer | undefined
  #lookedAt = Number.NEGATIVE_INFINITY

  /** @param staleAfterMs read before each look */
  constructor(
    private readonly clock: Clock,
    private readonly staleAfterMs: () => number,
  ) {}

  add(watched: Watched): void {
    this.#watched.add(watched)
    if (!this.#timer) this.#wait()
  }

  delete(watched: Watched): void {
    this.#watched.delete(watched)
    if (this.#watched.size === 0) this.close()
  }

  /** Looks now, unless the last look is recent enough. */
  look(): void {
    const now = this.clock.monotonic()
    if (this.#watched.size === 0 || now - this.#lookedAt < FRESH_MS) return
    this.#lookedAt = now
    const stopped = stoppedGroups()
    for (const watched of [...this.#watched]) watched.looked(!stopped.has(watched.group))
  }

  close(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #wait(): void {
    const again = () => {
      this.look()
      this.#wait()
    }
    this.#timer = this.clock.timeout(this.staleAfterMs() / LOOKS, again, { unref: true })
  }
}
