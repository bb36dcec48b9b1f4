import { realpathSync, statSync } from 'node:fs'
import path from 'node:path'
import { Child } from './child.js'
import type { Context } from './context.js'
import { makeHome, startDaemon } from './daemon.js'
import type { GrownProcess } from './grown-process.js'
import { mib, ms, pairs, pause } from './measure.js'
import type { Row } from './report.js'
import { leadTo } from './session-home.js'
import type { SessionsFill } from './sessions-fill.js'
import { rss } from './start.js'
import type { TasksProcess } from './tasks-process.js'

/** Days after which everything that is finished has moved out of the catalog. */
const PASSED_DAYS = 100

/** What a home of months costs beside an empty one, as it is and after what is finished has moved out of the catalog. */
export async function benchGrown(context: Context): Promise<void> {
  const { temp, report, quick, program } = context
  const factor = Number(process.env.GROWN_FACTOR ?? (quick ? 0.05 : 1))
  const home = await grown(context, factor)
  const empty = makeHome(temp, 'grown-none')
  const rows: Row[] = []
  const look = async (what: string, isGoal: boolean) => {
    const start = (of: typeof home) => async () => {
      const began = performance.now()
      const daemon = await startDaemon(context, of)
      const elapsed = performance.now() - began
      await daemon.stop()
      return elapsed
    }
    await start(home)()
    await start(empty)()
    const boot = await pairs(quick ? 2 : 5, start(home), start(empty))
    const memory = await pairs(1, idleRss(context, home), idleRss(context, empty))
    const goal = (atMost: number, unit: string) => (isGoal && factor === 1 ? { target: { atMost, unit } } : {})
    const bytes = statSync(path.join(home.home, 'svc.db')).size
    rows.push(
      {
        what: `start, ${what}`,
        ours: ms(boot.a),
        baseline: `empty: ${ms(boot.b)}`,
        ratio: boot.ratio,
        value: boot.a,
        ...goal(1000, 'ms'),
      },
      {
        ...{ what: `idle RSS, ${what}`, ours: mib(memory.a), baseline: `empty: ${mib(memory.b)}`, ratio: memory.ratio },
        ...{ value: memory.a / 2 ** 20, ...goal(180, 'MiB') },
      },
      { what: `svc.db, ${what}`, ours: mib(bytes) },
    )
  }
  await look('everything in the catalog', false)
  const child = Child.start<GrownProcess>(program('grown-process'), [home.home])
  const began = performance.now()
  const moved = await child.call('pass', PASSED_DAYS)
  rows.push({ what: `moving ${moved} entries`, ours: ms(performance.now() - began) })
  await child.kill()
  await look(`after ${PASSED_DAYS} days`, true)
  report.section(factor === 1 ? 'Grown home' : `Grown home, ${factor} of its size`, rows)
}

/** A home of the size that `factor` is of a large one. */
export async function grown({ temp, program }: Context, factor: number): Promise<ReturnType<typeof makeHome>> {
  const of = (count: number) => Math.max(50, Math.round(count * factor))
  const home = makeHome(temp, 'grown')
  const root = realpathSync(temp)
  const tasks = Child.start<TasksProcess>(program('tasks-process'), [home.home])
  await tasks.call('open', 8)
  await tasks.call('leave', of(100_000))
  await tasks.kill()
  // The plugins of the processes before do not know the settings of sessions.
  leadTo(home, 1)
  const sessions = Child.start<SessionsFill>(program('sessions-fill'), [home.home, root])
  await sessions.call('fill', of(10_000), Math.max(1000, of(500_000)), 1000)
  await sessions.kill()
  const rest = Child.start<GrownProcess>(program('grown-process'), [home.home])
  await rest.call('grow', of(50_000), of(5000))
  await rest.kill()
  return home
}

/** Resident memory of a daemon that has been idle for a while. */
function idleRss(context: Context, home: ReturnType<typeof makeHome>): () => Promise<number> {
  return async () => {
    const daemon = await startDaemon(context, home)
    await pause(20_000)
    const bytes = rss(daemon.pid)
    await daemon.stop()
    return bytes
  }
}
