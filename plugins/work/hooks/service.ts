import { aborted } from '../../../kernel/kit/backoff.js'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { messageOf, type Timer, within } from '../../../kernel/plugin.js'
import type { HookCatalogEntry, HookCatalogQuery } from '../../../schemas/hooks/replies.js'
import type { HookEvent } from '../../../schemas/hooks.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import type { Recorded, SessionInfo } from '../sessions/api.js'
import {
  type Dispatched,
  type Fixed,
  type HookPayload,
  type HookRun,
  type HooksApi,
  type KnownValues,
  points,
  type Whom,
} from './api.js'
import { BroughtHooks, scopeOf } from './brought.js'
import { readAgentHooks, readDeclarations } from './declarations.js'
import { type ByEvent, byEvent, type DeclaredHook, GUARD, hasEnabled, type Resolved, resolve } from './declared.js'
import { Deltas } from './dispatch/deltas.js'
import { Dispatcher } from './dispatch/dispatcher.js'
import { Nesting } from './dispatch/nesting.js'
import { Executors } from './executors/executors.js'
import type { K } from './needs.js'
import { RECORDED, recordedPayload } from './record-payload.js'
import { HookRuns, journalNote, UNMADE } from './runs.js'
import { Warnings } from './warnings.js'
import { entryToWire } from './wire.js'

/** Time for async hooks to finish during shutdown, in milliseconds. */
const DRAIN_MS = 10_000
/** Delay before all skills are read, so that the read does not compete with the start. */
const WARM_MS = 3000
/** How long the hooks of an agent outlive its session, in milliseconds. */
const LINGER_MS = 5000

/** The hook runtime: declarations, dispatch and run history. */
export class HooksService implements HooksApi {
  readonly ran
  readonly completed
  readonly asking
  readonly runs: HookRuns
  readonly #dispatcher: Dispatcher
  #resolved: readonly Resolved[] = []
  #byEvent: ByEvent = new Map()
  /** Hooks of agent definitions, by session id. */
  readonly #ofSessions = new Map<string, ByEvent>()
  /** Timers that remove the hooks of stopped sessions, by session id. */
  readonly #leaving = new Map<string, Timer>()
  readonly #brought: BroughtHooks
  readonly #executors: Executors
  readonly deltas: Deltas
  readonly nesting: Nesting
  readonly warnings = new Warnings(this)
  #isReady = false

  constructor(readonly kernel: K) {
    const { ran, completed, asking } = kernel.hooks.of(points)
    this.ran = ran
    this.completed = completed
    this.asking = asking
    this.runs = new HookRuns(kernel, (t, run) => this.completed.check(t, run))
    this.#executors = new Executors(kernel)
    this.#brought = new BroughtHooks(kernel)
    this.deltas = new Deltas(kernel, {
      wanted: (event, id) => this.has(event, id),
      deliver: async (event, piece) => {
        const delivery = this.#deliveryOf(event, { ...piece, type: 'agent_message' })
        if (delivery) await this.#dispatcher.deliver(event, whomOf(delivery.session), delivery.payload)
      },
    })
    this.#dispatcher = new Dispatcher({
      clock: kernel.clock,
      hooksOf: (event, whom) => this.#hooksOf(event, whom),
      execute: (hook, payload, cutoff) => this.#executors.execute(hook, payload, cutoff),
      record: run => this.#record(run),
      warn: (text, fields) => kernel.log.warn(text, fields),
    })
    this.nesting = new Nesting(kernel, this.#dispatcher, this.asking)
  }

  /** Registers cleanup, which runs in reverse order. */
  async start(): Promise<void> {
    const { scope } = this.kernel
    scope.defer('runs of hooks', () => this.runs.written())
    scope.defer('programs of hooks', () => this.#executors.close())
    scope.defer('hooks of stopped sessions', () => {
      for (const id of [...this.#leaving.keys()]) this.#stay(id)
    })
  }

  has(event: HookEvent, sessionId = ''): boolean {
    const own = this.#ofSessions.get(sessionId)
    return hasEnabled(this.#byEvent, event) || hasEnabled(own, event) || this.#brought.has(event, sessionId)
  }

  /** The first required hook that guards each operation of a session, for people; undefined without one. */
  guardOf(session: SessionInfo): string | undefined {
    const guard = this.#hooksOf('permission.request', whomOf(session)).find(isRequired)
    return guard && `the required hook ${guard.name}`
  }

  /** Applies changed guards to running agents, from their next operation on. */
  async #renewGuards(): Promise<void> {
    const { sessions } = this.kernel.needs
    const guardOf = (session: SessionInfo) => {
      const by = this.guardOf(session)
      return by === undefined ? undefined : { by, isRequired: true }
    }
    await Promise.all(sessions.unstopped().map(session => sessions.guard(session.id, GUARD, guardOf(session))))
  }

  async dispatch(event: HookEvent, whom: Whom, payload: HookPayload): Promise<Dispatched> {
    if (!this.#brought.isRead) await this.#brought.read()
    return this.#dispatcher.dispatch(event, whom, payload)
  }

  running(name: string): number {
    return this.#dispatcher.running(name)
  }

  /** Called after plugins were started. After the boot, skill hooks are read later, by {@link warm} or the first event. */
  async started(): Promise<void> {
    if (this.#isReady) return this.refresh()
    this.#isReady = true
    this.#readDeclared()
    this.#dropPrograms()
    await this.#renewGuards()
  }

  /** Reads the hooks of skills before an event has to wait for them. */
  async warm(signal: AbortSignal): Promise<void> {
    await this.kernel.clock.sleep(WARM_MS, signal).catch(() => {})
    if (!signal.aborted) await this.#brought.read()
    await aborted(signal)
  }

  #readDeclared(): void {
    this.#resolved = resolve(readDeclarations(this.kernel))
    this.#byEvent = byEvent(this.#resolved.map(({ hook }) => hook))
  }

  async refresh(): Promise<void> {
    this.#isReady = true
    this.#readDeclared()
    await this.#brought.refresh()
    this.#dropPrograms()
    await this.#renewGuards()
  }

  /** Declarations changed at runtime. Before all plugins are loaded this is ignored: they are read once then. */
  changed(): void {
    if (this.#isReady) void this.refresh()
  }

  /** Payload members that describe a session. */
  about(session: SessionInfo): HookPayload {
    return {
      session_id: session.id,
      session_name: session.name,
      session_type: session.type,
      agent_name: session.agentName,
      ...this.workspaceFields(session.workspaceId),
    }
  }

  workspaceFields(workspaceId: string): HookPayload {
    const workspace = this.kernel.needs.workspaces.get(workspaceId)
    const root = workspace?.rootDir ?? ''
    return { workspace_id: workspaceId, workspace: root, workspace_root: root }
  }

  /** Dispatches an event about a session without waiting. */
  tell(event: HookEvent, session: SessionInfo, more: HookPayload = {}): void {
    if (this.has(event, session.id)) void this.dispatch(event, whomOf(session), { ...this.about(session), ...more })
  }

  announce(event: HookEvent, workspaceId: string | undefined, payload: HookPayload, cause?: string): void {
    if (!this.has(event)) return
    const fields = this.workspaceFields(workspaceId ?? '')
    const whom = { ...(workspaceId !== undefined && { workspaceId }), cause }
    void this.dispatch(event, whom, { ...fields, ...payload })
  }

  /** Dispatches an event about a session and waits; undefined without hooks. */
  async ask(
    event: HookEvent,
    session: SessionInfo,
    more: HookPayload = {},
    fixed?: Fixed,
  ): Promise<Dispatched | undefined> {
    const { workspaces } = this.kernel.needs
    if (session.state !== 'stopped' && !this.#brought.knows(session.id))
      await this.#brought.meet(session, workspaces.get(session.workspaceId))
    if (!this.has(event, session.id)) return undefined
    return this.dispatch(event, { ...whomOf(session), fixed }, { ...this.about(session), ...more })
  }

  /** Dispatches an event about a journal entry of a session. */
  recorded(event: HookEvent, record: Recorded): void {
    const delivery = this.#deliveryOf(event, record)
    if (delivery) void this.dispatch(event, { ...whomOf(delivery.session), fixed: RECORDED }, delivery.payload)
  }

  #deliveryOf(event: HookEvent, { sessionId, ...record }: Recorded) {
    const session = this.has(event, sessionId) ? this.kernel.needs.sessions.get(sessionId) : undefined
    return session && { session, payload: { ...this.about(session), ...recordedPayload(event, record) } }
  }

  /**
   * Loads the hooks of the agent of a session that is about to start. Resolves with an error text when one is invalid: the
   * session must not start. Workspace trust is checked by the planner.
   */
  async adopt(session: SessionInfo): Promise<string | undefined> {
    const { workspaces } = this.kernel.needs
    const workspace = workspaces.get(session.workspaceId)
    const hooks = await this.#agentHooks(session.agentName, workspace)
    if (typeof hooks === 'string') return hooks
    await this.#brought.adopt(session.id, scopeOf(session, workspace))
    this.#stay(session.id)
    if (hooks.length > 0) this.#ofSessions.set(session.id, byEvent(hooks))
    else this.#ofSessions.delete(session.id)
    return undefined
  }

  /** Dispatches an event before the session exists, with the hooks of its agent. */
  async askBefore(
    event: HookEvent,
    agent: string,
    workspaceId: string,
    payload: HookPayload,
    { cause, fixed }: Pick<Whom, 'cause' | 'fixed'> = {},
  ): Promise<Dispatched | undefined> {
    const workspace = this.kernel.needs.workspaces.get(workspaceId)
    const hooks = await this.#agentHooks(agent, workspace)
    if (typeof hooks === 'string') return { payload, deny: hooks }
    const unmade = `${UNMADE}${this.kernel.ids.hex(8)}`
    await this.#brought.adopt(unmade, { agent, ...(workspace && { workspace }) })
    if (hooks.length > 0) this.#ofSessions.set(unmade, byEvent(hooks))
    try {
      if (!this.has(event, unmade)) return undefined
      return await this.dispatch(event, { sessionId: unmade, workspaceId, cause, fixed }, payload)
    } finally {
      this.forget(unmade)
    }
  }

  session(id: string): SessionInfo | undefined {
    return this.kernel.needs.sessions.get(id)
  }

  /** A session stopped. Keep its hooks for a while: its last messages may still be in delivery. */
  ended(id: string): void {
    if (!this.#ofSessions.has(id) && !this.#brought.knows(id)) return
    this.#stay(id)
    this.#leaving.set(
      id,
      this.kernel.clock.timeout(LINGER_MS, () => this.forget(id), { unref: true }),
    )
  }

  /** Cancels the removal of the hooks of a session. */
  #stay(id: string): void {
    this.#leaving.get(id)?.cancel()
    this.#leaving.delete(id)
  }

  forget(sessionId: string): void {
    this.#stay(sessionId)
    const [own, brought] = [this.#ofSessions.delete(sessionId), this.#brought.forget(sessionId)]
    if (own || brought) this.#dropPrograms()
  }

  async quiesce(): Promise<void> {
    const drained = Promise.all([this.#dispatcher.drain(), this.deltas.drain()])
    await within(this.kernel.clock, DRAIN_MS, drained).catch(() => {
      this.kernel.log.warn('async hooks did not finish before the shutdown deadline', { ms: DRAIN_MS })
    })
    await this.runs.written()
  }

  /** The active hooks for a workspace and an agent, in execution order. @throws Fault `workspace_not_found` */
  async catalog(query: HookCatalogQuery): Promise<HookCatalogEntry[]> {
    const { workspaces } = this.kernel.needs
    const workspace = query.workspace === undefined ? undefined : await workspaces.find(query.workspace)
    const own = query.agent === undefined ? [] : await this.#agentHooks(query.agent, workspace)
    const { agent } = query
    const brought = await this.#brought.hooksOf({
      ...(workspace && { workspace }),
      ...(agent !== undefined && { agent }),
    })
    const all = [...this.#resolved.map(({ hook }) => hook), ...(typeof own === 'string' ? [] : own), ...brought]
    const shadowed = this.#resolved.flatMap(entry => entry.shadowed)
    const here = resolve([...all, ...shadowed]).filter(
      ({ hook }) => workspace === undefined || hook.workspaceId === undefined || hook.workspaceId === workspace.id,
    )
    const warnings = await this.warnings.about(here.map(({ hook }) => hook))
    const places = new Map<HookEvent, number>()
    return here
      .map((entry, n) => {
        const order = (places.get(entry.hook.event) ?? 0) + 1
        places.set(entry.hook.event, order)
        return entryToWire(entry, order, Object.values(warnings[n] ?? {}).flat())
      })
      .filter(
        ({ event, source, mode }) =>
          (query.event ?? event) === event && (query.source ?? source) === source && (query.mode ?? mode) === mode,
      )
  }

  /** The hooks of all sources and places, as far as they are known without a session. */
  async declared(): Promise<readonly DeclaredHook[]> {
    const { agents, workspaces } = this.kernel.needs
    await this.#brought.read()
    const ofAgents: DeclaredHook[] = []
    for (const workspace of workspaces.list())
      for (const { name, hooks } of await agents.list(workspace)) {
        const own = hooks.length > 0 ? await this.#agentHooks(name, workspace) : []
        // An invalid definition is reported by the plugin `agents`.
        if (typeof own !== 'string') ofAgents.push(...own)
      }
    return [...this.#resolved.map(({ hook }) => hook), ...ofAgents, ...this.#brought.all]
  }

  /** Names of agents and workspaces, for matchers. */
  values(): KnownValues[] {
    const { agents, workspaces } = this.kernel.needs
    const places = async () => workspaces.list()
    const names = async () => {
      const all = await Promise.all([undefined, ...workspaces.list()].map(workspace => agents.list(workspace)))
      return all.flat().map(({ name }) => name)
    }
    const known = { noun: 'workspace', list: command('workspace list') }
    return [
      { fields: ['agent_name'], noun: 'agent', list: command('agent list'), read: names },
      { ...known, fields: ['workspace_id'], read: async () => (await places()).map(({ id }) => id) },
      { ...known, fields: ['workspace_root'], read: async () => (await places()).map(({ rootDir }) => rootDir) },
    ]
  }

  #record(run: HookRun): void {
    this.runs.add(run)
    void this.ran.call(run)
    const note = run.sessionId === '' ? undefined : journalNote(run)
    if (note) this.kernel.needs.sessions.noteHookRun(run.sessionId, note)
  }

  #hooksOf(event: HookEvent, { sessionId = '', workspaceId }: Whom): readonly DeclaredHook[] {
    const common = this.#byEvent.get(event) ?? []
    const own = this.#ofSessions.get(sessionId)?.get(event) ?? []
    const more = [...own, ...this.#brought.of(event, { sessionId, ...(workspaceId !== undefined && { workspaceId }) })]
    const all = more.length === 0 ? common : resolve([...common, ...more]).map(({ hook }) => hook)
    return all.some(hook => !hook.enabled || (hook.workspaceId ?? workspaceId) !== workspaceId)
      ? all.filter(hook => hook.enabled && (hook.workspaceId ?? workspaceId) === workspaceId)
      : all
  }

  async #agentHooks(agent: string, workspace: Workspace | undefined): Promise<readonly DeclaredHook[] | string> {
    if (agent === '') return []
    // An agent that cannot be planned is not started either; the start reports the error.
    const plan = await this.kernel.needs.agents.plan(agent, workspace).catch(() => undefined)
    if (!plan || plan.definition.hooks.length === 0) return []
    try {
      return readAgentHooks(plan.definition, workspace?.id ?? '')
    } catch (error) {
      return messageOf(error)
    }
  }

  /** Stops warm programs of hooks that are no longer declared. */
  #dropPrograms(): void {
    const of = (events: ByEvent) => [...events.values()].flat().filter(({ enabled }) => enabled)
    const ofSessions = [...this.#ofSessions.values()].flatMap(of)
    this.#executors.keep([...of(this.#byEvent), ...ofSessions, ...this.#brought.all])
  }
}

const isRequired = ({ required, enabled }: DeclaredHook) => required && enabled

const whomOf = ({ id, workspaceId }: SessionInfo): Whom => ({ sessionId: id, workspaceId })
