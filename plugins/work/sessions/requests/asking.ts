import type { Clock } from '../../../../kernel/plugin.js'
import type { EventContent } from '../events.js'

/** Questions that may come at once, and milliseconds between those that follow: 50 a second in the long run. */
const BURST = 100
const INTERVAL_MS = 20

/** What the pace of an agent's questions needs of its session. */
export interface AskingContext {
  readonly clock: Clock
  /** The turn that runs. */
  turnId(): string | undefined
  /** Writes a `runtime_warning` into the journal. */
  warn(turnId: string, content: EventContent): void
}

/**
 * How fast one agent may ask, and what it asked in vain. Each question is work for the daemon and its disk; an agent that
 * asks without end has its answers later, and other sessions keep their share.
 */
export class Asking {
  /** Monotonic milliseconds at which the next question is due. */
  #due = Number.NEGATIVE_INFINITY
  #refused = { turnId: '', count: 0, why: '' }

  constructor(private readonly context: AskingContext) {}

  /** Questions of the turn that runs, or of the one that ran last, which were refused because there were too many. */
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

  /** Counts a question that was refused; the first one of a turn is told at once, the others when it ends. */
  refuse(why: string): void {
    const turnId = this.context.turnId()
    if (turnId === undefined) return
    if (this.#refused.turnId !== turnId) this.#refused = { turnId, count: 0, why }
    this.#refused.count++
    if (this.#refused.count === 1) this.#tell(`the agent asks too much, what it asks is refused: ${why}`)
  }

  /** The turn is over, or about to be. */
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
