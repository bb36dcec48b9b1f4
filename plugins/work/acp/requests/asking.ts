import type { Clock } from '../../../../kernel/plugin.js'
import type { EventContent } from './content.js'

/** Burst of questions, and milliseconds between later ones: a sustained rate of 50 per second. */
const BURST = 100
const INTERVAL_MS = 20

/** The session as the rate limit of its questions sees it. */
export interface AskingContext {
  readonly clock: Clock
  /** The running turn. */
  turnId(): string | undefined
  /** Writes a `runtime_warning` into the journal. */
  warn(turnId: string, content: EventContent): void
}

/**
 * Rate limit for the questions of one agent, and a count of the refused ones. Each question costs the daemon CPU and disk writes;
 * an agent that floods gets delayed answers, so that other sessions keep their share.
 */
export class Asking {
  /** Monotonic milliseconds at which the next question is due. */
  #due = Number.NEGATIVE_INFINITY
  #refused = { turnId: '', count: 0, why: '' }

  constructor(private readonly context: AskingContext) {}

  /** Refused excess questions of the running turn, or of the last one. */
  get refused(): number {
    const turnId = this.context.turnId()
    return turnId === undefined || turnId === this.#refused.turnId ? this.#refused.count : 0
  }

  /** Resolves when the next question is due. */
  async pace(): Promise<void> {
    const { clock } = this.context
    const now = clock.monotonic()
    this.#due = Math.max(this.#due, now - BURST * INTERVAL_MS) + INTERVAL_MS
    const wait = this.#due - now
    if (wait > 0) await new Promise<void>(resolve => clock.timeout(wait, resolve, { unref: true }))
  }

  /** Counts a refused question. The first one of a turn is reported at once, the others when it ends. */
  refuse(why: string): void {
    const turnId = this.context.turnId()
    if (turnId === undefined) return
    if (this.#refused.turnId !== turnId) this.#refused = { turnId, count: 0, why }
    this.#refused.count++
    if (this.#refused.count === 1) this.#tell(`the agent asks too many questions; further ones are refused: ${why}`)
  }

  /** Reports the refused questions of a turn that ends. */
  endTurn(): void {
    const { turnId, count, why } = this.#refused
    if (count > 1 && turnId === this.context.turnId())
      this.#tell(`${count} questions of the agent were refused: ${why}`)
  }

  #tell(text: string): void {
    const { turnId, count } = this.#refused
    this.context.warn(turnId, { warning: 'permission_flood', refused: count, text })
  }
}
