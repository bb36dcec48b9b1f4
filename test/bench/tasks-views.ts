import { Child } from './child.js'
import type { Context } from './context.js'
import { makeHome, startDaemon } from './daemon.js'
import { runLoad } from './load-run.js'
import { inTurn, median, ms, pairs, ratioOf } from './measure.js'
import type { Row } from './report.js'
import type { TasksProcess } from './tasks-process.js'

const VIEWS = ['dashboard', 'inbox'] as const
const FEW = 200

/** What many tasks cost: a start, and the views of them; beside a home with few. */
export async function benchManyTasks(context: Context): Promise<void> {
  const { report, quick, program } = context
  const count = quick ? 10_000 : 100_000
  const [many, few] = [await left(context, 'tasks-many', count), await left(context, 'tasks-few', FEW)]
  const empty = makeHome(context.temp, 'tasks-none')
  const boot = async (home: typeof empty): Promise<number> => {
    const began = performance.now()
    const daemon = await startDaemon(context, home)
    const elapsed = performance.now() - began
    await daemon.stop()
    return elapsed
  }
  for (const home of [many, empty]) await boot(home)
  const boots = await pairs(
    quick ? 2 : 7,
    () => boot(many),
    () => boot(empty),
  )
  const rows: Row[] = [
    {
      what: `boot with ${count} tasks`,
      ours: ms(boots.a),
      baseline: `empty home: ${ms(boots.b)}`,
      ratio: boots.ratio,
      value: boots.a - boots.b,
      target: { atMost: 500, unit: 'ms more' },
    },
  ]
  const [full, small] = [await startDaemon(context, many), await startDaemon(context, few)]
  for (const view of VIEWS) {
    const load = (home: typeof empty) => () =>
      runLoad(program('load'), {
        socket: home.socket,
        method: 'GET',
        url: `/api/observe/tasks/${view}`,
        clients: 1,
        seconds: quick ? 1 : 2,
        body: '',
      })
    // The first round warms up.
    const [ours = [], theirs = []] = (await inTurn((quick ? 1 : 5) + 1, [load(many), load(few)])).map(all =>
      all.slice(1),
    )
    const p99 = (all: typeof ours) => all.map(one => one.p99)
    const textOf = (all: typeof ours) => `p50 ${ms(median(all.map(one => one.p50)))} p99 ${ms(median(p99(all)))}`
    rows.push({
      what: `${view} among ${count} tasks`,
      ours: textOf(ours),
      baseline: `among ${FEW}: ${textOf(theirs)}`,
      ratio: ratioOf(p99(ours), p99(theirs)),
      value: median(p99(ours)),
      target: { atMost: 20, unit: 'ms, p99' },
    })
  }
  await full.stop()
  await small.stop()
  report.section('Many tasks', rows)
}

/** A home with so many tasks, most of them completed, without a daemon. */
async function left({ temp, program }: Context, name: string, count: number): Promise<ReturnType<typeof makeHome>> {
  const home = makeHome(temp, name)
  const child = Child.start<TasksProcess>(program('tasks-process'), [home.home])
  await child.call('open', 8)
  await child.call('leave', count)
  await child.kill()
  return home
}
