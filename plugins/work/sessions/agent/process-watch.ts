import type { Clock, Timer } from '../../../../kernel/plugin.js'
import { stoppedGroups } from './pulse.js'

/** Looks within the time after which a process that stands still is stale. */
const LOOKS = 3
/** Milliseconds for which a look holds: whoever asks again within them is told what was seen then. */
const FRESH_MS = 500

/** A process that is looked at, with the group that it leads. */
export interface Watched {
  readonly group: number
  /** It was looked at: whether it runs. */
  looked(runs: boolean): void
}

/**
 * Looks at the processes of all sessions together, with one timer; without processes there is none. It asks the system
 * alone: an agent that runs and would answer nothing is found by the turn that it leaves unanswered.
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

  /** Looks now, unless it has just looked. */
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
