import type { Figure } from './report.js'

/** `last.json`: what the last `npm run bench -- --write` measured. */
export interface Measured {
  readonly node: string
  readonly cores: number
  readonly figures: readonly Figure[]
}

/** Rows that README shows, and what it says of them. */
const shown: Readonly<Record<string, string>> = {
  'durable PUT, 64 clients': 'Durable writes, 64 clients',
  'reopen after 100,000 transactions and a kill': 'Store recovery after 100,000 transactions and `kill -9`',
  'a turn of 10 chunks, durable, to its last frame': 'Agent turn, every event stored before it is shown',
  'cold start until the API answers': 'Daemon start until the API answers',
  'svc status': '`svc status`, start to exit',
  'idle RSS': 'Memory of an idle daemon',
}

/** Sections that have a row of the same name. */
const other: ReadonlySet<string> = new Set(['A vault of 10000 secrets'])

/** The table of README, a line each. Throws when a row was not measured. */
export function figuresTable({ figures }: Measured): string[] {
  const rows = Object.entries(shown).map(([what, text]) => {
    const figure = figures.find(figure => figure.what === what && !other.has(figure.section))
    if (figure === undefined) throw new Error(`no figure of ${what}; run npm run bench -- --write`)
    return `| ${text} | ${figure.ours} | ${figure.baseline} |`
  })
  return ['| what | svc | baseline of the same run |', '|---|---|---|', ...rows]
}
