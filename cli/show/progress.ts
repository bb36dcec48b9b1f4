import type { Sink } from '../io.js'

/** Nothing is shown of what takes less. */
const afterMs = 1000
const everyMs = 100
const frames = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏'

/** A line on a terminal's standard error that says what is waited for; it is gone when the waiting is over. */
export class Progress {
  #waiting = false

  /** @param on nothing is ever shown without a terminal, to programs, or when quiet */
  constructor(
    private readonly stderr: Sink,
    private readonly on: boolean,
  ) {}

  /** Waits for `work`, saying so when it takes long. Within another wait it says nothing: that one goes on. */
  async during<T>(what: string, work: () => Promise<T>): Promise<T> {
    if (!this.on || this.#waiting) return work()
    this.#waiting = true
    const begun = Date.now()
    let shown = false
    let turn = 0
    const draw = () => {
      const ms = Date.now() - begun
      if (ms < afterMs) return
      shown = true
      // Cut to the line: what wraps could not be erased.
      const text = `${frames[turn++ % frames.length]} ${what} ${Math.floor(ms / 1000)}s`
      this.stderr.write(`\r\x1b[K${text.slice(0, Math.max(0, (this.stderr.columns || 80) - 1))}`)
    }
    const timer = setInterval(draw, everyMs)
    timer.unref()
    try {
      return await work()
    } finally {
      clearInterval(timer)
      if (shown) this.stderr.write('\r\x1b[K')
      this.#waiting = false
    }
  }
}
