import { Child } from './child.js'
import type { Context } from './context.js'
import { inTurn, median, ms, ratioOf } from './measure.js'
import type { Processes, ProcessesProcess } from './processes-process.js'
import type { Row } from './report.js'

/** Many processes that start and end at once, beside Node's own: what else the process does waits for the longest gap. */
export async function benchProcesses({ program, report, quick }: Context): Promise<void> {
  const [count, rounds] = quick ? [50, 3] : [200, 5]
  const sides = (['ours', 'bare'] as const).map(side => {
    const child = Child.start<ProcessesProcess>(program('processes-process'))
    return { child, measure: () => child.call(side, count) }
  })
  for (const { measure } of sides) await measure()
  const [ours = [], bare = []] = await inTurn(
    rounds,
    sides.map(({ measure }) => measure),
  )
  for (const { child } of sides) await child.kill()
  const row = (what: string, of: (one: Processes) => number): Row => {
    const [a, b] = [ours.map(of), bare.map(of)]
    return { what, ours: ms(median(a)), baseline: `bare spawn, one a turn: ${ms(median(b))}`, ratio: ratioOf(a, b) }
  }
  const gap = (of: (one: Processes) => number): Row => ({
    ...row('… longest gap of the loop', of),
    value: median(ours.map(of)),
    target: { atMost: 50, unit: 'ms' },
  })
  report.section(`Processes${quick ? ', coarse' : ''}`, [
    row(`${count} started at once`, one => one.startMs),
    gap(one => one.startGap),
    row(`${count} ended at once, and what they left looked for`, one => one.endMs),
    gap(one => one.endGap),
  ])
}
