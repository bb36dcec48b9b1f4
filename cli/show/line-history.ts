const mostLines = 200

/** Earlier input lines, which the arrow keys bring back. */
export class LineHistory {
  /** Newest first. */
  #lines: readonly string[]
  /** Index of the line that is shown; -1: the typed one. */
  #at = -1
  /** The typed line and its part before the cursor, kept from the first arrow key until another key. */
  #typed: { readonly line: string; readonly start: string } | undefined

  /** @param lines newest first */
  constructor(lines: readonly string[]) {
    this.#lines = lines.slice(0, mostLines)
  }

  /** Adds an entered line; an earlier one that is equal goes. */
  add(line: string): void {
    this.stop()
    if (line.trim() !== '') this.#lines = [line, ...this.#lines.filter(other => other !== line)].slice(0, mostLines)
  }

  /** The next line in a direction that begins with what stood before the cursor at first; undefined if there is none. */
  next(way: 'older' | 'newer', line: string, cursor: number): string | undefined {
    this.#typed ??= { line, start: line.slice(0, cursor) }
    const { start, line: typed } = this.#typed
    const step = way === 'older' ? 1 : -1
    let at = this.#at + step
    while (this.#lines[at]?.startsWith(start) === false || this.#lines[at] === line) at += step
    if (at < -1 || at >= this.#lines.length) return undefined
    this.#at = at
    return at === -1 ? typed : this.#lines[at]
  }

  /** Ends a search: the shown line counts as typed. */
  stop(): void {
    this.#at = -1
    this.#typed = undefined
  }
}
