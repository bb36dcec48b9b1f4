import { cp, rm } from 'node:fs/promises'
import type { KernelOptions } from '../../../../kernel/index.js'
import type { Clock, Plugin } from '../../../../kernel/plugin.js'
import daemon from '../../../../plugins/desk/daemon/index.js'
import workspaces from '../../../../plugins/desk/workspaces/index.js'
import resources from '../../../../plugins/platform/resources/index.js'
import automation from '../../../../plugins/work/automation/index.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { boot, type Reply, type TestKernel, temporaryFolder } from '../../../harness/kernel.js'
import { type FakeSessions, fakeSessions } from './fake-sessions.js'

/** A daemon with automation, on a clock that stands still, and sessions that do what the test says. */
export interface Bench extends TestKernel {
  readonly clock: VirtualClock
  readonly sessions: FakeSessions
  /** Id of a registered workspace. */
  readonly workspace: string
  put(
    id: string,
    spec: Record<string, unknown>,
    version?: number,
    scope?: unknown,
  ): Promise<{ status: number; body: Reply }>
  job(id: string): Promise<Reply>
  /** Oldest first. */
  runs(job?: string): Promise<Reply[]>
  /** Lets time pass, then waits until a look at the world gives something. */
  after<T>(ms: number, look: () => Promise<T | undefined | false>, what: string): Promise<T>
  until<T>(look: () => Promise<T | undefined | false>, what: string): Promise<T>
  /** Copies the home as it lies on the disk: what a daemon finds that starts after this one was killed now. */
  snapshot(): Promise<string>
  end(): Promise<void>
}

export interface BenchOptions {
  readonly home?: string
  readonly clock?: VirtualClock
  readonly config?: unknown
  readonly plugins?: readonly Plugin[]
  readonly freeBytes?: () => Promise<number>
  /** Doors that are open besides `request`. */
  readonly listen?: KernelOptions['listen']
  readonly env?: Readonly<Record<string, string>>
  /** How turns end from the start on, also those of the boot. */
  readonly answer?: FakeSessions['answer']
  readonly onCreate?: FakeSessions['onCreate']
}

export const START = Date.UTC(2030, 0, 1)
/** Looks that are a turn of the event loop apart, before those that are milliseconds apart. */
const QUICK_LOOKS = 20

export async function bench(options: BenchOptions = {}): Promise<Bench> {
  const home = options.home ?? (await temporaryFolder('automation'))
  if (options.config) {
    const { writeFile } = await import('node:fs/promises')
    await writeFile(`${home}/config.json`, JSON.stringify(options.config))
  }
  const clock = options.clock ?? new VirtualClock(START)
  const { fake, plugin } = fakeSessions()
  fake.answer = options.answer
  fake.onCreate = options.onCreate
  const plugins = [daemon, resources, workspaces, plugin, automation, ...(options.plugins ?? [])]
  const kernel = await boot({
    home,
    plugins,
    clock: clock as Clock,
    ...(options.freeBytes ? { freeBytes: options.freeBytes } : {}),
    ...(options.listen ? { listen: options.listen } : {}),
    ...(options.env ? { env: { PATH: process.env.PATH, HOME: home, SVC_HOME: home, ...options.env } } : {}),
  })
  const known = (await kernel.request('GET', '/api/workspaces')).body.workspaces
  const root = known[0]?.root_dir ?? (await temporaryFolder('automation-root'))
  const workspace =
    known[0]?.id ?? (await kernel.request('POST', '/api/workspaces', { root_dir: root, name: 'w' })).body.workspace.id
  const folders = [home, root]

  const until: Bench['until'] = async (look, what) => {
    for (let tries = 0; tries < 8000; tries++) {
      const seen = await look()
      if (seen) return seen
      // Mostly a few turns of the loop are enough; a slow disk takes longer.
      await new Promise(resolve => (tries < QUICK_LOOKS ? setImmediate(resolve) : setTimeout(resolve, 5)))
    }
    throw new Error(`waited in vain until ${what}`)
  }
  return {
    ...kernel,
    clock,
    sessions: fake,
    workspace,
    put: async (id, spec, version = 0, scope = { kind: 'workspace', id: workspace }) => {
      const reply = await kernel.request('PUT', `/api/resources/automation.job/${id}`, {
        expected_version: version,
        scope,
        spec,
      })
      if (reply.status < 300) {
        await until(async () => {
          const cursor = (await kernel.request('GET', `/api/automation/jobs/${id}`)).body.job?.scheduler
          return cursor !== null && cursor !== undefined
        }, `job ${id} is projected`)
      }
      return reply
    },
    job: async id => (await kernel.request('GET', `/api/automation/jobs/${id}`)).body.job,
    runs: async job => {
      const query = job === undefined ? '' : `?job_id=${job}`
      return (await kernel.request('GET', `/api/automation/runs${query}`)).body.runs.reverse()
    },
    until,
    after: async (ms, look, what) => {
      await clock.advance(ms)
      return until(look, what)
    },
    snapshot: async () => {
      const copy = await temporaryFolder('automation-copy')
      await cp(home, copy, { recursive: true, filter: source => !source.endsWith('.sock') })
      return copy
    },
    end: async () => {
      await kernel.close()
      for (const folder of folders) await rm(folder, { recursive: true, force: true })
    },
  }
}

/** A job that runs every hour. */
export const hourly = (more: Record<string, unknown> = {}) => ({
  name: 'nightly report',
  agent_name: 'report',
  prompt: 'Write the report.',
  schedule: { mode: 'every', interval: '1h' },
  ...more,
})
