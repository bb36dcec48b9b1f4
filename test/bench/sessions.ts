import { readFileSync, realpathSync } from 'node:fs'
import path from 'node:path'
import type { AcpAgent } from './acp-agent.js'
import type { AcpClient } from './acp-client.js'
import type { Script } from './acp-script.js'
import type { Broadcast } from './broadcast.js'
import { Child } from './child.js'
import type { Context } from './context.js'
import { startDaemon } from './daemon.js'
import { inTurn, median, mib, ms, pairs, perSecond, ratioOf } from './measure.js'
import type { Row } from './report.js'
import { call, homeWith, last } from './session-home.js'
import type { SessionsFill } from './sessions-fill.js'
import { cpuMs } from './start.js'
import type { StreamLoad } from './stream-load.js'

interface Bench {
  readonly context: Context
  readonly socket: string
  readonly daemon: Awaited<ReturnType<typeof startDaemon>>
  readonly load: Child<StreamLoad>
  readonly sdk: Child<AcpClient>
  readonly port: number
  /** Starts a session with a process; its path, and the sequence of its newest event. */
  open(): Promise<string>
}

/** Events of the session that a long one is compared with: as many as its newest page. */
const FEW = 25_000
const SHORT: Script = { kind: 'text', updates: 10, bytes: 100, gapMs: 0 }

/** Sessions beside the bare ACP client with the same agent; many readers of one beside a bare server. */
export async function benchSessions(context: Context): Promise<void> {
  const { program, temp, report, quick } = context
  const agent = Child.start<AcpAgent>(program('acp-agent'))
  const port = await agent.call('listen')
  const home = homeWith(temp, 'sessions-live', port)
  const daemon = await startDaemon(context, home, { gaps: true })
  const root = realpathSync(temp)
  const added = await call(home.socket, 'POST', '/api/workspaces/resolve', { path: root })
  const { id } = added.workspace
  const open = async () => {
    const { session } = await call(home.socket, 'POST', '/api/sessions', {
      workspace: id,
      agent_name: 'scripted',
      sandbox: 'none',
    })
    return `/api/workspaces/${id}/sessions/${session.id}`
  }
  const load = Child.start<StreamLoad>(program('stream-load'))
  const sdk = Child.start<AcpClient>(program('acp-client'))
  const bench: Bench = { context, socket: home.socket, daemon, load, sdk, port, open }
  const rows = [
    ...(await turnCost(bench)),
    await manySessions(bench),
    ...(await longTurn(bench)),
    ...(await manyReaders(bench)),
  ]
  for (const child of [load, sdk]) await child.kill()
  await daemon.stop()
  await agent.kill()
  report.section(`Sessions${quick ? ', coarse' : ''}`, rows)
}

async function turnCost({ context, socket, load, sdk, port, open }: Bench): Promise<Row[]> {
  const [rounds, count] = context.quick ? [2, 20] : [5, 40]
  const at = await open()
  await sdk.call('connect', port, 1)
  await load.call('turns', socket, at, 0, 1, SHORT)
  const ours = async () => median(await load.call('turns', socket, at, await last(socket, at), count, SHORT))
  const bare = async () => median(await sdk.call('turns', count, SHORT))
  const { a, b, ratio } = await pairs(rounds, ours, bare)
  return [
    {
      what: 'a turn of 10 chunks, durable, to its last frame',
      ours: ms(a),
      baseline: `bare SDK client: ${ms(b)}`,
      ratio,
      value: ratio,
      target: { atMost: 2 },
    },
  ]
}

/**
 * Judged by the processor time of the daemon and of the bare client: agents, relays and readers of all sessions share the
 * processors with them, so that the elapsed times say more about the number of processors.
 */
async function manySessions({ context, socket, daemon, load, sdk, port, open }: Bench): Promise<Row> {
  const [sessions, rounds] = context.quick ? [20, 1] : [100, 5]
  const script: Script = { kind: 'text', updates: 400, bytes: 100, gapMs: 0 }
  const ats = await Promise.all(Array.from({ length: sessions }, open))
  const places = () => Promise.all(ats.map(async at => [at, await last(socket, at)] as const))
  await load.call('all', socket, await places(), script)
  await sdk.call('connect', port, sessions)
  await sdk.call('all', script)
  const chunks = sessions * script.updates
  const measured = (pid: number, work: () => Promise<number>) => async () => {
    const before = cpuMs(pid)
    const rate = (chunks * 1000) / (await work())
    return { rate, cpu: ((cpuMs(pid) - before) * 1000) / chunks }
  }
  const [ours = [], bare = []] = await inTurn(rounds, [
    measured(daemon.pid, async () => load.call('all', socket, await places(), script)),
    measured(sdk.pid, () => sdk.call('all', script)),
  ])
  await Promise.all(ats.map(at => call(socket, 'POST', `${at}/stop`)))
  const cpu = (all: typeof ours) => all.map(one => one.cpu)
  const text = (all: typeof ours) =>
    `${median(cpu(all)).toFixed(1)} us of a processor, ${perSecond(median(all.map(one => one.rate)))}`
  const ratio = ratioOf(cpu(ours), cpu(bare))
  const what = `a chunk of ${sessions} sessions streaming at once`
  return { what, ours: text(ours), baseline: `bare: ${text(bare)}`, ratio, value: ratio, target: { atMost: 1.2 } }
}

async function longTurn({ context, socket, daemon, load, sdk, port, open }: Bench): Promise<Row[]> {
  const rounds = context.quick ? 1 : 3
  const script: Script = { kind: 'text', updates: 20_000, bytes: 100, gapMs: 0 }
  const at = await open()
  await load.call('turns', socket, at, 0, 1, SHORT)
  await sdk.call('connect', port, 1)
  await daemon.longestGap()
  const ours = async () => median(await load.call('turns', socket, at, await last(socket, at), 1, script))
  const { a, b, ratio } = await pairs(rounds, ours, () => sdk.call('all', script))
  return [
    { what: '20,000 chunks of one turn', ours: ms(a), baseline: `bare: ${ms(b)}`, ratio },
    { what: "longest gap of the daemon's loop meanwhile", ours: ms(await daemon.longestGap()) },
  ]
}

async function manyReaders({ context, socket, daemon, load, open }: Bench): Promise<Row[]> {
  const [wanted, rounds] = context.quick ? [500, 1] : [5000, 3]
  // A daemon gives connections of one door a quarter of its files, and streams half of those; some are others'.
  const readers = Math.min(wanted, Math.floor(openFiles() / 8) - 16)
  const at = await open()
  await load.call('turns', socket, at, 0, 1, SHORT)
  const broadcast = Child.start<Broadcast>(context.program('broadcast'))
  const bareSocket = path.join(context.temp, 'broadcast.sock')
  await broadcast.call('listen', bareSocket)
  const flood: Script = { kind: 'tool', updates: 200, bytes: 100, gapMs: 0 }
  const paced: Script = { ...flood, updates: 20, gapMs: 200 }
  const read = (script: Script) => [
    async () => load.call('readers', socket, at, await last(socket, at), readers, script),
    async () => load.call('readers', bareSocket, '/', 0, readers, script),
  ]
  const [ours = [], bare = []] = await inTurn(rounds, read(flood))
  const [late = [], bareLate = []] = await inTurn(rounds, read(paced))
  await broadcast.kill()
  const long: Script = { ...flood, updates: 20_000, bytes: 500 }
  // What such a turn takes by itself is not the slow reader's.
  await load.call('turns', socket, at, await last(socket, at), 1, long)
  const before = residentBytes(daemon.pid)
  const slow = await load.call('slow', socket, at, await last(socket, at), long)
  const grown = residentBytes(daemon.pid) - before
  const rates = (seen: typeof ours) => seen.map(one => (one.frames * 1000) / one.ms)
  const p99 = (seen: typeof ours) => seen.map(one => one.p99)
  const [rate, lateness] = [ratioOf(rates(ours), rates(bare)), ratioOf(p99(late), p99(bareLate))]
  return [
    {
      what: `one stream to ${readers} readers`,
      ours: `${perSecond(median(rates(ours)))} frames`,
      baseline: `bare server: ${perSecond(median(rates(bare)))}`,
      ratio: rate,
      value: rate,
      target: { atLeast: 0.9 },
    },
    {
      what: '… from the agent to a reader, 5 frames a second, p99',
      ours: ms(median(p99(late))),
      baseline: `bare, without the agent: ${ms(median(p99(bareLate)))}`,
      ratio: lateness,
      value: lateness,
      target: { atMost: 1.5 },
    },
    {
      what: `a reader that stands still for ${slow.missed} frames`,
      ours: `caught up in ${ms(slow.ms)}, daemon ${grown < 0 ? '-' : '+'}${mib(Math.abs(grown))}`,
    },
  ]
}

/** Ten thousand sessions that are over beside none, and one with a million events beside one with few. */
export async function benchStoredSessions(context: Context): Promise<void> {
  const { program, temp, report, quick } = context
  const [count, events, rounds] = quick ? [1000, 100_000, 2] : [10_000, 1_000_000, 5]
  const root = realpathSync(temp)
  const [many, none] = [homeWith(temp, 'sessions-many', 1), homeWith(temp, 'sessions-none', 1)]
  const fill = Child.start<SessionsFill>(program('sessions-fill'), [many.home, root])
  const { workspace, long, short } = await fill.call('fill', count, events, FEW)
  await fill.kill()
  const start = (home: typeof many) => async () => {
    const began = performance.now()
    const daemon = await startDaemon(context, home)
    const elapsedMs = performance.now() - began
    await daemon.stop()
    return elapsedMs
  }
  const boot = await pairs(rounds, start(many), start(none))
  const daemon = await startDaemon(context, many, { gaps: true })
  const load = Child.start<StreamLoad>(program('stream-load'))
  const rows: Row[] = [
    {
      what: `start with ${count} sessions`,
      ours: ms(boot.a),
      baseline: `with none: ${ms(boot.b)}`,
      ratio: boot.ratio,
      value: boot.ratio,
      target: { atMost: 1.1 },
    },
  ]
  await daemon.longestGap()
  const elapsed = async (work: () => Promise<unknown>) => {
    const began = performance.now()
    await work()
    return performance.now() - began
  }
  const timed = (url: string) => () => elapsed(() => call(many.socket, 'GET', url))
  const against = async (what: string, ours: () => Promise<number>, base: () => Promise<number>, than: string) => {
    await ours()
    await base()
    const { a, b, ratio } = await pairs(rounds * 3, ours, base)
    rows.push({ what, ours: ms(a), baseline: `${than}: ${ms(b)}`, ratio })
  }
  const page = timed('/api/sessions?limit=50')
  const identity = timed('/api/status/identity')
  const { next_cursor } = (await call(many.socket, 'GET', '/api/sessions?limit=50')).page
  await against(`list, newest 50 of ${count}`, page, identity, 'a request that does nothing')
  await against('list, next page', timed(`/api/sessions?limit=50&cursor=${next_cursor}`), identity, 'the same')
  await against('list by activity', timed('/api/sessions?sort=last_activity'), identity, 'the same')
  await against('list, searched', timed('/api/sessions?q=number+77'), identity, 'the same')
  await against('list of a workspace', timed(`/api/sessions?workspace=${workspace}`), identity, 'the same')
  const empty = await startDaemon(context, none)
  const statusOfNone = () => elapsed(() => call(none.socket, 'GET', '/api/status'))
  await against('status', timed('/api/status'), statusOfNone, 'with none')
  await empty.stop()
  rows.push({ what: "longest gap of the daemon's loop", ours: ms(await daemon.longestGap()) })
  const at = (id: string) => `/api/workspaces/${workspace}/sessions/${id}`
  const open = (id: string, query: string, frames: number) => () =>
    load.call('open', many.socket, `${at(id)}/stream?${query}`, frames)
  const than = `of ${FEW.toLocaleString('en')}`
  const n = events.toLocaleString('en')
  await against(`transcript stream of ${n} events, opened`, open(long, '', 1), open(short, '', 1), than)
  const near = (total: number) => `frames=raw&after_sequence=${total - 10}`
  await against('… raw, resumed near the end', open(long, near(events), 5), open(short, near(FEW), 5), than)
  const middle = (total: number) => `frames=raw&after_sequence=${total / 2}`
  await against('… raw, resumed in the middle', open(long, middle(events), 5), open(short, middle(FEW), 5), than)
  await against('… newest events', timed(`${at(long)}/events`), timed(`${at(short)}/events`), than)
  const rare = (id: string) => timed(`${at(id)}/events?type=permission`)
  await against('… events of a type that there is none of', rare(long), rare(short), than)
  await against('… interactions', timed(`${at(long)}/interactions`), timed(`${at(short)}/interactions`), than)
  await against('… usage', timed(`${at(long)}/usage`), timed(`${at(short)}/usage`), than)
  await daemon.longestGap()
  const whole = await load.call('open', many.socket, `${at(long)}/stream?frames=raw`, events)
  rows.push({ what: '… raw, all of it', ours: `${perSecond((events * 1000) / whole)} frames` })
  rows.push({ what: "longest gap of the daemon's loop meanwhile", ours: ms(await daemon.longestGap()) })
  await load.kill()
  await daemon.stop()
  report.section(`Sessions, ${count} stored`, rows)
}

/** Files that a process may have open at the same time. */
function openFiles(): number {
  const soft = /Max open files\s+(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
  return Number(soft ?? 1024)
}

function residentBytes(pid: number): number {
  const kib = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Number(kib ?? 0) * 1024
}
