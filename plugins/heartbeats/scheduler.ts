import { messageOf, type PluginKernel } from '../../kernel/plugin.js'
import { DueHeap } from '../automation/api.js'

/** While something waits the wall clock is looked at so often: timers do not notice when it is set or the machine sleeps. */
const LONGEST_SLEEP_MS = 60_000
const RETRY_MS = 60_000

/** Calls what is due, all sessions in one heap and with one timer; with nothing in the heap there is no timer at all. */
export class WakeScheduler {
  readonly #heap = new DueHeap()
  #stir: () => void = () => {}

  /** @param cycle decides about the sessions that are due, the earliest first, and sets when each is due next */
  constructor(
    private readonly kernel: Pick<PluginKernel, 'clock' | 'log'>,
    private readonly cycle: (sessions: readonly string[]) => Promise<void>,
  ) {}

  get size(): number {
    return this.#heap.size
  }

  /** When a session is due, in epoch milliseconds; undefined: never. */
  set(session: string, at: number | undefined): void {
    if (at === undefined) this.#heap.delete(session)
    else this.#heap.set(session, at)
    this.#stir()
  }

  get nextDue(): number | undefined {
    return this.#heap.peek()?.at
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const now = this.kernel.clock.now()
      const due: string[] = []
      for (let first = this.#heap.take(now); first; first = this.#heap.take(now)) due.push(first.key)
      if (due.length === 0) await this.#sleep(now, signal)
      else {
        await this.cycle(due).catch(error => {
          this.kernel.log.error(`wake-ups could not be decided: ${messageOf(error)}`, { sessions: due.length })
          for (const session of due) this.#heap.set(session, now + RETRY_MS)
        })
      }
    }
  }

  #sleep(now: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.kernel
    return new Promise(resolve => {
      const end = () => {
        timer?.cancel()
        signal.removeEventListener('abort', end)
        this.#stir = () => {}
        resolve()
      }
      const next = this.#heap.peek()
      const timer = next && clock.timeout(Math.min(next.at - now, LONGEST_SLEEP_MS), end, { unref: true })
      this.#stir = end
      signal.addEventListener('abort', end, { once: true })
    })
  }
}
