// A kernel with tasks, without a listener, whose sessions do nothing but claim: node tasks-process.ts HOME.
import { createKernel, type Kernel } from '../kernel/index.js'
import { definePlugin, type PluginKernel } from '../kernel/plugin.js'
import { base, daemon, disk, resources, workspaces } from '../plugins/index.js'
import { type SessionInfo, Sessions, type SessionsApi, type SessionUse } from '../plugins/sessions/api.js'
import { Tasks } from '../plugins/tasks/api.js'
import tasks from '../plugins/tasks/index.js'
import type { TaskService } from '../plugins/tasks/service.js'
import { type Who, whoOfSession } from '../plugins/tasks/who.js'
import { answer } from './child.js'
import { LEASE_MS, times, WORK } from './queues/queue.js'

const [home = ''] = process.argv.slice(2)
const FILLERS = 64
const WORKSPACE = 'ws_0000000000000001'

const made = new Map<string, SessionInfo>()

/** Sessions that are active and have no process. */
class Claimants implements Pick<SessionsApi, 'get' | 'unstopped' | 'stopped' | 'uses'> {
  readonly stopped
  readonly uses
  readonly points
  constructor(kernel: PluginKernel) {
    this.stopped = kernel.hooks.notify<[SessionInfo]>('stopped')
    this.uses = {
      of: async () => ({ tokens: null, cost: null }),
      tells: () => undefined,
      updated: kernel.hooks.notify<[string, SessionUse]>('used'),
    }
    this.points = { eventRecorded: kernel.hooks.notify('recorded'), healthCheckFailed: kernel.hooks.notify('health') }
  }
  get = (id: string) => made.get(id)
  unstopped = () => [...made.values()]
}

const sessions = definePlugin({
  name: 'sessions',
  version: '1.0.0',
  provides: Sessions,
  service: async () => Claimants as never,
}).surface({})

const needs = { tasks: Tasks }
let own: PluginKernel<typeof needs>
const caller = definePlugin({
  name: 'caller',
  version: '1.0.0',
  requires: needs,
  service: async () =>
    class {
      constructor(kernel: PluginKernel<typeof needs>) {
        own = kernel
      }
    },
}).surface({})

let kernel: Kernel
const claimants: { session: SessionInfo; who: Who }[] = []
const { signal } = new AbortController()
const service = () => own.needs.tasks as TaskService

const handlers = {
  async open(count: number): Promise<void> {
    const plugins = [...base, daemon, disk, resources, workspaces, sessions, tasks, caller]
    kernel = await createKernel({ home, plugins, env: { SVC_HOME: home, HOME: home } })
    for (let n = 0; n < count; n++) {
      const id = `ses_${String(n).padStart(16, '0')}`
      const [createdAt, updatedAt] = [Date.now(), Date.now()]
      const rest = { workspaceId: WORKSPACE, state: 'active', provider: 'local', createdAt, updatedAt } as const
      const session: SessionInfo = { id, name: '', type: 'user', agentName: 'claimant', ...rest }
      made.set(id, session)
      claimants.push({ session, who: whoOfSession({ ...own.actor, id, origin: 'agent_session' }, id) })
    }
  },
  fill: (count: number) =>
    times(count, FILLERS, () => own.needs.tasks.submit(own.actor, { title: WORK, scope: 'global' })),
  /** Cycles a second. */
  async run(atOnce: number, cycles: number): Promise<number> {
    const { claims, leases } = service()
    const began = performance.now()
    await times(cycles, atOnce, async n => {
      const { session, who } = claimants[n] as (typeof claimants)[number]
      const claim = await claims.next(session, who, { lease_seconds: LEASE_MS / 1000 }, signal)
      if (!claim) throw new Error('there is nothing to claim')
      await leases.heartbeat(session, who, claim.run.id, undefined)
      await leases.complete(session, who, claim.run.id, {})
    })
    return (cycles * 1000) / (performance.now() - began)
  },
  close: () => kernel.close(),
}
export type TasksProcess = typeof handlers
answer(handlers)
