import { SchedulerStalled } from '../api.js'
import type { TaskCore } from '../core.js'
import { TaskSettings } from '../settings.js'
import { whoOf } from '../who.js'

/** What a look at the runs that wait came to. */
export type Look =
  /** Nothing was to be started, or runs are held. */
  | 'fine'
  /** A session is being started. */
  | 'starting'
  /** There were runs to start, and none was. */
  | 'vain'

/** How the scheduler has stood still; nothing while it does not. */
export interface Stall {
  readonly looks: number
  readonly waiting: number
}

/** Counts the looks in a row that came to nothing, and says so when those are too many; not again for a while. */
export class Stalls {
  #looks = 0
  #waiting = 0
  #saidAt: number | undefined

  constructor(private readonly core: TaskCore) {}

  /** Undefined while it is well, or while so few looks were in vain that it may be. */
  get current(): Stall | undefined {
    const most = this.core.kernel.config.get(TaskSettings.badTicks)
    return most > 0 && this.#looks >= most ? { looks: this.#looks, waiting: this.#waiting } : undefined
  }

  /** A session was started. */
  started(): void {
    this.#looks = 0
  }

  /** @param waiting runs that were to be started */
  async note(look: Look, waiting: number): Promise<void> {
    if (look === 'starting') return
    this.#looks = look === 'vain' ? this.#looks + 1 : 0
    this.#waiting = waiting
    const { current } = this
    if (!current || !this.#isDue()) return
    this.#saidAt = this.core.now()
    const { actor, log, needs } = this.core.kernel
    log.warn(`${current.looks} looks in a row found ${waiting} runs to start and started none`)
    await this.core.write(whoOf(actor), t => needs.events.emit(t, SchedulerStalled, { ...current }, { actor }))
  }

  #isDue(): boolean {
    const cooldown = this.core.kernel.config.get(TaskSettings.badTickCooldown)
    return this.#saidAt === undefined || this.core.now() - this.#saidAt >= cooldown
  }
}
