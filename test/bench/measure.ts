import { spawn } from 'node:child_process'

/** Middle value; of an even number the mean of the two. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1
    ? (sorted[middle] as number)
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2
}

/** Measurements in turn, A B C A B C …, so that a machine whose speed drifts disturbs all alike; results by measurement. */
export async function inTurn<T>(rounds: number, measurements: readonly (() => Promise<T>)[]): Promise<T[][]> {
  const results = measurements.map((): T[] => [])
  for (let round = 0; round < rounds; round++)
    for (const [i, measure] of measurements.entries()) results[i]?.push(await measure())
  return results
}

/** Two measurements in turn: the medians, and the median of the ratios of neighbours. */
export async function pairs(rounds: number, a: () => Promise<number>, b: () => Promise<number>) {
  const [as = [], bs = []] = await inTurn(rounds, [a, b])
  return { a: median(as), b: median(bs), ratio: ratioOf(as, bs) }
}

/** Median of the ratios of measurements that were taken next to each other. */
export function ratioOf(as: readonly number[], bs: readonly number[]): number {
  return median(as.map((value, i) => value / (bs[i] as number)))
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

export const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))
export const ms = (value: number): string => `${value.toFixed(value < 10 ? 2 : 0)} ms`
export const mib = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(0)} MiB`
export const perSecond = (rate: number): string => `${rate < 100 ? rate.toFixed(1) : rate.toFixed(0)}/s`
