import { existsSync } from 'node:fs'
import path from 'node:path'
import { Child } from './child.js'
import { buildPrograms, type Context, type Sections } from './context.js'
import { makeHome, startDaemon } from './daemon.js'
import type { ExtensionHostHandlers } from './extension-host.js'
import { traffic } from './extension-life.js'
import { NAME } from './extension-module.js'
import { filled } from './kernel.js'
import type { KernelHandlers } from './kernel-process.js'
import { runLoad } from './load-run.js'
import { inTurn, median, mib, ms, pause, perSecond, ratioOf } from './measure.js'
import { BODY } from './put.js'
import type { Row } from './report.js'
import { cpuMs, rss } from './start.js'

/** What is said to be worse than it was: by so much, what runs in turn on a machine with other work does not differ. */
const MOST = 1.05
const RECORDS = 10_000
const JOBS = 100_000

type Home = ReturnType<typeof makeHome>
/** This build, and the other one. */
type Both<T> = readonly [T, T]

/**
 * This build beside another one, whose checkout (built, with its packages) is in `folder`: requests, boots, reloads, calls of
 * hooks and idle memory, in turn. Each fills its homes and runs its programs of the bench itself. Ratios are of the new to the
 * old, and more is worse; requests and boots are judged by the processor time of the daemon, which other work disturbs less.
 */
export function against(folder: string): Sections {
  const root = path.resolve(folder)
  if (!existsSync(path.join(root, 'dist/daemon.cjs'))) throw new Error(`there is no build in ${root}`)
  const rows = { requests, boots, reloads, hooks: hookCalls, memory: idle }
  const section = (name: keyof typeof rows) => async (context: Context) => {
    const both: Both<Context> = [context, { ...context, root, program: await buildPrograms(root) }]
    context.report.section(`${name}: new, old`, await rows[name](both))
  }
  return Object.fromEntries(Object.keys(rows).map(name => [name, [section(name as keyof typeof rows)]]))
}

const each = async <T, R>([a, b]: Both<T>, work: (one: T, name: 'new' | 'old') => Promise<R>): Promise<Both<R>> => [
  await work(a, 'new'),
  await work(b, 'old'),
]

/** Measured in turn; the first round warms up. */
async function compared<R>(rounds: number, [a, b]: Both<() => Promise<R>>): Promise<Both<R[]>> {
  const [news = [], olds = []] = (await inTurn(rounds + 1, [a, b])).map(results => results.slice(1))
  return [news, olds]
}

const judged = (ratio: number) => ({ ratio, value: ratio, target: { atMost: MOST } })

async function homeOf({ temp, ...context }: Context, name: string, what: 'notes' | 'jobs', count: number) {
  const home = makeHome(temp, name)
  if (count > 0) await filled({ temp, ...context }, home.home, what, count, true)
  // What is made only once is there, and the caches of the file system are warm.
  await (await startDaemon({ temp, ...context }, home)).stop()
  return home
}

async function requests(both: Both<Context>): Promise<Row[]> {
  const [{ quick, program }] = both
  const homes = await each(both, (context, name) => homeOf(context, `${name}-requests`, 'notes', RECORDS))
  const daemons = await each(both, (context, name) => startDaemon(context, homes[name === 'new' ? 0 : 1]))
  const measure = (which: 0 | 1, method: string, url: string, clients: number) => async () => {
    const { pid } = daemons[which]
    const load = { socket: homes[which].socket, method, url, clients, seconds: 0.5, body: method === 'PUT' ? BODY : '' }
    const before = cpuMs(pid)
    const result = await runLoad(program('load'), load)
    return { ...result, cpu: (cpuMs(pid) - before) / result.requests }
  }
  const rows: Row[] = []
  for (const [what, method, url, clients] of [
    ['GET of a record', 'GET', '/api/resources/bench.note/notes-7', 1],
    ['GET of a list of 50', 'GET', '/api/resources?kind=bench.note&limit=50', 1],
    ['durable PUT, 1 client', 'PUT', '/api/resources/bench.note/#', 1],
    ['durable PUT, 16 clients', 'PUT', '/api/resources/bench.note/#', 16],
    ['durable PUT, 64 clients', 'PUT', '/api/resources/bench.note/#', 64],
  ] as const) {
    const results = await compared(quick ? 2 : 11, [measure(0, method, url, clients), measure(1, method, url, clients)])
    const textOf = (all: (typeof results)[0]) =>
      `${perSecond(median(all.map(one => one.rate)))} p50 ${ms(median(all.map(one => one.p50)))} cpu ${ms(median(all.map(one => one.cpu)))}`
    const [ours, theirs] = results
    rows.push({
      what,
      ours: textOf(ours),
      baseline: textOf(theirs),
      ...judged(
        ratioOf(
          ours.map(one => one.cpu),
          theirs.map(one => one.cpu),
        ),
      ),
    })
  }
  for (const daemon of daemons) await daemon.stop()
  return rows
}

async function boots(both: Both<Context>): Promise<Row[]> {
  const { quick } = both[0]
  const boot = (context: Context, home: Home) => async () => {
    const began = performance.now()
    const daemon = await startDaemon(context, home)
    const elapsed = performance.now() - began
    const cpu = cpuMs(daemon.pid)
    await daemon.stop()
    return { took: elapsed, cpu }
  }
  const rows: Row[] = []
  for (const [what, kind, count] of [
    ['empty home', 'notes', 0],
    [`${RECORDS} records`, 'notes', RECORDS],
    [`${JOBS} jobs`, 'jobs', JOBS],
  ] as const) {
    const homes = await each(both, (context, name) => homeOf(context, `${name}-boot-${count}`, kind, count))
    const [ours, theirs] = await compared(quick ? 2 : 7, [boot(both[0], homes[0]), boot(both[1], homes[1])])
    const textOf = (all: typeof ours) =>
      `${ms(median(all.map(one => one.took)))} cpu ${ms(median(all.map(one => one.cpu)))}`
    const ratio = ratioOf(
      ours.map(one => one.cpu),
      theirs.map(one => one.cpu),
    )
    rows.push({ what: `boot, ${what}`, ours: textOf(ours), baseline: textOf(theirs), ...judged(ratio) })
  }
  return rows
}

async function reloads(both: Both<Context>): Promise<Row[]> {
  const [{ quick }] = both
  const lasting = quick ? 1000 : 3000
  const children = await each(both, async ({ program }) => {
    const child = Child.start<ExtensionHostHandlers>(program('extension-host'))
    return { child, socket: await child.call('start') }
  })
  const measure =
    ({ child, socket }: (typeof children)[0]) =>
    async () => {
      const reloading = child.call('reloads', lasting)
      const { p99, failed } = await traffic(socket, `/api/ext/${NAME}/3`, 100, reloading)
      if (failed > 0) throw new Error(`${failed} requests failed during reloads`)
      return { took: lasting / (await reloading), p99 }
    }
  const [ours, theirs] = await compared(quick ? 1 : 5, [measure(children[0]), measure(children[1])])
  for (const { child } of children) await child.kill()
  const textOf = (all: typeof ours) =>
    `${ms(median(all.map(one => one.took)))}, requests p99 ${ms(median(all.map(one => one.p99)))}`
  const ratio = ratioOf(
    ours.map(one => one.took),
    theirs.map(one => one.took),
  )
  return [{ what: 'reload of an extension under load', ours: textOf(ours), baseline: textOf(theirs), ...judged(ratio) }]
}

async function hookCalls(both: Both<Context>): Promise<Row[]> {
  const { quick } = both[0]
  const rows: Row[] = []
  for (const taps of [1, 20]) {
    const homes = await each(both, async ({ temp }, name) => makeHome(temp, `${name}-hooks-${taps}`).home)
    // A process each time: what was tapped in one before would be called as well.
    const measure = (i: 0 | 1) => async () => {
      const child = Child.start<KernelHandlers>(both[i].program('kernel-process'))
      await child.call('open', homes[i])
      const { ours } = await child.call('hook', taps, quick ? 10_000 : 50_000)
      await child.call('close')
      await child.kill()
      return ours
    }
    const [ours, theirs] = await compared(quick ? 2 : 7, [measure(0), measure(1)])
    const textOf = (all: number[]) => `${(median(all) / 1000).toFixed(2)} us`
    rows.push({
      what: `hook call, ${taps} tap${taps > 1 ? 's' : ''}`,
      ours: textOf(ours),
      baseline: textOf(theirs),
      ...judged(ratioOf(ours, theirs)),
    })
  }
  return rows
}

/** Both at once, some seconds after their start. */
async function idle(both: Both<Context>): Promise<Row[]> {
  if (!existsSync('/proc/self/status')) return []
  const homes = await each(both, (context, name) => homeOf(context, `${name}-idle`, 'notes', 0))
  const measured: Both<number[]> = [[], []]
  for (let round = 0; round < (both[0].quick ? 1 : 3); round++) {
    const daemons = await each(both, (context, name) => startDaemon(context, homes[name === 'new' ? 0 : 1]))
    await pause(15_000)
    for (const i of [0, 1] as const) measured[i].push(rss(daemons[i].pid))
    for (const daemon of daemons) await daemon.stop()
  }
  const [ours, theirs] = measured
  const [a, b] = [median(ours), median(theirs)]
  return [{ what: 'idle RSS', ours: mib(a), baseline: mib(b), ...judged(ratioOf(ours, theirs)) }]
}
