import { cp, rm } from 'node:fs/promises'
import { type Clock, definePlugin, type Plugin, type PluginKernel } from '../../../../kernel/plugin.js'
import daemon from '../../../../plugins/desk/daemon/index.js'
import workspaces from '../../../../plugins/desk/workspaces/index.js'
import disk from '../../../../plugins/platform/disk/index.js'
import resources from '../../../../plugins/platform/resources/index.js'
import {
  type FinishedSession,
  InboxSources,
  type Recorded,
  type SessionInfo,
  type SessionPast,
  Sessions,
  type SessionsApi,
  type SessionUse,
} from '../../../../plugins/work/sessions/api.js'
import { Tasks, type TasksApi } from '../../../../plugins/work/tasks/api.js'
import tasks from '../../../../plugins/work/tasks/index.js'
import type { InboxItem } from '../../../../schemas/sessions.js'
import type { TaskRun } from '../../../../schemas/tasks.js'
import { storeSettled, VirtualClock } from '../../../../testing/virtual-clock.js'
import { validateReply } from '../../../harness/contract.js'
import { boot, type Reply, type TestKernel, temporaryFolder } from '../../../harness/kernel.js'

interface Answer {
  readonly status: number
  readonly body: Reply
}

/** The agent of a session, as an operator speaks for it. */
export interface Agent {
  readonly id: string
  claim(body?: object): Promise<Answer>
  /** `complete`, `fail`, `heartbeat`, `release`, `start` of a run. */
  act(what: string, run: string, body?: object): Promise<Answer>
  /** Any other request. */
  ask(method: string, url: string, body?: object): Promise<Answer>
}

/** A daemon with tasks, on a clock that stands still, and sessions that are what the test says. */
export interface Scene extends TestKernel {
  readonly clock: VirtualClock
  readonly workspace: string
  agent(more?: Partial<SessionInfo>): Agent
  /** The agent of a session tells what it has used so far. */
  use(agent: Agent, use: Partial<SessionUse>): Promise<unknown>
  /** Something is written into the journal of a session. */
  record(agent: Agent, content: Recorded['content'], type?: Recorded['type']): Promise<unknown>
  /** A turn of a session ends. */
  endTurn(agent: Agent, status?: 'completed' | 'canceled'): Promise<unknown>
  /** Sessions whose turns were canceled, in order. */
  readonly interrupted: readonly string[]
  /** Sessions that the daemon wanted to start; none can be. */
  readonly created: readonly unknown[]
  /** Turns that were queued for sessions by the daemon, in order. */
  readonly woken: readonly Woken[]
  /** Ends a session; `crashed`: its process ended by itself. */
  stop(agent: Agent, how?: 'stopped' | 'crashed'): Promise<void>
  /** A published task with a queued run; ids of both. */
  queued(more?: object): Promise<{ readonly task: string; readonly run: string }>
  task(id: string): Promise<Reply>
  run(id: string, task: string): Promise<Reply>
  /** A run as other plugins see it. */
  told(id: string): TaskRun | undefined
  /** Tasks as other plugins see them. */
  readonly api: TasksApi
  post(url: string, body?: object): Promise<Answer>
  /** Lets time pass and the daemon take back what has expired. */
  pass(ms: number): Promise<void>
  /** The same home under a daemon that starts after this one was killed now; sessions live on when they are kept. */
  killed(keep?: readonly Agent[]): Promise<Scene>
}

export const START = Date.UTC(2030, 0, 1)

/** A turn that the daemon queued for a session. */
export interface Woken {
  readonly id: string
  readonly text: string
  readonly key: string
}

export interface SceneOptions {
  readonly woken?: Woken[]
  /** Why no turn can be queued now. */
  readonly refuses?: () => Error | undefined
  readonly home?: string
  readonly clock?: VirtualClock
  readonly sessions?: Map<string, SessionInfo>
  readonly config?: object
  readonly plugins?: readonly Plugin[]
  /** Listens on its socket as well. */
  readonly listens?: boolean
  /** The command that answers the pending request of a session. */
  readonly asks?: Map<string, string>
  /** Requests of sessions that wait for a person, and sessions that finished unseen; ids of those that are watched. */
  readonly inbox?: InboxItem[]
  readonly finished?: FinishedSession[]
  readonly watched?: Set<string>
  /** What sessions have used before, and whether agents tell of it; nobody knows of others. */
  readonly told?: Map<string, SessionUse>
  /** What sessions did on earlier days; nothing of any. */
  readonly past?: SessionPast
  readonly env?: Readonly<Record<string, string>>
  readonly tells?: Map<string, { readonly tokens: boolean; readonly cost: boolean }>
}

export async function scene(options: SceneOptions = {}): Promise<Scene> {
  const home = options.home ?? (await temporaryFolder('tasks'))
  const clock = options.clock ?? new VirtualClock(START)
  const sessions = options.sessions ?? new Map<string, SessionInfo>()
  const root = await temporaryFolder('tasks-root')
  if (options.config) {
    const { writeFile } = await import('node:fs/promises')
    await writeFile(`${home}/config.json`, JSON.stringify(options.config))
  }
  let stopped: (session: SessionInfo) => Promise<unknown> = async () => {}

  let used: (session: string, use: SessionUse) => Promise<unknown> = async () => {}
  let recorded: (event: Recorded) => Promise<unknown> = async () => {}
  const interrupted: string[] = []
  const created: unknown[] = []
  const woken = options.woken ?? []

  class FakeSessions implements Pick<SessionsApi, 'get' | 'unstopped' | 'stopped' | 'uses' | 'interrupt' | 'answerTo'> {
    readonly stopped
    readonly uses
    readonly points
    constructor(readonly kernel: PluginKernel) {
      const updated = kernel.hooks.notify<[string, SessionUse]>('used')
      used = (...told) => updated.call(...told) as Promise<unknown>
      this.uses = {
        of: async (id: string) => options.told?.get(id) ?? { tokens: null, cost: null },
        tells: (agent: string) => options.tells?.get(agent),
        updated,
      }
      const eventRecorded = kernel.hooks.notify<[Recorded]>('recorded')
      recorded = told => eventRecorded.call(told) as Promise<unknown>
      this.points = {
        eventRecorded,
        healthCheckFailed: kernel.hooks.notify('health'),
        retiring: kernel.hooks.gate('retiring'),
      }
      const hook = kernel.hooks.notify<[SessionInfo]>('stopped')
      this.stopped = hook
      stopped = session => hook.call(session) as Promise<unknown>
    }
    // A method, as the service has it: whoever takes it off its object finds out here.
    readonly #known = sessions
    get(id: string) {
      return this.#known.get(id)
    }
    past = options.past ?? { usageDays: 90, usage: () => [], longest: () => undefined }
    answerTo = (id: string) => options.asks?.get(id)
    inbox = (most?: number) => [
      ...(options.inbox ?? []),
      ...this.kernel.collect(InboxSources).flatMap(({ entry }) => [...entry.read(most)]),
    ]
    finished = () => options.finished ?? []
    isWatched = (id: string) => options.watched?.has(id) ?? false
    interrupt = async (id: string) => void interrupted.push(id)
    queue = async (id: string, prompt: { readonly text: string; readonly key: string }) => {
      const refusal = options.refuses?.()
      if (refusal) throw refusal
      if (!woken.some(({ key }) => key === prompt.key)) woken.push({ id, text: prompt.text, key: prompt.key })
    }
    agentFor = () => 'general'
    create = async (wanted: unknown) => {
      created.push(wanted)
      throw new Error('no agent is installed')
    }
    unstopped = () => [...sessions.values()].filter(({ state }) => state !== 'stopped')
  }
  const fake = definePlugin({
    name: 'sessions',
    version: '0.0.1',
    provides: Sessions,
    service: async () => FakeSessions as never,
  }).surface({})

  const needs = { tasks: Tasks }
  let other: PluginKernel<typeof needs>
  const observer = definePlugin({
    name: 'observer',
    version: '0.0.1',
    requires: needs,
    service: async () =>
      class {
        constructor(kernel: PluginKernel<typeof needs>) {
          other = kernel
        }
      },
  }).surface({})

  const kernel = await boot({
    home,
    plugins: [daemon, disk, resources, workspaces, fake, tasks, observer, ...(options.plugins ?? [])],
    clock: clock as Clock,
    ...(options.listens && { listen: ['socket'] as const }),
    ...(options.env && { env: { PATH: process.env.PATH, HOME: home, SVC_HOME: home, ...options.env } }),
  })
  const known = (await kernel.request('GET', '/api/workspaces')).body.workspaces
  const workspace =
    known[0]?.id ?? (await kernel.request('POST', '/api/workspaces', { root_dir: root, name: 'w' })).body.workspace.id

  const send = async (method: string, url: string, body: unknown, headers: Record<string, string>): Promise<Answer> => {
    const reply = await kernel.kernel.inject({ method, url, headers, ...(body === undefined ? {} : { body }) })
    const parsed = reply.body === '' ? undefined : JSON.parse(reply.body)
    const wrong = validateReply(method, url, reply.status, parsed)
    if (wrong.length > 0) throw new Error(`${method} ${url} ${reply.status}: ${wrong.join('; ')}\n${reply.body}`)
    return { status: reply.status, body: parsed }
  }
  const post = (url: string, body: object = {}) => kernel.request('POST', url, body)
  const speaker = (id: string): Agent => {
    const headers = { 'x-service-session-id': id, 'x-service-agent': sessions.get(id)?.agentName ?? '' }
    return {
      id,
      claim: (body = {}) => send('POST', '/api/agent/tasks/claim-next', body, headers),
      act: (what, run, body = {}) => send('POST', `/api/agent/tasks/${run}/${what}`, body, headers),
      ask: (method, url, body) => send(method, url, body, headers),
    }
  }

  const made: Scene = {
    ...kernel,
    clock,
    workspace,
    agent: more => {
      const id = `ses_${(sessions.size + 1).toString(16).padStart(16, '0')}`
      const at = clock.now()
      sessions.set(id, {
        id,
        name: '',
        type: 'user',
        agentName: 'ada',
        workspaceId: workspace,
        state: 'active',
        provider: 'local',
        createdAt: at,
        updatedAt: at,
        ...more,
      })
      return speaker(id)
    },
    use: ({ id }, use) => used(id, { tokens: null, cost: null, ...use }),
    record: ({ id }, content, type = 'permission') => recorded({ sessionId: id, type, turnId: 't', content }),
    endTurn: ({ id }, status = 'completed') =>
      recorded({ sessionId: id, type: 'done', turnId: 't', content: { status } }),
    interrupted,
    created,
    woken,
    stop: async ({ id }, how = 'stopped') => {
      const session = sessions.get(id) as SessionInfo
      const stopReason = how === 'crashed' ? 'agent_crashed' : 'user_canceled'
      const over: SessionInfo = { ...session, state: 'stopped', stopReason }
      sessions.set(id, over)
      await stopped(over)
    },
    queued: async (more = {}) => {
      const body = { title: 'work', scope: 'global', ...more }
      const { task } = (await post('/api/tasks', body)).body
      const { run } = (await post(`/api/tasks/${task.id}/start`)).body
      return { task: task.id, run: run.id }
    },
    task: async id => (await kernel.request('GET', `/api/tasks/${id}`)).body.task,
    run: async (id, task) =>
      (await kernel.request('GET', `/api/tasks/${task}/runs`)).body.runs.find((run: Reply) => run.id === id),
    told: id => other.needs.tasks.run(id),
    get api() {
      return other.needs.tasks
    },
    post,
    pass: ms => clock.advance(ms, storeSettled),
    killed: async (keep = []) => {
      const copy = await temporaryFolder('tasks-copy')
      await cp(home, copy, { recursive: true, filter: source => !source.endsWith('.sock') })
      await made.close()
      const alive = new Set(keep.map(({ id }) => id))
      for (const [id, session] of sessions)
        if (!alive.has(id)) sessions.set(id, { ...session, state: 'stopped', stopReason: 'agent_crashed' })
      return scene({ ...options, home: copy, clock, sessions, woken })
    },
    close: async () => {
      await kernel.close()
      for (const folder of [home, root]) await rm(folder, { recursive: true, force: true })
    },
  }
  return made
}
