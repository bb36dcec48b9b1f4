/** A run of characters in one style. */
export interface Cell {
  readonly char: string
  /** Active SGR codes, such as `1;31`; empty: no style. */
  readonly style: string
}

const esc = String.fromCharCode(27)
const parts = new RegExp(`${esc}\\[[?\\d;]*[A-Za-z]|${esc}.|[^]`, 'gu')
const control = new RegExp(`^${esc}\\[([?\\d;]*)([A-Za-z])$`)
const blank: Cell = { char: ' ', style: '' }

/** A minimal terminal: cursor movement, erasing and colours. */
export class TerminalScreen {
  #lines: Cell[][] = [[]]
  #row = 0
  #column = 0
  #style = new Set<string>()

  constructor(
    readonly columns: number,
    readonly rows: number,
  ) {}

  /** The visible rows, the newest last. */
  get shown(): readonly (readonly Cell[])[] {
    const lines = this.#lines.slice(-this.rows)
    return lines.map(line => line.slice(0, lastFilled(line) + 1))
  }

  write(text: string): void {
    for (const [part] of text.matchAll(parts)) this.#take(part)
  }

  #take(part: string): void {
    const [, parameters = '', final] = control.exec(part) ?? []
    if (final !== undefined) this.#control(final, parameters)
    else if (part === '\n') this.#down()
    else if (part === '\r') this.#column = 0
    else if (part >= ' ' && !part.startsWith(esc)) this.#put(part)
  }

  #control(final: string, parameters: string): void {
    const count = Number(parameters.split(';')[0]) || 1
    if (final === 'A') this.#row = Math.max(0, this.#row - count)
    else if (final === 'B') this.#row = Math.min(this.#lines.length - 1, this.#row + count)
    else if (final === 'C') this.#column = Math.min(this.columns - 1, this.#column + count)
    else if (final === 'D') this.#column = Math.max(0, this.#column - count)
    else if (final === 'G') this.#column = count - 1
    else if (final === 'K') this.#line.length = Math.min(this.#line.length, this.#column)
    else if (final === 'J') {
      this.#line.length = Math.min(this.#line.length, this.#column)
      this.#lines.length = this.#row + 1
    } else if (final === 'm') this.#colour(parameters)
  }

  #colour(parameters: string): void {
    for (const code of parameters.split(';')) {
      if (code === '' || code === '0') this.#style.clear()
      else this.#style.add(code)
    }
  }

  get #line(): Cell[] {
    this.#lines[this.#row] ??= []
    return this.#lines[this.#row] as Cell[]
  }

  #put(char: string): void {
    if (this.#column >= this.columns) {
      this.#down()
      this.#column = 0
    }
    const line = this.#line
    while (line.length < this.#column) line.push(blank)
    line[this.#column] = { char, style: [...this.#style].sort().join(';') }
    this.#column++
  }

  #down(): void {
    this.#row++
    this.#lines[this.#row] ??= []
  }
}

function lastFilled(line: readonly Cell[]): number {
  return line.findLastIndex(({ char }) => char !== ' ')
}
