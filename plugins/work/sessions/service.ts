import { type Actor, messageOf } from '../../../kernel/plugin.js'
import type {
  AnswerClarificationBody,
  AnswerClarificationReply,
  ApproveBody,
  Session,
  SessionHealth,
} from '../../../schemas/sessions.js'
import type { AskedQuestion, SessionGuard, SessionQuestion } from '../acp/api.js'
import { AcpErrors } from '../acp/api.js'
import {
  type CreateSession,
  type FollowedPage,
  type IdleSession,
  PermissionAnswered,
  points,
  type QueuedTurn,
  type RecordedPage,
  SessionErrors,
  type SessionInfo,
  type SessionPoints,
  type SessionPrompt,
  Sessions,
  type SessionsApi,
  type TurnOutcome,
} from './api.js'
import { finishedSessions } from './attention/attention.js'
import type { SessionsContext } from './context.js'
import { noteHookRun } from './journal/telling.js'
import { usesOf } from './journal/uses.js'
import { activityOf } from './lifecycle/activity.js'
import { agentFor, createSession, emptyTrash } from './lifecycle/catalog.js'
import { Endings } from './lifecycle/ending.js'
import { HealthNews } from './lifecycle/health-news.js'
import { IdleProcesses } from './lifecycle/idle-processes.js'
import { OpenSessions } from './lifecycle/open-sessions.js'
import { repairSessions } from './lifecycle/repair.js'
import { staysInCatalog } from './lifecycle/retire.js'
import type { Stop } from './lifecycle/stopping.js'
import { contextOf } from './make-context.js'
import type { K } from './needs.js'
import { followPage } from './read/follow.js'
import { answerTo, inboxOf, pendingIn } from './read/inbox.js'
import { pastOf, type SessionPast } from './read/past.js'
import type { SessionRow } from './table.js'
import { Prompting } from './turn/prompting.js'
import { healthToWire, infoOf, SessionWire } from './wire.js'

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
  readonly activity
  readonly context: SessionsContext
  readonly prompting: Prompting
  readonly worktrees: SessionsApi['worktrees']
  /** The sessions in memory. */
  readonly open: OpenSessions
  readonly endings: Endings
  readonly wire: SessionWire

  /** Infos by row: each request of an agent needs its session several times, and a changed row is a new object. */
  readonly #infos = new WeakMap<SessionRow, SessionInfo>()

  constructor(private readonly kernel: K) {
    const own = kernel.hooks.of(points)
    this.activity = activityOf(kernel.db, kernel.clock)
    this.stopped = own.stopped
    this.permission = own.permission
    this.creating = own.creating
    this.launching = own.launching
    this.prepare = own.prepare
    this.healthUpdated = own.healthUpdated
    this.points = { ...own, journal: (...args) => this.#journal(...args) }
    const { stopped, permission, prepare, creating, launching } = own
    this.context = contextOf(kernel, {
      ...{ points: own, stopped, permission, prepare, creating, launching },
      health: () => new HealthNews(kernel, this.healthUpdated, id => this.#healthOf(id)),
      isNeeded: async row =>
        this.open.has(row.id) ||
        staysInCatalog(this.context, row, async () => (await own.retiring.ask(infoOf(row))) === undefined),
    })
    this.worktrees = kernel.needs.worktrees
    this.uses = usesOf(this.context, own.used)
    this.past = pastOf(this.context)
    const peek = (id: string) => this.open.peek(id)
    const idle = new IdleProcesses(this.context, { peek, atRest: (id, work) => this.prompting.atRest(id, work) })
    this.open = new OpenSessions(this.context, id => this.prompting.atToolResult(id), idle)
    this.endings = new Endings(this.context, this.open, own.retiring)
    this.wire = new SessionWire(this.context, this.open)
    const open = async (id: string) => this.open.open(this.find(id).id)
    this.prompting = new Prompting(this.context, { open, peek })
  }

  async start(): Promise<void> {
    const { kernel, context } = this
    kernel.scope.defer('journals', () => context.logs.closeAll())
    kernel.scope.defer('health', () => context.health.close())
    kernel.scope.defer('watch', () => context.watch.close())
    kernel.scope.defer('sessions', () => this.stopAll())
    kernel.needs.ownership.owns(Sessions, id => context.table.inCatalog(id) || context.archive.has(id))
    await emptyTrash(context)
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
    const known = row && this.#infos.get(row)
    if (row === undefined || known) return known
    const info = infoOf(row)
    this.#infos.set(row, info)
    return info
  }

  async lookup(id: string): Promise<SessionInfo | undefined> {
    await this.context.archive.lend(id)
    return this.get(id)
  }

  shown(id: string): Session | undefined {
    const row = this.context.table.get(id)
    return row && this.wire.session(row)
  }

  create(request: CreateSession): Promise<SessionInfo> {
    return createSession(this.context, request)
  }

  agentFor(workspaceId?: string): string {
    const workspace = workspaceId === undefined ? undefined : this.kernel.needs.workspaces.get(workspaceId)
    return agentFor(this.context, workspace)
  }

  unstopped(): SessionInfo[] {
    return this.context.table.unstopped().map(infoOf)
  }

  resumable(agent?: string): SessionInfo[] {
    return this.context.table.resumable(agent).map(infoOf)
  }

  healthOf(id: string): SessionHealth | undefined {
    this.context.health.note(id) // This check may be the first to find an unresponsive process.
    return this.#healthOf(id)
  }

  #healthOf(id: string): SessionHealth | undefined {
    const row = this.context.table.get(id)
    return row && healthToWire(row, this.open.peek(id))
  }

  async run(id: string, prompt: SessionPrompt): Promise<TurnOutcome> {
    await this.#back(id)
    return (await this.prompting.begin(id, prompt)).outcome
  }

  async begin(id: string, prompt: SessionPrompt) {
    await this.#back(id)
    return this.prompting.begin(id, prompt)
  }

  async queue(id: string, prompt: SessionPrompt & { readonly key: string }): Promise<QueuedTurn> {
    const { cause } = prompt
    const actor = cause === undefined ? this.kernel.actor : { ...this.kernel.actor, cause }
    await this.#back(id)
    return this.prompting.queue(this.find(id).id, prompt, actor)
  }

  continueQueue(id: string): Promise<void> {
    return this.prompting.continueQueue(this.find(id).id)
  }

  async follow(id: string, from: number, signal: AbortSignal): Promise<FollowedPage> {
    if (this.context.archive.has(id)) await this.context.archive.lend(id)
    return followPage(this.context, this.find(id).id, from, signal)
  }

  async attach(id: string, { name, type, data }: Parameters<SessionsApi['attach']>[1]): Promise<string> {
    await this.#back(id)
    const file = { head: { filename: name, type: type.toLowerCase() }, data: chunksOf(data), ended: Promise.resolve() }
    return (await this.context.attachments.store(this.find(id).id, async () => file)).id
  }

  readonly requests = (id: string) => pendingIn(this.open.peek(id))

  clarify(id: string, requestId: string, body: AnswerClarificationBody): AnswerClarificationReply {
    const clarifications = this.open.peek(this.find(id).id)?.binding.running?.clarifications
    if (!clarifications) throw AcpErrors.clarification_not_found('the agent of this session does not run')
    return clarifications.answer(requestId, body)
  }

  async whileIdle<T>(id: string, work: (session: IdleSession) => Promise<T>): Promise<T> {
    await this.#back(id)
    const { briefings } = this.context
    const brief: IdleSession['brief'] = (t, name, text) => briefings.change(t, id, { name, text })
    return this.prompting.whileIdle(id, () => work({ brief }))
  }

  ask(id: string, question: SessionQuestion): AskedQuestion | undefined {
    return this.open.peek(id)?.binding.running?.permissions.own.ask(question)
  }

  async guard(id: string, owner: string, guard: SessionGuard | undefined): Promise<void> {
    await this.open.peek(id)?.binding.guard(owner, guard)
  }

  unguarded(owner: string): { readonly session: SessionInfo; readonly why: string }[] {
    return this.open.all.flatMap(({ id, binding }) => {
      const guards = binding.running?.guards
      const [session, why] = [this.get(id), guards?.of(owner) && guards.unheld]
      return session && why !== undefined ? [{ session, why }] : []
    })
  }

  readonly interrupt = async (id: string) => void (await this.endings.cancel(this.find(id).id))

  async stop(id: string, how: Stop): Promise<void> {
    await this.#back(id)
    return this.endings.stop(id, how)
  }

  /** Brings an archived session back into the catalog. */
  async #back(id: string): Promise<void> {
    if (this.context.archive.has(id)) await this.context.archive.restore(id)
  }

  /** Removes the archived sessions of a deleted workspace in one segment. */
  async removeArchived(workspaceId: string, segment: number): Promise<void> {
    for await (const id of this.context.archive.ofWorkspace(workspaceId, segment)) await this.endings.removeAlways(id)
  }

  /** A session by its ID and, where given, by its workspace. Throws 404. */
  find(id: string, workspace?: string): SessionRow {
    const row = this.context.table.get(id)
    if (!row) throw SessionErrors.session_not_found(`no session ${id}`)
    if (workspace === undefined || row.workspace_id === workspace) return row
    if (this.kernel.needs.workspaces.get(row.workspace_id)?.name === workspace) return row
    throw SessionErrors.session_not_found(`no session ${id} in workspace ${workspace}`)
  }

  async answer(id: string, body: ApproveBody, actor: Actor): Promise<boolean> {
    const { workspace_id } = this.find(id)
    const permissions = this.open.peek(id)?.binding.running?.permissions
    if (!permissions) throw AcpErrors.permission_not_found()
    const { request_id, turn_id, decision, unattended } = body
    const note = unattended === true && decision.startsWith('reject') ? 'nobody was there to answer' : undefined
    const allowed = await permissions.answer(request_id, turn_id, decision, actor, note)
    const payload = { session_id: id, request_id, decision, allowed }
    const about = { actor, scope: workspace_id, subject: id }
    const { db, needs, log } = this.kernel
    // The agent already has the answer, so a failure to store the event must not reach the person as an error.
    await db
      .tx(t => needs.events.emit(t, PermissionAnswered, payload, about))
      .catch(error => log.error(`the answer to ${request_id} of ${id} is no event: ${messageOf(error)}`))
    return allowed
  }

  readonly inbox = (most?: number) => inboxOf(this.context, this.open.all, most)
  readonly finished = () => finishedSessions(this.context)
  readonly isWatched = (id: string) => this.context.presence.sees(id)
  readonly answerTo = (id: string) => answerTo(this.open.peek(id))
  readonly noteHookRun: SessionsApi['noteHookRun'] = (id, content) => noteHookRun(this.open.peek(id), content)

  retire(id: string, endedAt: number): Promise<'removed' | 'kept' | 'referred'> {
    return this.endings.retire(id, endedAt)
  }

  /** Stops all sessions during a shutdown. */
  async stopAll(): Promise<void> {
    const closing = this.prompting.close()
    await this.endings.stopAll()
    await closing
  }
}

async function* chunksOf(data: Buffer): AsyncGenerator<Buffer> {
  yield data
}
