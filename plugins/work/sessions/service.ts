import { type Actor, messageOf, type Tx } from '../../../kernel/plugin.js'
import type {
  AnswerClarificationBody,
  ApproveBody,
  CreateSessionBody,
  ListSessionEventsQuery,
  ListSessionsQuery,
  PatchSessionBody,
  Session,
  SessionDetail,
  SessionHealth,
  SessionStreamQuery,
  TranscriptQuery,
} from '../../../schemas/sessions.js'
import type { Undoing } from '../../desk/changes/api.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import {
  type AskedQuestion,
  type CreateSession,
  type FollowedPage,
  type IdleSession,
  points,
  type QueuedTurn,
  type RecordedPage,
  SessionErrors,
  type SessionGuard,
  type SessionInfo,
  type SessionPoints,
  type SessionPrompt,
  type SessionQuestion,
  Sessions,
  type SessionsApi,
  type TurnOutcome,
} from './api.js'
import { aboutToStop } from './asked.js'
import { finishedSessions } from './attention/attention.js'
import type { SessionsContext } from './context.js'
import { Worktrees } from './fork/worktree.js'
import { noteHookRun } from './journal/telling.js'
import { usesOf } from './journal/uses.js'
import { activityOf } from './lifecycle/activity.js'
import * as catalog from './lifecycle/catalog.js'
import { HealthNews } from './lifecycle/health-news.js'
import { IdleProcesses } from './lifecycle/idle-processes.js'
import type { LiveSession } from './lifecycle/live-session.js'
import { OpenSessions } from './lifecycle/open-sessions.js'
import { repairSessions } from './lifecycle/repair.js'
import { keptBy } from './lifecycle/retire.js'
import { stopSessions } from './lifecycle/shutdown.js'
import { checkSessions, statusMembers } from './lifecycle/status.js'
import { cancelTurn, END_PROCESS, recordStop, type Stop } from './lifecycle/stopping.js'
import { contextOf } from './make-context.js'
import type { K } from './needs.js'
import { followPage } from './read/follow.js'
import { answerTo, inboxOf, pendingIn } from './read/inbox.js'
import { pastOf, type SessionPast } from './read/past.js'
import { groupByTurn, openStream, readEvents, readTranscript } from './read/reading.js'
import { answerPermission } from './requests/answer.js'
import type { Rewinding } from './rewind/rewind.js'
import { checkedAgentMode } from './runtime/agent-mode.js'
import { changePermissions } from './runtime/permissions.js'
import type { SessionRow } from './table.js'
import { Prompting } from './turn/prompting.js'
import { detailToWire, healthToWire, infoOf, sessionToWire } from './wire.js'

/** Durable sessions over ACP. */
export class SessionsService implements SessionsApi {
  readonly points: SessionPoints
  readonly stopped
  readonly permission
  readonly creating
  readonly launching
  readonly prepare
  readonly healthUpdated
  readonly uses
  readonly past: SessionPast
  readonly context: SessionsContext
  readonly prompting: Prompting
  readonly worktrees: Worktrees
  readonly #open: OpenSessions
  readonly #retiring

  constructor(private readonly kernel: K) {
    const own = kernel.hooks.of(points)
    this.stopped = own.stopped
    this.#retiring = own.retiring
    this.permission = own.permission
    this.creating = own.creating
    this.launching = own.launching
    this.prepare = own.prepare
    this.healthUpdated = own.healthUpdated
    this.points = { ...own, journal: (...asked) => this.#journal(...asked) }
    const { stopped, permission, prepare, creating, launching } = own
    this.context = contextOf(kernel, {
      ...{ points: own, stopped, permission, prepare, creating, launching },
      health: () => new HealthNews(kernel, this.healthUpdated, id => this.#healthOf(id)),
    })
    this.worktrees = new Worktrees(kernel)
    this.uses = usesOf(this.context, own.used)
    this.past = pastOf(this.context)
    const peek = (id: string) => this.#open.peek(id)
    const idle = new IdleProcesses(this.context, { peek, atRest: (id, work) => this.prompting.atRest(id, work) })
    this.#open = new OpenSessions(this.context, id => this.prompting.atToolResult(id), idle)
    const open = async (id: string) => this.#open.open(this.find(id).id)
    this.prompting = new Prompting(this.context, { open, peek })
  }

  async start(): Promise<void> {
    const { kernel, context } = this
    kernel.scope.defer('journals', () => context.logs.closeAll())
    kernel.scope.defer('health', () => context.health.close())
    kernel.scope.defer('watch', () => context.watch.close())
    kernel.scope.defer('sessions', () => this.stopAll())
    kernel.needs.ownership.owns(Sessions, id => context.table.get(id) !== undefined)
    await catalog.emptyTrash(context)
    await repairSessions(context)
  }

  #journal(id: string, from: number, signal: AbortSignal): Promise<RecordedPage> {
    return this.context.logs.use(id, async log => {
      await log.changed(from - 1, AbortSignal.any([signal]))
      return log.page(from)
    })
  }

  // Interface for other plugins.

  get(id: string): SessionInfo | undefined {
    const row = this.context.table.get(id)
    return row && infoOf(row)
  }

  shown(id: string): Session | undefined {
    const row = this.context.table.get(id)
    return row && this.wire(row)
  }

  create(request: CreateSession): Promise<SessionInfo> {
    return catalog.createSession(this.context, request)
  }

  agentFor(workspaceId?: string): string {
    const workspace = workspaceId === undefined ? undefined : this.kernel.needs.workspaces.get(workspaceId)
    return catalog.agentFor(this.context, workspace)
  }

  unstopped(): SessionInfo[] {
    return this.context.table.unstopped().map(infoOf)
  }

  resumable(agent?: string): SessionInfo[] {
    return this.context.table.resumable(agent).map(infoOf)
  }

  healthOf(id: string): SessionHealth | undefined {
    this.context.health.note(id) // This look may be the first to see that a process is unresponsive.
    return this.#healthOf(id)
  }

  #healthOf(id: string): SessionHealth | undefined {
    const row = this.context.table.get(id)
    return row && healthToWire(row, this.#open.peek(id))
  }

  async run(id: string, prompt: SessionPrompt): Promise<TurnOutcome> {
    return (await this.prompting.begin(id, prompt)).outcome
  }

  begin(id: string, prompt: SessionPrompt) {
    return this.prompting.begin(id, prompt)
  }

  async queue(id: string, prompt: SessionPrompt & { readonly key: string }): Promise<QueuedTurn> {
    const { cause } = prompt
    const actor = cause === undefined ? this.kernel.actor : { ...this.kernel.actor, cause }
    return this.prompting.queue(this.find(id).id, prompt, actor)
  }

  continueQueue(id: string): Promise<void> {
    return this.prompting.continueQueue(this.find(id).id)
  }

  follow(id: string, from: number, signal: AbortSignal): Promise<FollowedPage> {
    return followPage(this.context, this.find(id).id, from, signal)
  }

  async attach(id: string, { name, type, data }: Parameters<SessionsApi['attach']>[1]): Promise<string> {
    const file = { head: { filename: name, type: type.toLowerCase() }, data: chunksOf(data), ended: Promise.resolve() }
    return (await this.context.attachments.store(this.find(id).id, async () => file)).id
  }

  readonly requests = (id: string) => pendingIn(this.context, this.#open.peek(id))

  clarify(id: string, requestId: string, body: AnswerClarificationBody): void {
    const asked = this.#open.peek(this.find(id).id)?.binding.running?.clarifications
    if (!asked) throw SessionErrors.clarification_not_found('the agent of this session does not run')
    asked.answer(requestId, body)
  }

  whileIdle<T>(id: string, work: (session: IdleSession) => Promise<T>): Promise<T> {
    const { briefings } = this.context
    const brief: IdleSession['brief'] = (t, name, text) => briefings.change(t, id, { name, text })
    return this.prompting.whileIdle(id, () => work({ brief }))
  }

  ask(id: string, question: SessionQuestion): AskedQuestion | undefined {
    return this.#open.peek(id)?.binding.running?.permissions.own.ask(question)
  }

  async guard(id: string, owner: string, guard: SessionGuard | undefined): Promise<void> {
    await this.#open.peek(id)?.binding.guard(owner, guard)
  }

  unguarded(owner: string): { readonly session: SessionInfo; readonly why: string }[] {
    return this.#open.all.flatMap(({ id, binding }) => {
      const guards = binding.running?.guards
      const [session, why] = [this.get(id), guards?.of(owner) && guards.unheld]
      return session && why !== undefined ? [{ session, why }] : []
    })
  }

  readonly interrupt = async (id: string) => void (await this.cancel(this.find(id)))

  async stop(id: string, how: Stop): Promise<void> {
    const row = this.context.table.get(id)
    if (!row) throw SessionErrors.session_not_found(`no session ${id}`)
    const asked = aboutToStop(this.context, row, how)
    if (asked) await asked
    const live = this.#open.peek(id)
    if (live) return live.stop(how)
    if (row.state === 'stopped' || this.context.table.get(id)?.state === 'stopped') return
    const opened = await this.#open.open(id).catch(error => {
      this.kernel.log.error('a session is stopped without its journal', { id, error: messageOf(error) })
    })
    if (opened) return opened.stop(how)
    await this.#stopRow(id, how)
  }

  // Interface for the routes.

  /** A session by its ID and, where given, by its workspace. Throws 404. */
  find(id: string, workspace?: string): SessionRow {
    const row = this.context.table.get(id)
    if (!row) throw SessionErrors.session_not_found(`no session ${id}`)
    if (workspace === undefined || row.workspace_id === workspace) return row
    if (this.kernel.needs.workspaces.get(row.workspace_id)?.name === workspace) return row
    throw SessionErrors.session_not_found(`no session ${id} in workspace ${workspace}`)
  }

  /** The in-memory part of a session; undefined when the session is not open. */
  live(id: string): LiveSession | undefined {
    return this.#open.peek(id)
  }

  /** The dependencies of a rewind. */
  rewinding(): Rewinding {
    const endProcess = async (id: string) => this.#open.peek(id)?.binding.end(END_PROCESS)
    return { context: this.context, prompting: this.prompting, endProcess }
  }

  allLive(): readonly LiveSession[] {
    return this.#open.all
  }

  wire(row: SessionRow, withHealth = false): Session {
    if (withHealth) this.context.health.note(row.id)
    return sessionToWire(row, this.#open.peek(row.id), this.kernel.clock.now(), withHealth)
  }

  detail(row: SessionRow): SessionDetail {
    return detailToWire(row, this.#open.peek(row.id), this.kernel.clock.now())
  }

  health(row: SessionRow): SessionHealth {
    this.context.health.note(row.id)
    return healthToWire(row, this.#open.peek(row.id))
  }

  readonly workspaceName = (id: string): string => this.kernel.needs.workspaces.get(id)?.name ?? id

  list(query: ListSessionsQuery, actor: Actor) {
    return catalog.listSessions(this.context, query, actor, id => this.#open.peek(id))
  }

  workspaceMembers(workspace: Workspace): Session[] {
    return this.context.table.list({ workspaceId: workspace.id, sort: 'created_at' }, 100).map(row => this.wire(row))
  }

  /** Creates a session for the route; a first prompt is sent at once. */
  async createFrom(body: CreateSessionBody, actor: Actor): Promise<Session> {
    const { prompt } = body
    const { id } = await catalog.createFromBody(this.context, body, actor)
    if (prompt !== undefined) await this.prompting.submit(id, { text: prompt }, actor)
    return this.wire(this.find(id))
  }

  async change(row: SessionRow, { name, permissions, agent_mode: mode }: PatchSessionBody): Promise<SessionDetail> {
    // The whole request is validated before any part of it is applied.
    const giveMode = mode === undefined ? undefined : checkedAgentMode(this.live(row.id), mode, permissions)
    // With a mode change the name may be unchanged or absent.
    const isNamed = permissions === undefined && mode === undefined
    if (isNamed || name !== row.name) await catalog.renameSession(this.context, row, name)
    if (permissions !== undefined) await changePermissions(this.context, row.id, this.live(row.id), permissions)
    await giveMode?.()
    return this.detail(this.find(row.id))
  }

  async remove(row: SessionRow, isRefusable = true): Promise<void> {
    await this.stop(row.id, { reason: 'user_canceled', detail: 'deleted', isRefusable })
    await catalog.removeSession(this.context, row.id)
  }

  async retire(id: string, endedAt: number): Promise<'removed' | 'kept' | 'referred'> {
    const row = this.context.table.get(id)
    if (!row) return 'removed'
    const kept = keptBy(this.context, row, endedAt)
    if (kept === 'used') return 'kept'
    if (kept || (await this.#retiring.ask(infoOf(row)))) return 'referred'
    await this.remove(row, false)
    return 'removed'
  }

  /** Answers a permission request; resolves to whether it was allowed in the end. */
  async answer(session: SessionRow | string, body: ApproveBody, actor: Actor): Promise<boolean> {
    const row = typeof session === 'string' ? this.find(session) : session
    return answerPermission(this.kernel, this.#open.peek(row.id)?.binding.running?.permissions, row, body, actor)
  }

  /** Cancels the running turn and waits for its end, up to a time limit. */
  cancel(row: SessionRow) {
    return cancelTurn(row.id, this.#open.peek(row.id)?.turn, this.kernel.clock)
  }

  events(row: SessionRow, query: ListSessionEventsQuery) {
    return readEvents(this.context, row, query)
  }

  async history(row: SessionRow, query: ListSessionEventsQuery) {
    return groupByTurn(await readEvents(this.context, row, query))
  }

  transcript(row: SessionRow, query: TranscriptQuery) {
    return readTranscript(this.context, row, query)
  }

  stream(row: SessionRow, query: SessionStreamQuery, lastEventId: string | undefined, signal: AbortSignal) {
    return openStream(this.context, row, query, lastEventId, signal)
  }

  readonly statusMembers = () => statusMembers(this.context, () => this.#open.all)
  readonly activity = () => activityOf(this.kernel.db, this.kernel.clock)
  readonly checkItems = () => checkSessions(this.context, this.#open.all)
  readonly inbox = (most?: number) => inboxOf(this.context, this.#open.all, most)
  readonly finished = () => finishedSessions(this.context)
  readonly isWatched = (id: string) => this.context.presence.sees(id)
  readonly answerTo = (id: string) => answerTo(this.context, this.#open.peek(id))
  readonly noteHookRun: SessionsApi['noteHookRun'] = (id, content) => noteHookRun(this.#open.peek(id), content)

  /** Refuses to delete a workspace while one of its sessions is active. */
  readonly guardUndo = (undoing: Undoing) => catalog.guardUndo(this.context, undoing)
  readonly guardWorkspace = (t: Tx, workspace: Workspace) => catalog.guardWorkspace(this.context, t, workspace)

  /** Stops all sessions during a shutdown. */
  async stopAll(): Promise<void> {
    const closing = this.prompting.close()
    await stopSessions(this.context, {
      isOpen: id => this.#open.has(id),
      stop: (id, how) => this.stop(id, how),
      stopRow: (id, how) => this.#stopRow(id, how),
    })
    await closing
  }

  /** Removes a session whose workspace is gone, if it still exists. */
  async removeAlways(id: string): Promise<void> {
    const row = this.context.table.get(id)
    if (row) await this.remove(row, false)
  }

  /** Stops a session whose journal cannot be written, or is empty. */
  async #stopRow(id: string, how: Stop): Promise<void> {
    const info = await recordStop(this.context, id, how, { bytes: this.find(id).journal_bytes })
    if (info) await this.stopped.call(info)
    this.context.health.note(id)
  }
}

async function* chunksOf(data: Buffer): AsyncGenerator<Buffer> {
  yield data
}
