import { SchedulerStalled } from '../api.js'
import type { TaskCore } from '../core.js'
import { TaskSettings } from '../settings.js'
import { whoOf } from '../who.js'

/** Result of a scheduler pass. */
export type PassOutcome =
  /** No run had to be started, or runs are active. */
  | 'fine'
  /** A session is being started. */
  | 'starting'
  /** No session was started for the queued runs. */
  | 'vain'

/** A stalled scheduler: passes without a started session, and queued runs. */
export interface Stall {
  readonly looks: number
  readonly waiting: number
}

/** Counts consecutive passes without a started session and warns above the threshold, at most once per cooldown. */
export class Stalls {
  #looks = 0
  #waiting = 0
  #saidAt: number | undefined

  constructor(private readonly core: TaskCore) {}

  /** Undefined below the threshold. */
  get current(): Stall | undefined {
    const most = this.core.kernel.config.get(TaskSettings.badTicks)
    return most > 0 && this.#looks >= most ? { looks: this.#looks, waiting: this.#waiting } : undefined
  }

  /** A session was started. */
  started(): void {
    this.#looks = 0
  }

  /** @param waiting number of runs to start */
  async note(outcome: PassOutcome, waiting: number): Promise<void> {
    if (outcome === 'starting') return
    this.#looks = outcome === 'vain' ? this.#looks + 1 : 0
    this.#waiting = waiting
    const { current } = this
    if (!current || !this.#isDue()) return
    this.#saidAt = this.core.now()
    const { actor, log, needs } = this.core.kernel
    log.warn(`the scheduler is stalled: ${current.looks} passes in a row started none of ${waiting} queued runs`)
    await this.core.write(whoOf(actor), t => needs.events.emit(t, SchedulerStalled, { ...current }, { actor }))
  }

  #isDue(): boolean {
    const cooldown = this.core.kernel.config.get(TaskSettings.badTickCooldown)
    return this.#saidAt === undefined || this.core.now() - this.#saidAt >= cooldown
  }
}
