// A kernel with tasks, without a listener, whose sessions do nothing but claim: node tasks-process.ts HOME.
import path from 'node:path'
import { createKernel, type Kernel } from '../../kernel/index.js'
import { definePlugin, type PluginKernel } from '../../kernel/plugin.js'
import { openStore } from '../../kernel/store/index.js'
import { base, daemon, disk, resources, workspaces } from '../../plugins/index.js'
import { type SessionInfo, Sessions, type SessionsApi, type SessionUse } from '../../plugins/work/sessions/api.js'
import { Tasks } from '../../plugins/work/tasks/api.js'
import tasks from '../../plugins/work/tasks/index.js'
import type { TaskService } from '../../plugins/work/tasks/service.js'
import { type Who, whoOfSession } from '../../plugins/work/tasks/who.js'
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
    this.points = {
      eventRecorded: kernel.hooks.notify('recorded'),
      healthCheckFailed: kernel.hooks.notify('health'),
      retiring: kernel.hooks.gate('retiring'),
    }
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

/** One in so many of 200 tasks; the others are completed. */
const MIX = { queued: 8, drafts: 2, canceled: 4, failed: 2, waiting: 2, approvals: 2 }
const TEMPLATES = 200
/** Columns that name a task or a run, or are a key made of one; the copies name each other. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  tasks_task: ['id', 'parent_task_id'],
  tasks_dependency: ['task_id', 'depends_on'],
  tasks_run: ['id', 'task_id', 'previous_run_id', 'idempotency_key'],
  tasks_event: ['event_id', 'task_id', 'run_id'],
}
/** More than the events of the first ones. */
const SEQ_STRIDE = 100_000

let kernel: Kernel
const claimants: { session: SessionInfo; who: Who }[] = []
const waiting = new AbortController()
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
      const claim = await claims.next(session, who, { lease_seconds: LEASE_MS / 1000 }, waiting)
      if (!claim) throw new Error('there is nothing to claim')
      await leases.heartbeat(session, who, claim.run.id, undefined)
      await leases.complete(session, who, claim.run.id, {})
    })
    return (cycles * 1000) / (performance.now() - began)
  },
  /** Leaves so many tasks behind, as daemons would have: some through the API, the others as copies of them, at least as many. Ends the kernel. */
  async leave(count: number): Promise<void> {
    await handlers.fill(TEMPLATES - MIX.queued - MIX.drafts - MIX.canceled - MIX.failed - MIX.waiting - MIX.approvals)
    await handlers.run(8, TEMPLATES - Object.values(MIX).reduce((sum, one) => sum + one))
    const post = async (url: string, body: object = {}) => {
      const reply = await kernel.inject({ method: 'POST', url, body })
      if (reply.status >= 300) throw new Error(`${url}: ${reply.status} ${reply.body}`)
      return JSON.parse(reply.body)
    }
    const task = async (more = {}): Promise<string> =>
      (await post('/api/tasks', { title: WORK, scope: 'global', ...more })).task.id
    for (let n = 0; n < MIX.failed; n++) {
      await post(`/api/tasks/${await task({ max_attempts: 1 })}/start`)
      const { session, who } = claimants[0] as (typeof claimants)[number]
      const claim = await service().claims.next(session, who, {}, waiting)
      await service().leases.fail(session, who, claim?.run.id ?? '', { error: 'the tests do not pass' })
    }
    const first = await task()
    for (let n = 0; n < MIX.waiting; n++)
      await post(`/api/tasks/${await task()}/dependencies`, { depends_on_task_id: first })
    for (let n = 0; n < MIX.approvals; n++) await task({ approval_policy: 'manual' })
    for (let n = 0; n < MIX.drafts; n++) await task({ draft: true })
    for (let n = 0; n < MIX.canceled; n++) await post(`/api/tasks/${await task()}/cancel`)
    await handlers.fill(MIX.queued - 1)
    await kernel.close()
    await double(Math.ceil(Math.log2(count / TEMPLATES)))
  },
  close: () => kernel.close(),
}

/** Doubles what the tables of tasks hold, so many times. */
async function double(times: number): Promise<void> {
  const store = await openStore({ path: path.join(home, 'svc.db'), now: Date.now })
  const columnsOf = (table: string) =>
    store.db.rows(`SELECT name FROM pragma_table_info('${table}')`).map(([name]) => String(name))
  for (let n = 0; n < times; n++)
    await store.db.tx(t => {
      for (const [table, names] of Object.entries(NAMES)) {
        const copied = (column: string) => {
          if (column === 'seq') return `seq + ${SEQ_STRIDE * 2 ** n}`
          if (!names.includes(column)) return column
          return column === 'idempotency_key' ? `${column} || '-${n}'` : otherId(column, n)
        }
        const columns = columnsOf(table)
        t.run(`INSERT INTO ${table} (${columns.join(', ')}) SELECT ${columns.map(copied).join(', ')} FROM ${table}`)
      }
    })
  await store.close()
}

const DIGITS = '0123456789abcdef'

/** SQL of an id of the same form: the n-th bit of its random bytes is the other one. */
function otherId(column: string, n: number): string {
  const [place, bit] = [`instr(${column}, '_') + ${1 + (n >> 2)}`, 1 << (n & 3)]
  const digit = `(instr('${DIGITS}', substr(${column}, ${place}, 1)) - 1)`
  const other = `substr('${DIGITS}', (${digit} | ${bit}) - (${digit} & ${bit}) + 1, 1)`
  return `substr(${column}, 1, ${place} - 1) || ${other} || substr(${column}, ${place} + 1)`
}
export type TasksProcess = typeof handlers
answer(handlers)
