import { spawn } from 'node:child_process'

/** Middle value; of an even number the mean of the two. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1
    ? (sorted[middle] as number)
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2
}

/** Runs two measurements in turn, A B A B …, so that a machine whose speed drifts disturbs both alike. */
export async function pairs(n: number, a: () => Promise<number>, b: () => Promise<number>) {
  const [as, bs]: [number[], number[]] = [[], []]
  for (let i = 0; i < n; i++) {
    as.push(await a())
    bs.push(await b())
  }
  return { a: median(as), b: median(bs), ratio: median(as.map((value, i) => value / (bs[i] as number))) }
}

/** Milliseconds from start to end of a whole process; throws when it fails. */
export function timed(argv: readonly string[], env: NodeJS.ProcessEnv = process.env): Promise<number> {
  const began = performance.now()
  return new Promise((resolve, reject) => {
    const [command = '', ...args] = argv
    const child = spawn(command, args, { env, stdio: ['ignore', 'ignore', 'pipe'] })
    let errors = ''
    child.stderr.on('data', chunk => {
      errors += chunk
    })
    child.once('error', reject)
    child.once('exit', code =>
      code === 0 ? resolve(performance.now() - began) : reject(new Error(`${argv.join(' ')}: ${code}\n${errors}`)),
    )
  })
}

/** One line of the report. */
export interface Row {
  readonly what: string
  readonly ours: string
  readonly baseline: string
  readonly ratio: string
  readonly target?: string
}

/** Prints rows as a table. */
export function printRows(rows: readonly Row[]): void {
  const columns = ['what', 'ours', 'baseline', 'ratio', 'target'] as const
  const widths = columns.map(c => Math.max(c.length, ...rows.map(row => (row[c] ?? '').length)))
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, i) => cell.padEnd(widths[i] as number))
      .join('  ')
      .trimEnd()
  console.log(line(columns))
  for (const row of rows) console.log(line(columns.map(c => row[c] ?? '')))
}
