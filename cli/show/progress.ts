import type { Sink } from '../io.js'

/** Shorter waits are not shown. */
const afterMs = 1000
const everyMs = 100
const frames = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏'

/** A status line on a terminal's standard error during a wait; it is removed afterwards. */
export class Progress {
  #waiting = false
  /** Work of the daemon that an interrupt of the command does not end. It stays after a failed wait: an interrupt may have failed it. */
  left: string | undefined

  /** @param on false without a terminal, for programs and in quiet mode */
  constructor(
    private readonly stderr: Sink,
    private readonly on: boolean,
  ) {}

  /**
   * Waits for `work` and shows a long wait, unless `what` is empty. A nested wait is not shown, because the outer one is.
   * @param left the work of the daemon that an interrupt of the command does not end
   */
  async during<T>(what: string, work: () => Promise<T>, left?: string): Promise<T> {
    const outer = this.left
    this.left ??= left
    const result = await this.#during(what, work)
    this.left = outer
    return result
  }

  async #during<T>(what: string, work: () => Promise<T>): Promise<T> {
    if (!this.on || this.#waiting || what === '') return work()
    this.#waiting = true
    const startedAt = Date.now()
    let shown = false
    let turn = 0
    const draw = () => {
      const ms = Date.now() - startedAt
      if (ms < afterMs) return
      shown = true
      // Cut to the line: a wrapped text could not be erased.
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
