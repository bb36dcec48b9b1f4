import { Alarm } from '../../../kernel/kit/alarm.js'
import { messageOf, type PluginKernel } from '../../../kernel/plugin.js'

const RETRY_MS = 60_000

/** Calls due wake-ups, with one timer for all sessions, and none while no session waits. */
export class WakeScheduler {
  readonly #alarm: Alarm

  /** @param cycle decides about the due sessions, earliest first, and sets their next due times */
  constructor(
    private readonly kernel: Pick<PluginKernel, 'clock' | 'log'>,
    private readonly cycle: (sessions: readonly string[]) => Promise<void>,
  ) {
    this.#alarm = new Alarm(kernel.clock, { retryMs: RETRY_MS })
  }

  get size(): number {
    return this.#alarm.size
  }

  /** Sets the due time of a session, in epoch milliseconds; undefined: never. */
  set(session: string, at: number | undefined): void {
    this.#alarm.set(session, at)
  }

  get nextDue(): number | undefined {
    return this.#alarm.next
  }

  run(signal: AbortSignal): Promise<void> {
    const failed = (error: unknown, { length: sessions }: readonly string[]) =>
      this.kernel.log.error(`wake-ups could not be decided: ${messageOf(error)}`, { sessions })
    return this.#alarm.run(signal, { fire: this.cycle, failed })
  }
}
