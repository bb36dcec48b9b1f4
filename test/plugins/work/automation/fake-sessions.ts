import { definePlugin, type Fault, type PluginKernel } from '../../../../kernel/plugin.js'
import { Events } from '../../../../plugins/platform/events/api.js'
import {
  type CreateSession,
  points,
  SessionCreated,
  type SessionInfo,
  SessionStopped,
  Sessions,
  type SessionsApi,
  type StopReason,
  type TurnOutcome,
} from '../../../../plugins/work/sessions/api.js'

type Row = {
  id: string
  name: string
  agent: string
  workspace: string
  state: string
  reason: string | null
  detail: string | null
  at: number
}
interface Prompt {
  readonly text: string
  readonly source: string
  readonly cause?: string | undefined
}

/** What a test sees and decides of the sessions that runs make. */
export interface FakeSessions {
  readonly created: (CreateSession & { readonly id: string })[]
  readonly prompts: ({ readonly id: string } & Prompt)[]
  /** Sessions of removed runs. */
  readonly retired: { readonly id: string; readonly endedAt: number }[]
  /** What becomes of the session of a removed run. */
  retire: (id: string) => 'removed' | 'kept' | 'referred'
  readonly stops: { readonly id: string; readonly reason: StopReason; readonly detail?: string | undefined }[]
  /** Told before a session is made. */
  onCreate: ((request: CreateSession) => void) | undefined
  /** How a session's turn ends; without an outcome the turn goes on until {@link finish}. */
  answer: ((prompt: Prompt) => TurnOutcome | undefined) | undefined
  /** Refuses every session. */
  refusal: Fault | undefined
  /** Refuses every stop. */
  stopError: Error | undefined
  /** Neither making nor stopping a session comes to an end, until {@link release}. */
  hangs: boolean
  release(): Promise<void>
  /** A session ends without anybody being told. */
  end(id: string, reason: StopReason): Promise<void>
  finish(id: string, outcome: TurnOutcome, crashed?: boolean): void
}

export const completed: TurnOutcome = { status: 'completed', turnId: 'trn_1', stopReason: 'end_turn' }
export const failed = (summary: string): TurnOutcome => ({
  status: 'failed',
  turnId: 'trn_1',
  error: summary,
  failure: { kind: 'prompt_failure', summary },
})

/** A plugin that keeps sessions in a table of its own, repairs them at start as the real one does, and runs nothing. */
export function fakeSessions() {
  const waiting = new Map<string, (outcome: TurnOutcome) => void>()
  const held: (() => void)[] = []
  const hold = async () => {
    if (fake.hangs) await new Promise<void>(resolve => held.push(resolve))
  }
  let end: (id: string, reason: StopReason, detail: string) => Promise<void> = async () => {}
  const fake: FakeSessions = {
    created: [],
    prompts: [],
    stops: [],
    retired: [],
    retire: () => 'removed',
    onCreate: undefined,
    answer: undefined,
    refusal: undefined,
    stopError: undefined,
    hangs: false,
    async release() {
      fake.hangs = false
      for (const go of held.splice(0)) go()
    },
    end: (id, reason) => end(id, reason, ''),
    finish(id, outcome, crashed = false) {
      const settle = () => waiting.get(id)?.(outcome)
      if (crashed) void end(id, 'agent_crashed', 'exit 1').then(settle)
      else settle()
    },
  }

  class Service implements SessionsApi {
    readonly points: SessionsApi['points']
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

    constructor(private readonly kernel: PluginKernel<{ events: typeof Events }>) {
      const own = kernel.hooks.of(points)
      this.points = { ...own, journal: () => Promise.reject(new Error('not used here')) }
      this.healthUpdated = own.healthUpdated
      this.stopped = own.stopped
      this.permission = own.permission
      this.creating = own.creating
      this.launching = own.launching
      this.prepare = own.prepare
    }

    async start(): Promise<void> {
      end = (id, reason, detail) => this.#end(id, reason, detail)
      await this.kernel.db.tx(t =>
        t.run(
          `UPDATE sessions_fake SET state = 'stopped', reason = 'agent_crashed',
             detail = 'daemon crashed while session active' WHERE state <> 'stopped'`,
        ),
      )
    }

    shown = () => undefined
    lookup = async (id: string) => this.get(id)
    get(id: string): SessionInfo | undefined {
      const row = this.kernel.db.get<Row>('SELECT * FROM sessions_fake WHERE id = ?', [id])
      if (!row) return undefined
      return {
        id,
        name: row.name,
        type: 'user',
        agentName: row.agent,
        workspaceId: row.workspace,
        state: row.state as SessionInfo['state'],
        ...(row.reason ? { stopReason: row.reason as StopReason } : {}),
        ...(row.detail ? { stopDetail: row.detail } : {}),
        provider: 'local',
        createdAt: row.at,
        updatedAt: row.at,
      }
    }

    resumable = () => []
    worktrees = {} as never
    whileIdle = () => Promise.reject(new Error('not used here'))

    ask = () => undefined
    unstopped(): SessionInfo[] {
      const rows = this.kernel.db.all<Row>("SELECT * FROM sessions_fake WHERE state <> 'stopped'")
      return rows.map(row => this.get(row.id) as SessionInfo)
    }

    noteHookRun(): void {}

    healthOf = () => undefined
    answerTo = () => undefined
    inbox = () => []
    finished = () => []
    isWatched = () => false

    queue = () => Promise.reject(new Error('not used here'))
    follow = async () => ({ events: [], next: 1, last: 0, isOver: true })
    attach = () => Promise.reject(new Error('not used here'))
    answer = () => Promise.reject(new Error('not used here'))
    continueQueue = async () => {}
    requests = () => []
    async retire(id: string, endedAt: number) {
      fake.retired.push({ id, endedAt })
      return fake.retire(id)
    }
    clarify = () => {}

    async begin(id: string, prompt: Prompt) {
      return { turnId: 'trn_1', outcome: this.run(id, prompt) }
    }

    async create(request: CreateSession): Promise<SessionInfo> {
      if (fake.refusal) throw fake.refusal
      fake.onCreate?.(request)
      await hold()
      const id = this.kernel.ids.id('ses')
      await this.kernel.db.tx(t => {
        t.run('INSERT INTO sessions_fake (id, name, agent, workspace, state, at) VALUES (?, ?, ?, ?, ?, ?)', [
          id,
          request.name ?? '',
          request.agentName ?? '',
          request.workspaceId,
          'active',
          this.kernel.clock.now(),
        ])
        const payload = { id, agent_name: request.agentName ?? '', workspace_id: request.workspaceId }
        const about = { cause: request.cause, scope: request.workspaceId, subject: id }
        this.kernel.needs.events.emit(t, SessionCreated, payload, about)
      })
      fake.created.push({ ...request, id })
      return this.get(id) as SessionInfo
    }

    run(id: string, prompt: Prompt): Promise<TurnOutcome> {
      fake.prompts.push({ id, ...prompt })
      const outcome = fake.answer?.(prompt)
      if (outcome) return Promise.resolve(outcome)
      return new Promise(resolve => waiting.set(id, resolve))
    }

    async stop(
      id: string,
      how: { readonly reason: StopReason; readonly detail?: string; readonly cause?: string | undefined },
    ): Promise<void> {
      if (fake.stopError) throw fake.stopError
      await hold()
      fake.stops.push({ id, ...how })
      await this.#end(id, how.reason, how.detail ?? '', how.cause)
      waiting.get(id)?.({ status: 'canceled', turnId: 'trn_1' })
    }

    async #end(id: string, reason: StopReason, detail: string, cause?: string): Promise<void> {
      await this.kernel.db.tx(t => {
        const before = this.get(id)
        t.run(
          "UPDATE sessions_fake SET state = 'stopped', reason = ?, detail = ? WHERE id = ? AND state <> 'stopped'",
          [reason, detail, id],
        )
        if (!before || before.state === 'stopped') return
        const { agentName: agent_name, workspaceId: workspace_id } = before
        const payload = { id, agent_name, workspace_id, stop_reason: reason, stop_detail: detail }
        this.kernel.needs.events.emit(t, SessionStopped, payload, { cause, scope: workspace_id, subject: id })
      })
    }
  }

  const plugin = definePlugin({
    name: 'sessions',
    version: '0.0.1',
    requires: { events: Events },
    provides: Sessions,
    service: async () => Service,
  }).surface({
    events: [SessionCreated, SessionStopped],
    tables: [
      {
        id: '001',
        sql: `CREATE TABLE sessions_fake (id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, agent TEXT NOT NULL,
          workspace TEXT NOT NULL, state TEXT NOT NULL, reason TEXT, detail TEXT, at INTEGER NOT NULL) STRICT;`,
      },
    ],
  })
  return { fake, plugin }
}
