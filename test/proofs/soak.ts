// Proves that a daemon stays as it is under a long load: `npm run prove:soak -- [--minutes N] [--seed S] [--plot FILE] [--json FILE] [--leak]`.
// Sessions, tasks, jobs, webhooks, hooks, settings, reloads, streams, backups and agents that crash, in rounds; between two rounds the
// clock of the daemon jumps by days, and sometimes back, so that what is kept for some days leaves. After a round the daemon is at rest
// and measured: memory, handles, descriptors, processes, rows of each table, files of the home. Of each series the last third is compared
// with the middle third by the rules in `soak/series.ts`. A second, shorter run has an extension that leaks with each reload, and has to
// be found out; `--leak` runs that one alone. Exits with 1 when a series grows, a request fails or the leak is not found. The full size is
// `--minutes 120`.
import { existsSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { performance } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type StartedDaemon, startDaemon } from '../../testing/index.js'
import { chance } from './library/chance.js'
import { firstSeed } from './library/seed.js'
import { Load } from './soak/load.js'
import { plot } from './soak/plot.js'
import { descendantsOf, descriptorsOf, Probe } from './soak/process.js'
import { judge, ruleText, type Sample, type Verdict } from './soak/series.js'

const PROBE = new URL('./soak/probe.mjs', import.meta.url).href
const EXTENSION = fileURLToPath(new URL('./soak/extension', import.meta.url))
const [HOUR, DAY] = [3_600_000, 86_400_000]
/** The clock moves so much after a round: what is kept for 30 days has to leave within the warm-up. */
const STEP = 6 * DAY
const MIB = 2 ** 20
/** Looks that are kept of a run, however long; each costs a walk through all tables and the home. */
const SAMPLES = 240
/** Fewer do not tell growth from the warm-up. */
const FEWEST = 18
/** What the leaking extension has to be found out by. */
const LEAKED = ['process heap', 'process handles', 'process descriptors']
const PLOTTED = ['rss', 'heap', 'external', 'handles', 'descriptors', 'children'].map(name => `process ${name}`)

interface Result {
  readonly samples: readonly Sample[]
  readonly verdicts: readonly Verdict[]
  readonly faults: readonly string[]
  readonly counts: ReadonlyMap<string, number>
}

/** One daemon from its start to its end; `leak` has the extension leak, and little else happens. */
async function soak(minutes: number, seed: number, leak: boolean): Promise<Result> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'svc-soak-'))
  const socket = path.join(folder, 'probe')
  let daemon: StartedDaemon | undefined
  let probe: Probe | undefined
  try {
    daemon = await startDaemon({
      config: { automation: { max_concurrent_jobs: 100 } },
      extensions: [EXTENSION],
      env: {
        NODE_OPTIONS: `--import ${PROBE}`,
        SVC_SOAK_PROBE: socket,
        ...(leak ? { SVC_SOAK_LEAK: 'memory,descriptors,timers' } : {}),
      },
    })
    probe = await Probe.open(socket)
    const load = new Load(daemon, folder, seed)
    await load.begin()
    const { samples, faults } = await rounds({ daemon, probe, load, seconds: minutes * 60, leak })
    return { samples, verdicts: judge(samples), faults: [...load.faults, ...faults], counts: load.counts }
  } finally {
    probe?.close()
    await daemon?.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

interface Running {
  readonly daemon: StartedDaemon
  readonly probe: Probe
  readonly load: Load
  readonly seconds: number
  readonly leak: boolean
}

async function rounds({ daemon, probe, load, seconds, leak }: Running) {
  const samples: Sample[] = []
  const faults: string[] = []
  const { pid } = daemon
  const startedAt = performance.now()
  const elapsed = () => (performance.now() - startedAt) / 1000
  let forward = 0
  for (let n = 0; elapsed() < seconds || samples.length < FEWEST; n++) {
    await (leak ? load.reloads() : load.round(n))
    if (daemon.pid !== pid) throw new Error(`the daemon ${pid} ended:\n${daemon.output}`)
    // A late look is due at the next even share of the time.
    if (elapsed() >= (samples.length * seconds) / SAMPLES)
      samples.push({
        at: elapsed(),
        operations: load.operations,
        days: forward / DAY,
        values: await look(daemon, probe),
      })
    const random = chance('clock', n)
    const jump = n % 6 === 5 ? -random.int(HOUR) : STEP + random.int(HOUR)
    await probe.jump(jump)
    load.ahead += jump
    forward = Math.max(forward, load.ahead)
  }
  return { samples, faults }
}

/** The daemon at rest. */
async function look(daemon: StartedDaemon, probe: Probe): Promise<Readonly<Record<string, number>>> {
  const { status, body } = await daemon.request('GET', '/api/db/size')
  if (status !== 200) throw new Error(`GET /api/db/size: ${status} ${JSON.stringify(body)}`)
  const { rss, heapUsed, external, handles } = await probe.measure()
  const values: Record<string, number> = {
    'process rss': rss / MIB,
    'process heap': heapUsed / MIB,
    'process external': external / MIB,
    'process handles': handles,
    'process descriptors': descriptorsOf(daemon.pid),
  }
  for (const [name, count] of Object.entries(descendantsOf(daemon.pid))) values[`process ${name}`] = count
  for (const { kind, name, entries, bytes } of body.items) {
    if (kind === 'table') values[`table ${name}`] = entries
    else if (kind === 'folder') values[`files ${name}`] = entries
    if (kind !== 'table') values[`bytes ${name}`] = bytes
  }
  return values
}

/** The table of a run, in 80 columns: what the processes show, what grows by design, and what broke its rule. */
function table({ verdicts, samples }: Result): string {
  const figure = (value: number) => (value >= 100_000 ? `${(value / MIB).toFixed(1)}M` : value.toFixed(1))
  const shown = verdicts.filter(
    ({ name, holds, rule, middle, last }) =>
      !holds || name.startsWith('process ') || (!('flat' in rule) && middle !== last),
  )
  const line = (cells: readonly string[]) =>
    [cells[0]?.slice(0, 32).padEnd(32), ...cells.slice(1, 4).map(cell => cell.padStart(10)), cells[4]]
      .join(' ')
      .trimEnd()
  const rows = shown.map(({ name, middle, last, allowed, rule, holds }) =>
    line([name, figure(middle), figure(last), figure(allowed), holds ? ruleText(rule) : `GROWS, ${ruleText(rule)}`]),
  )
  const flat = verdicts.length - shown.length
  const days = samples.at(-1)?.days.toFixed(0)
  return [
    line(['SERIES', 'MIDDLE', 'LAST', 'ALLOWED', 'RULE']),
    ...rows,
    `${flat} more series are flat; ${samples.length} samples, ${samples.at(-1)?.operations} operations, ${days} days`,
  ].join('\n')
}

async function main(): Promise<number> {
  const text = { type: 'string' } as const
  const flag = { type: 'boolean', default: false } as const
  const { values } = parseArgs({ options: { minutes: text, seed: text, plot: text, json: text, leak: flag } })
  const minutes = Number(values.minutes ?? 3)
  if (!(minutes > 0)) throw new Error('--minutes takes a number above 0')
  if (!existsSync('/proc/self/fd')) throw new Error('the proof needs /proc: it runs on Linux')
  const seed = Number(values.seed ?? firstSeed())
  const say = console.log
  say(`seed ${seed}: ${values.leak ? 'a leak' : `${minutes} minutes`}`)
  const problems: string[] = []
  const runs: Record<string, Result> = {}
  if (!values.leak) {
    const run = await soak(minutes, seed, false)
    runs.load = run
    say(table(run))
    say(`${run.counts.get('late') ?? 0} requests were late`)
    problems.push(...run.faults, ...run.verdicts.filter(({ holds }) => !holds).map(({ name }) => `${name} grows`))
    if (values.plot !== undefined) {
      const grown = run.verdicts.filter(({ holds }) => !holds).map(({ name }) => name)
      writeFileSync(values.plot, plot(run.samples, [...new Set([...PLOTTED, ...grown])]))
    }
  }
  const leak = await soak(values.leak ? minutes / 4 : Math.min(minutes / 8, 1), seed, true)
  runs.leak = leak
  problems.push(...leak.faults)
  for (const name of LEAKED) {
    const verdict = leak.verdicts.find(each => each.name === name)
    if (!verdict || verdict.holds) problems.push(`${name}: the leak was not found`)
    else say(`the leak is found: ${name} ${verdict.middle.toFixed(1)} to ${verdict.last.toFixed(1)}`)
  }
  if (values.leak && values.plot !== undefined) writeFileSync(values.plot, plot(leak.samples, PLOTTED))
  for (const problem of problems.slice(0, 20)) say(`FAIL  ${problem}`)
  if (values.json !== undefined) {
    const of = ({ samples, verdicts, faults, counts }: Result) => ({
      ...{ samples, verdicts, faults },
      operations: Object.fromEntries(counts),
    })
    const all = Object.fromEntries(Object.entries(runs).map(([name, run]) => [name, of(run)]))
    writeFileSync(values.json, `${JSON.stringify({ seed, minutes, problems, runs: all }, null, 2)}\n`)
  }
  return problems.length === 0 ? 0 : 1
}

process.exitCode = await main().catch(error => {
  console.error(error instanceof Error ? error.stack : error)
  return 2
})
