import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { createKernel, type Kernel } from '../../../kernel/index.js'
import { definePlugin, type Plugin, type PluginKernel } from '../../../kernel/plugin.js'
import { Heartbeats, type HeartbeatsApi } from '../../../plugins/agents/heartbeats/api.js'
import { agents, base, daemon, heartbeats, providers, resources, sidecars, workspaces } from '../../../plugins/index.js'
import {
  isRestartable,
  points,
  type SessionInfo,
  type SessionPrompt,
  Sessions,
  type SessionsApi,
  type TurnOutcome,
} from '../../../plugins/work/sessions/api.js'
import type { SessionHealth } from '../../../schemas/sessions.js'
import { VirtualClock } from '../../../testing/virtual-clock.js'

/** Real time for a due wake-up to be decided. */
const DECISION_MS = 45_000

export interface WorldOptions {
  readonly start: number
  readonly config?: Record<string, unknown>
  readonly plugins?: readonly Plugin[]
  /** Files of the home, by name. */
  readonly files?: Readonly<Record<string, string>>
}

/** A daemon with heartbeats on a clock that stands still, and sessions that do what their maker says. */
export interface World {
  readonly kernel: Kernel
  readonly clock: VirtualClock
  readonly home: string
  readonly workspaceId: string
  /** Sessions that wait for the clock. */
  readonly waiting: number
  /** Every prompt that a session was given. */
  readonly prompts: { readonly id: string; readonly at: number; readonly text: string; readonly source: string }[]
  /** Health by session, over the healthy default. */
  readonly health: Map<string, Partial<SessionHealth>>
  /** What a begin throws or how long its turn runs; default: it has ended at once. */
  onBegin: (id: string) => Promise<TurnOutcome>
  agent(name: string, heartbeat?: string): Promise<string>
  session(id: string, agentName: string): Promise<SessionInfo>
  change(id: string, change: Partial<SessionInfo>): void
  /** Stops it as if its process had ended, or the daemon. */
  end(id: string, reason: NonNullable<SessionInfo['stopReason']>): Promise<void>
  /** Lets time pass until then, each wake-up in its own minute. @param sessions that wait while nothing is being decided */
  passTo(at: number, sessions?: number): Promise<void>
  request(method: string, url: string, body?: unknown): Promise<{ status: number; body: unknown }>
  close(): Promise<void>
}

export const endedTurn: TurnOutcome = { status: 'completed', turnId: 'trn_1', stopReason: 'end_turn' }

export async function openWorld({ start, config = {}, plugins = [], files = {} }: WorldOptions): Promise<World> {
  const home = await mkdtemp(path.join(os.tmpdir(), 'svc-heartbeats-'))
  await writeFile(path.join(home, 'config.json'), JSON.stringify({ agents: { heartbeat: config } }))
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(home, name), text)
  const clock = new VirtualClock(start)
  const all = new Map<string, SessionInfo>()
  let inside:
    | { prepare(session: SessionInfo): Promise<unknown>; stopped(session: SessionInfo): Promise<void> }
    | undefined

  class FakeSessions implements SessionsApi {
    readonly points: SessionsApi['points']
    noteHookRun(): void {}
    declare readonly uses: SessionsApi['uses']
    declare readonly past: SessionsApi['past']
    guard = async () => {}
    unguarded = () => []
    interrupt = async () => {}
    agentFor = () => 'general'
    readonly stopped
    readonly permission
    readonly prepare
    readonly creating
    readonly launching
    readonly healthUpdated

    constructor(kernel: PluginKernel) {
      const own = kernel.hooks.of(points)
      this.points = { ...own, journal: () => Promise.reject(new Error('not used here')) }
      this.healthUpdated = own.healthUpdated
      this.stopped = own.stopped
      this.permission = own.permission
      this.creating = own.creating
      this.launching = own.launching
      this.prepare = own.prepare
      inside = {
        prepare: session => own.prepare.run(undefined as never, session),
        stopped: session => own.stopped.call(session),
      }
    }

    get = (id: string) => all.get(id)
    lookup = async (id: string) => all.get(id)
    shown = () => undefined
    ask = () => undefined
    unstopped = () => [...all.values()].filter(({ state }) => state !== 'stopped')
    resumable = (agent?: string) =>
      [...all.values()].filter(
        ({ state, stopReason, agentName }) =>
          isRestartable(state, stopReason) && (agent === undefined || agent === agentName),
      )
    answerTo = () => undefined
    inbox = () => []
    finished = () => []
    isWatched = () => false
    healthOf = (id: string) => {
      const session = all.get(id)
      return session && healthOf(session, world.health.get(id) ?? {}, clock.now())
    }
    create = () => Promise.reject(new Error('not used here'))
    worktrees = {} as never
    whileIdle = () => Promise.reject(new Error('not used here'))
    queue = () => Promise.reject(new Error('not used here'))
    follow = async () => ({ events: [], next: 1, last: 0, isOver: true })
    attach = () => Promise.reject(new Error('not used here'))
    answer = () => Promise.reject(new Error('not used here'))
    continueQueue = async () => {}
    requests = () => []
    clarify = () => {}
    run = async (id: string, prompt: SessionPrompt) => (await this.begin(id, prompt)).outcome
    begin = async (id: string, { text, source }: SessionPrompt) => {
      const outcome = world.onBegin(id)
      // What it throws at once keeps the turn from beginning.
      await Promise.race([outcome, Promise.resolve()])
      const { stopReason, ...session } = all.get(id) as SessionInfo
      if (stopReason) all.set(id, { ...session, state: 'active' })
      world.prompts.push({ id, at: clock.now(), text, source })
      return { turnId: `trn_${world.prompts.length}`, outcome }
    }
    retire = async () => 'removed' as const
    stop = async (id: string) => {
      const session = all.get(id)
      if (session) all.set(id, { ...session, state: 'stopped', stopReason: 'user_canceled' })
      await this.stopped.call(all.get(id) as SessionInfo)
    }
  }

  const sessions = definePlugin({
    name: 'sessions',
    version: '0.0.1',
    provides: Sessions,
    service: async () => FakeSessions,
  }).surface({})
  let found: HeartbeatsApi | undefined
  const service = () => found as HeartbeatsApi
  const looker = definePlugin({
    name: 'looker',
    version: '0.0.1',
    requires: { heartbeats: Heartbeats },
    service: async () =>
      class {
        constructor({ needs }: PluginKernel<{ heartbeats: typeof Heartbeats }>) {
          found = needs.heartbeats
        }
      },
  }).surface({})
  const kernel = await createKernel({
    home,
    clock,
    env: { PATH: process.env.PATH, HOME: home, SVC_HOME: home },
    checkReplies: true,
    plugins: [
      ...base,
      daemon,
      resources,
      workspaces,
      providers,
      agents,
      sidecars,
      sessions,
      heartbeats,
      looker,
      ...plugins,
    ],
    log: () => {},
  })
  const request = async (method: string, url: string, body?: unknown) => {
    const reply = await kernel.inject({ method, url, ...(body === undefined ? {} : { body }) })
    return { status: reply.status, body: reply.body === '' ? undefined : JSON.parse(reply.body) }
  }
  // A folder in the home of the daemon is no workspace.
  const root = await mkdtemp(path.join(os.tmpdir(), 'svc-heartbeats-work-'))
  const made = await request('POST', '/api/workspaces', { root_dir: root, name: 'w' })
  const world: World = {
    kernel,
    clock,
    home,
    workspaceId: (made.body as { workspace: { id: string } }).workspace.id,
    get waiting() {
      return service().waiting
    },
    prompts: [],
    health: new Map(),
    onBegin: async () => endedTurn,
    async agent(name, heartbeat) {
      const folder = path.join(home, 'agents', name)
      await mkdir(folder, { recursive: true })
      await writeFile(path.join(folder, 'AGENT.md'), `---\nname: ${name}\ncommand: 'true'\n---\nDo it.\n`)
      if (heartbeat !== undefined) await writeFile(path.join(folder, 'HEARTBEAT.md'), heartbeat)
      return folder
    },
    async session(id, agentName) {
      const at = clock.now()
      const { workspaceId } = world
      const info: SessionInfo = {
        id,
        name: '',
        type: 'user',
        agentName,
        workspaceId,
        state: 'active',
        provider: 'local',
        createdAt: at,
        updatedAt: at,
      }
      all.set(id, info)
      await inside?.prepare(info)
      return info
    },
    async passTo(at, sessions = service().waiting) {
      // Files and the disk take real time, in which the clock has to stand still.
      let end = performance.now() + DECISION_MS
      const realTime = async () => {
        if (performance.now() > end)
          throw new Error(`no decision: ${service().waiting} sessions wait, next ${service().nextDue}`)
        await new Promise(resolve => setImmediate(resolve))
      }
      for (;;) {
        while (service().waiting < sessions) await realTime()
        const next = Math.min(service().nextDue ?? at, at)
        if (next > clock.now()) {
          await clock.advance(next - clock.now())
          end = performance.now() + DECISION_MS
        } else if (next === at) return
        else await realTime()
      }
    },
    change(id, change) {
      all.set(id, { ...(all.get(id) as SessionInfo), ...change })
    },
    async end(id, stopReason) {
      world.change(id, { state: 'stopped', stopReason })
      await inside?.stopped(all.get(id) as SessionInfo)
    },
    request,
    async close() {
      const errors = await kernel.close()
      for (const folder of [home, root]) await rm(folder, { recursive: true, force: true })
      if (errors.length > 0) throw new AggregateError(errors)
    },
  }
  return world
}

function healthOf(session: SessionInfo, more: Partial<SessionHealth>, now: number): SessionHealth {
  const { id, agentName, workspaceId, state } = session
  const at = new Date(now).toISOString()
  return {
    session_id: id,
    agent_name: agentName,
    workspace_id: workspaceId,
    state: state === 'stopped' ? 'stopped' : 'idle',
    health: 'healthy',
    active_prompt: false,
    attachable: true,
    eligible_for_wake: true,
    updated_at: at,
    ...more,
  }
}
