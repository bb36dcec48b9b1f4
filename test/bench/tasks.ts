import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { Child } from './child.js'
import type { Context } from './context.js'
import { makeHome, startDaemon } from './daemon.js'
import { inTurn, median, perSecond, ratioOf } from './measure.js'
import { installPackages } from './native.js'
import { type Server, startBeanstalkd, startPostgres, startRedis } from './queues/servers.js'
import { openSessions } from './queues/svc.js'
import type { Row } from './report.js'
import type { QueueAt, TasksLoad } from './tasks-load.js'
import type { TasksProcess } from './tasks-process.js'

const CLAIMANTS = [1, 8, 50] as const
const MOST = 50
/** Waiting besides what a round takes. */
const BACKLOG = 1000

/** What is measured: cycles a second by so many claimants. */
interface Side {
  readonly name: string
  fill(count: number): Promise<void>
  run(claimants: number, cycles: number): Promise<number>
  /** Completions with the next claim a second; claimants that did so can no longer run cycles. */
  runNext?(claimants: number, count: number): Promise<number>
  close(): Promise<void>
}

/** Claims, heartbeats and completions beside queues that are as durable: over the socket, and in the process. */
export async function benchTasks(context: Context): Promise<void> {
  const { report, quick } = context
  const why = installPackages(context.bench, ['pg', 'bullmq', 'ioredis'])
  const [socket, inside] = [await ourSocket(context), await ourProcess(context)]
  const others: Side[] = []
  for (const { name, start } of OTHERS) {
    const other = why !== undefined && name !== 'beanstalkd' ? why : await start(context)
    if (typeof other !== 'string') others.push(other)
    else report.skip(name, other)
  }
  const sides = [socket, inside, ...others]
  const rows: Row[] = []
  // Servers run for days: what is compared is code that V8 has compiled, of SQLite too.
  const warming = quick ? 200 : 2000
  for (const side of sides) {
    await side.fill(warming)
    await side.run(8, warming)
  }
  for (const claimants of CLAIMANTS) {
    const cycles = (quick ? 50 : 200) * (claimants === 1 ? 1 : claimants === 8 ? 3 : 6)
    const rounds = quick ? 1 : 3
    // The first round warms up this number of claimants.
    const all = await inTurn(
      rounds + 1,
      sides.map(side => async () => {
        await side.fill(cycles)
        return side.run(claimants, cycles)
      }),
    )
    const [over = [], within = [], ...rates] = all.map(each => each.slice(1))
    const by = `${claimants} claimant${claimants > 1 ? 's' : ''}`
    for (const [where, ours, isOf] of [
      ['over the socket', over, (name: string) => name !== 'beanstalkd'],
      ['in the process', within, (name: string) => name === 'beanstalkd'],
    ] as const) {
      const row = { what: `claim, heartbeat, complete ${where}, ${by}`, ours: perSecond(median(ours)) }
      const beside = others.flatMap(({ name }, n) => {
        if (!isOf(name)) return []
        const theirs = rates[n] as number[]
        const ratio = ratioOf(ours, theirs)
        const baseline = `${name}: ${perSecond(median(theirs))}`
        return [{ ...row, baseline, ratio, value: ratio, target: { atLeast: 1 } }]
      })
      rows.push(...(beside.length > 0 ? beside : [row]))
    }
  }
  rows.push(
    ...(await nextRows(
      quick,
      socket,
      others.find(({ name }) => name === 'PostgreSQL'),
    )),
  )
  for (const side of sides) await side.close()
  report.section('Tasks and leases, cycles a second beside queues that are as durable', rows)
}

/** A worker that completes a task and takes the next one: one request here, one transaction there. */
async function nextRows(quick: boolean, ours: Side, theirs: Side | undefined): Promise<Row[]> {
  const rows: Row[] = []
  for (const claimants of CLAIMANTS) {
    const count = (quick ? 50 : 200) * (claimants === 1 ? 1 : claimants === 8 ? 3 : 6)
    const sides = [ours, ...(theirs ? [theirs] : [])].map(side => async () => {
      await side.fill(count)
      return (await side.runNext?.(claimants, count)) ?? Number.NaN
    })
    const [own = [], other] = (await inTurn((quick ? 1 : 3) + 1, sides)).map(each => each.slice(1))
    const by = `${claimants} claimant${claimants > 1 ? 's' : ''}`
    const row = { what: `complete and claim the next over the socket, ${by}`, ours: perSecond(median(own)) }
    if (!other) rows.push(row)
    else {
      const ratio = ratioOf(own, other)
      const baseline = `PostgreSQL, one transaction: ${perSecond(median(other))}`
      rows.push({ ...row, baseline, ratio, value: ratio, target: { atLeast: 0.7 } })
    }
  }
  return rows
}

async function ourProcess({ temp, program }: Context): Promise<Side> {
  const home = path.join(temp, 'tasks-process')
  mkdirSync(home, { mode: 0o700 })
  const child = Child.start<TasksProcess>(program('tasks-process'), [home])
  await child.call('open', MOST)
  await child.call('fill', BACKLOG)
  return {
    name: 'svc',
    fill: count => child.call('fill', count),
    run: (claimants, cycles) => child.call('run', claimants, cycles),
    close: () => child.kill(),
  }
}

async function ourSocket(context: Context): Promise<Side> {
  const home = makeHome(context.temp, 'tasks-socket')
  writeFileSync(
    path.join(home.home, 'config.json'),
    JSON.stringify({ http: { port: 0 }, limits: { max_concurrent_agents: 1000 } }),
  )
  const agent = path.join(home.home, 'agents/claimant')
  mkdirSync(agent, { recursive: true })
  writeFileSync(path.join(agent, 'AGENT.md'), "---\nname: claimant\ncommand: 'true'\n---\nYou claim.\n")
  const daemon = await startDaemon(context, home)
  const token = readFileSync(path.join(home.home, 'operator.token'), 'utf8').trim()
  const sessions = await openSessions(home.socket, path.join(context.temp), MOST)
  return loadOf(
    context,
    'svc',
    { kind: 'svc', socket: home.socket, token, sessions },
    async () => void (await daemon.stop()),
  )
}

async function postgres(context: Context): Promise<Side | string> {
  const server = await startPostgres()
  if (typeof server === 'string') return server
  return behind(context, 'PostgreSQL', server, {
    kind: 'postgres',
    bench: context.bench,
    folder: server.folder,
    claimants: MOST,
  })
}

async function bullmq(context: Context): Promise<Side | string> {
  const server = await startRedis()
  if (typeof server === 'string') return server
  return behind(context, 'BullMQ', server, {
    kind: 'bullmq',
    bench: context.bench,
    socket: path.join(server.folder, 'redis.sock'),
  })
}

async function beanstalkd(context: Context): Promise<Side | string> {
  const server = await startBeanstalkd()
  if (typeof server === 'string') return server
  return behind(context, 'beanstalkd', server, { kind: 'beanstalkd', port: server.port, claimants: MOST })
}

const behind = (context: Context, name: string, server: Server, at: QueueAt) =>
  loadOf(context, name, at, () => server.stop())

const OTHERS = [
  { name: 'PostgreSQL', start: postgres },
  { name: 'BullMQ', start: bullmq },
  { name: 'beanstalkd', start: beanstalkd },
] as const

async function loadOf({ program }: Context, name: string, at: QueueAt, stop: () => Promise<void>): Promise<Side> {
  const child = Child.start<TasksLoad>(program('tasks-load'))
  await child.call('open', at)
  await child.call('fill', BACKLOG)
  return {
    name,
    fill: count => child.call('fill', count),
    run: (claimants, cycles) => child.call('run', claimants, cycles),
    runNext: (claimants, count) => child.call('runNext', claimants, count),
    close: async () => {
      await child.call('close')
      await child.kill()
      await stop()
    },
  }
}
