// A daemon with jobs, without a listener, whose runs end at once: node automation-process.ts HOME.
import { mkdtempSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createKernel, type Kernel } from '../../kernel/index.js'
import { definePlugin, type PluginKernel } from '../../kernel/plugin.js'
import { automation, base, daemon, resources, workspaces } from '../../plugins/index.js'
import { Events } from '../../plugins/platform/events/api.js'
import { Reconcile } from '../../plugins/platform/reconcile/api.js'
import { JobKind, RunCreated, RunEnded } from '../../plugins/work/automation/api.js'
import { answer } from './child.js'
import { watchLoop } from './loop-gap.js'
import { median, pause } from './measure.js'
import { sessions } from './no-sessions.js'

/** Lateness of fires in milliseconds, from their instant until the run is durable; the longest gap of the event loop. */
export interface Lateness {
  readonly p50: number
  readonly p99: number
  readonly gap: number
  /** Of processor time until 99 of 100 are durable, whatever else the machine does. */
  readonly cpu: number
}

const [home = ''] = process.argv.slice(2)
const BATCH = 500
/** Ahead of the instant, so that all jobs are written and planned when it comes. */
const AHEAD_MS = 4000

const needs = { automation: { id: 'automation@1' }, events: Events, reconcile: Reconcile }
const seen = { kernel: undefined as PluginKernel<typeof needs> | undefined, run: (_job: string) => {}, failed: '' }
const observer = definePlugin({
  name: 'observer',
  version: '1.0.0',
  requires: needs,
  service: async () =>
    class {
      constructor(kernel: PluginKernel<typeof needs>) {
        seen.kernel = kernel
        kernel.needs.events.on(RunCreated, ({ payload }) => seen.run(payload.job_id ?? ''))
        kernel.needs.events.on(RunEnded, ({ payload: { status, error } }) => {
          if (status !== 'completed') seen.failed = `a run is ${status}: ${error}`
        })
      }
    },
}).surface({})

let kernel: Kernel

/** Writes jobs in transactions of some hundred; resolves when they are planned. */
async function write(ids: readonly string[], schedule: Record<string, string>): Promise<void> {
  const own = seen.kernel as PluginKernel<typeof needs>
  for (let from = 0; from < ids.length; from += BATCH) {
    const batch = ids.slice(from, from + BATCH)
    await own.db.tx(t => {
      for (const id of batch) {
        const spec = { name: id, agent_name: 'none', prompt: 'Report what has changed since yesterday.', schedule }
        own.records.put(t, own.actor, { kind: JobKind, id, scope: { kind: 'global' }, spec })
      }
    })
    await own.needs.reconcile.settled(batch.map(id => ({ kind: JobKind.name, id })))
  }
}

const jobId = (n: number) => `job_${String(n).padStart(16, '0')}`

const handlers = {
  /** Milliseconds of the boot. */
  async boot(): Promise<number> {
    const began = performance.now()
    const plugins = [...base, daemon, resources, workspaces, sessions, automation, observer]
    kernel = await createKernel({ home, plugins, env: { SVC_HOME: home, HOME: home } })
    await pause(0)
    return performance.now() - began
  },
  async fill(jobs: number): Promise<void> {
    // No folder of the daemon's home can be a workspace.
    const project = mkdtempSync(`${home}-project-`)
    const { status, body } = await kernel.inject({
      method: 'POST',
      url: '/api/workspaces',
      body: { root_dir: project },
    })
    if (status !== 201) throw new Error(`no workspace: ${body}`)
    await write(
      Array.from({ length: jobs }, (_, n) => jobId(n)),
      { mode: 'cron', expr: '0 3 1 1 *' },
    )
  },
  /** Bytes, after a collection. */
  memory(): { readonly rss: number; readonly heap: number } {
    setFlagsFromString('--expose-gc')
    runInNewContext('gc')()
    const { rss, heapUsed } = process.memoryUsage()
    return { rss, heap: heapUsed }
  },
  /** Milliseconds of CPU in a second of doing nothing. */
  async idle(seconds: number): Promise<number> {
    const before = process.cpuUsage()
    await pause(seconds * 1000)
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000 / seconds
  },
  /** Some jobs are due at one instant. */
  async fire(jobs: number): Promise<Lateness> {
    const ids = Array.from({ length: jobs }, (_, n) => jobId(n))
    const at = Math.ceil((Date.now() + AHEAD_MS) / 1000) * 1000
    const late = new Map<string, number>()
    let before = process.cpuUsage()
    let cpu = before
    const all = new Promise<void>((resolve, reject) => {
      setTimeout(() => reject(new Error(`${late.size} of ${jobs} jobs ran within a minute`)), 60_000).unref()
      seen.run = job => {
        late.set(job, Date.now() - at)
        if (late.size === Math.ceil(jobs * 0.99)) cpu = process.cpuUsage(before)
        if (late.size === jobs) resolve()
      }
    })
    await write(ids, { mode: 'at', time: new Date(at).toISOString() })
    if (Date.now() > at - 500) throw new Error('the jobs were not written in time')
    const longest = watchLoop()
    before = process.cpuUsage()
    await all
    if (seen.failed !== '') throw new Error(seen.failed)
    const gap = longest()
    const times = [...late.values()].sort((a, b) => a - b)
    const quantile = (q: number) => times[Math.min(times.length - 1, Math.floor(times.length * q))] ?? Number.NaN
    return { p50: quantile(0.5), p99: quantile(0.99), gap, cpu: (cpu.user + cpu.system) / 1000 }
  },
  /** Milliseconds of a GET, median of some, and the longest gap of the event loop meanwhile. */
  async get(url: string): Promise<{ readonly took: number; readonly gap: number }> {
    const longest = watchLoop()
    const times: number[] = []
    // The watch begins with its own first beat; what holds the loop before that would go unseen.
    await pause(10)
    for (let round = 0; round < 5; round++) {
      const began = performance.now()
      const { status, body } = await kernel.inject({ method: 'GET', url })
      if (status !== 200) throw new Error(`GET ${url}: ${body}`)
      times.push(performance.now() - began)
    }
    return { took: median(times), gap: longest() }
  },
  async close(): Promise<void> {
    await kernel.close()
  },
}
export type AutomationProcess = typeof handlers
answer(handlers)
