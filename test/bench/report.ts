/** What a figure has to reach. */
export type Target =
  | { readonly atLeast: number; readonly unit?: string }
  | { readonly atMost: number; readonly unit?: string }

/** One line of the report; `value` is what the target is about. */
export interface Row {
  readonly what: string
  readonly ours: string
  readonly baseline?: string
  readonly ratio?: number
  readonly value?: number
  readonly target?: Target
}

/** A row as it is printed. */
export interface Figure {
  readonly section: string
  readonly what: string
  readonly ours: string
  readonly baseline: string
  readonly ratio: string
}

const COLUMNS = ['what', 'ours', 'baseline', 'ratio', 'target'] as const

/** Prints the sections as they come, and at the end what is reached and what is not. */
export class Report {
  /** Every row, for `last.json`: what README tells is held against it. */
  readonly figures: Figure[] = []
  readonly #reached: string[] = []
  readonly #missed: string[] = []
  readonly #skipped: string[] = []

  section(title: string, rows: readonly Row[]): void {
    const cells = rows.map(row => ({
      what: row.what,
      ours: row.ours,
      baseline: row.baseline ?? '',
      ratio: row.ratio?.toFixed(2) ?? '',
      target: this.#judge(row),
    }))
    for (const { what, ours, baseline, ratio } of cells)
      this.figures.push({ section: title, what, ours, baseline, ratio })
    const widths = COLUMNS.map(column => Math.max(column.length, ...cells.map(cell => cell[column].length)))
    const line = (texts: readonly string[]) =>
      texts
        .map((text, i) => text.padEnd(widths[i] as number))
        .join('  ')
        .trimEnd()
    console.log(`\n${title}\n${line(COLUMNS)}`)
    for (const cell of cells) console.log(line(COLUMNS.map(column => cell[column])))
  }

  skip(what: string, why: string): void {
    this.#skipped.push(what)
    console.log(`\n${what}: skipped, ${why}`)
  }

  end(): void {
    const skipped = this.#skipped.length > 0 ? `; skipped: ${this.#skipped.join(', ')}` : ''
    const missed = this.#missed.length > 0 ? `: ${this.#missed.join('; ')}` : ''
    console.log(`\n${this.#reached.length} targets reached, ${this.#missed.length} missed${missed}${skipped}`)
  }

  #judge({ what, value, target }: Row): string {
    if (target === undefined) return ''
    const text = 'atLeast' in target ? `at least ${target.atLeast}` : `at most ${target.atMost}`
    const figure = target.unit === undefined ? text : `${text} ${target.unit}`
    if (value === undefined) return `${figure}, not measured`
    const holds = 'atLeast' in target ? value >= target.atLeast : value <= target.atMost
    ;(holds ? this.#reached : this.#missed).push(what)
    return holds ? figure : `${figure}  MISSED`
  }
}
