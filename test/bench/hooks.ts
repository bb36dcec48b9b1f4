import { Child } from './child.js'
import type { Context } from './context.js'
import type { HooksProcess, Way } from './hooks-process.js'
import { inTurn, median } from './measure.js'
import type { Row } from './report.js'

/** Microseconds of the slowest of a hundred that each way may take; a start of a program has no target but the bare one. */
const MOST: readonly (readonly [way: Way, what: string, times: number, p99?: number])[] = [
  ['none', 'no hook matches', 2000, 1],
  ['native', 'a function', 2000, 20],
  ['warm', 'a Python program that stays', 300, 1000],
  ['spawned', 'a program started for it', 20],
]

/** A dispatch by executor, beside a bare start of a program that is told the same. */
export async function benchHooks({ program, report, quick }: Context): Promise<void> {
  const child = Child.start<HooksProcess>(program('hooks-process'))
  const rounds = quick ? 3 : 10
  const ways = [...MOST, ['bare', '', 20] as const]
  const measure = ways.map(
    ([way, , times]) =>
      () =>
        child.call('run', way, times),
  )
  for (const one of measure) for (let warmUp = 0; warmUp < 3; warmUp++) await one()
  const all = await inTurn(rounds, measure)
  await child.kill()
  const of = (figures: readonly number[], part: number) =>
    figures.toSorted((a, b) => a - b)[Math.floor(figures.length * part)] ?? 0
  /** The median of the rounds: what else the machine does falls upon some of them. */
  const at = (runs: readonly (readonly number[])[], part: number) => median(runs.map(figures => of(figures, part)))
  const baseline = all.at(-1) ?? []
  const us = (value: number) => `${value < 10 ? value.toFixed(2) : Math.round(value)} µs`
  report.section(
    `Hooks${quick ? ', coarse' : ''}`,
    MOST.map(([, what, , p99], i): Row => {
      const figures = all[i] ?? []
      return {
        what: `dispatch: ${what}`,
        ours: `p50 ${us(at(figures, 0.5))}, p99 ${us(at(figures, 0.99))}`,
        baseline: `bare spawn: p50 ${us(at(baseline, 0.5))}, p99 ${us(at(baseline, 0.99))}`,
        ratio: at(figures, 0.5) / at(baseline, 0.5),
        ...(p99 !== undefined && { value: at(figures, 0.99), target: { atMost: p99, unit: 'µs at p99' } }),
      }
    }),
  )
}
