import { command } from '../../../kernel/kit/commands/command-line.js'
import { type Actor, type Frame, KernelErrors, type Pipeline, type Reads } from '../../../kernel/plugin.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import type {
  BacklogQuery,
  BacklogReply,
  CreateTaskBody,
  Dashboard,
  DashboardQuery,
  DrainBody,
  DrainReply,
  Inbox,
  InboxQuery,
  ListTaskRunsQuery,
  ListTasksQuery,
  ListTasksReply,
  Task,
  TaskRun,
} from '../../../schemas/tasks.js'
import { HealthEscalation } from '../../desk/daemon/api.js'
import type { SessionInfo } from '../sessions/api.js'
import { type ClaimWish, points, type SubmitOptions, TaskErrors, Tasks, type TasksApi } from './api.js'
import { readingOf, type TaskReading } from './archive/reading.js'
import { TaskArchive } from './archive/task-archive.js'
import type { Budgets } from './budgets/budgets.js'
import { refusalOf } from './budgets/refusals.js'
import { Claims } from './claims/claims.js'
import { Leases } from './claims/leases.js'
import { CompleteAndNext } from './claims/next.js'
import { Recovery } from './claims/recovery.js'
import { ClaimTokens } from './claims/tokens.js'
import { TaskCore } from './core.js'
import { runFindings, schedulerFinding } from './doctor/findings.js'
import { Health } from './health/health.js'
import { KeptRuns } from './kept/kept-runs.js'
import { keeperOf } from './kept/table.js'
import type { K } from './needs.js'
import { mayReview, Profiles, wantsOf } from './profiles/profiles.js'
import { Reviews } from './reviews/reviews.js'
import { RunControl } from './runs/control.js'
import { type RunRow, runToWire } from './runs/run-row.js'
import { drainScheduler } from './scheduler/drain.js'
import { Stalls } from './scheduler/stalls.js'
import { SchedulerState } from './scheduler/state.js'
import { TaskSettings } from './settings.js'
import { FINAL_TASK } from './states.js'
import { Blocks } from './tasks/blocks.js'
import { TaskControl } from './tasks/control.js'
import { TaskExecution } from './tasks/execute.js'
import { TaskGraph } from './tasks/graph.js'
import type { TaskRow } from './tasks/task-row.js'
import { type TaskTarget, TaskWriter } from './tasks/write.js'
import { TaskBundles } from './views/bundle.js'
import { TaskCatalog } from './views/catalog.js'
import { dashboardOf } from './views/dashboard.js'
import { TaskDetails } from './views/detail.js'
import { TaskInbox } from './views/inbox.js'
import { TaskInspection } from './views/inspect.js'
import { TaskNews } from './views/news.js'
import { activityOf, attentionOf, type TaskAttention } from './views/overview.js'
import { statusOf } from './views/status.js'
import { TaskHistory } from './views/timeline.js'
import { waitingTasks } from './views/waiting.js'
import type { Wakes } from './wakes/wakes.js'
import { foreignWorkspace, sessionOf, type Who, whoOf, whoOfSession } from './who.js'
import { Admission } from './workers/admission.js'
import { Coordinators, runtimeOf } from './workers/coordinators.js'
import { Ladder } from './workers/ladder.js'
import { Workers } from './workers/workers.js'

const DEFAULT_RUNS = 100
type Headers = Readonly<Record<string, string | undefined>>

/** Tasks, their runs, and the leases under which sessions hold them. */
export class TaskService implements TasksApi {
  readonly preClaim: Pipeline<ClaimWish, [SessionInfo]>
  readonly coordinatorPreSpawn
  readonly coordinatorSpawned
  readonly coordinatorDecision
  readonly coordinatorStopped
  readonly coordinatorFailed
  readonly archive: TaskArchive
  readonly writer: TaskWriter
  readonly control: TaskControl
  readonly execution: TaskExecution
  readonly graph: TaskGraph
  readonly blocks: Blocks
  readonly runs: RunControl
  readonly reviews: Reviews
  readonly budgets: Budgets
  readonly claims: Claims
  readonly leases: Leases
  readonly completing: CompleteAndNext
  readonly recovery: Recovery
  readonly kept: KeptRuns
  readonly wakes: Wakes
  readonly stalls: Stalls
  readonly scheduler: SchedulerState
  readonly details: TaskDetails
  readonly history: TaskHistory
  readonly bundles: TaskBundles
  readonly inbox: TaskInbox
  readonly news: TaskNews
  readonly inspection: TaskInspection
  readonly profiles: Profiles
  readonly workers: Workers
  readonly health: Health
  readonly #core: TaskCore
  readonly #catalog: TaskCatalog

  constructor(private readonly kernel: K) {
    const core: TaskCore = new TaskCore(kernel, {
      wantsOf: (t, task, kind) => {
        const measured = this.budgets.measures(t, task.id)
        const wants = wantsOf(task, this.profiles.partsOf(task.id, t), kind)
        return { ...wants, ...keeperOf(t, task.id), ...(measured.length > 0 ? { measured } : {}) }
      },
      guided: (reads, task) => this.profiles.partsOf(task, reads).coordinator.mode === 'guided',
      profiled: (t, task) => this.profiles.partsOf(task.id, t).network_participation,
    })
    const tokens = new ClaimTokens(kernel.ids)
    this.#core = core
    this.budgets = core.budgets
    this.wakes = core.wakes
    const own = kernel.hooks.of(points)
    this.preClaim = own.preClaim
    this.coordinatorPreSpawn = own.coordinatorPreSpawn
    this.coordinatorSpawned = own.coordinatorSpawned
    this.coordinatorDecision = own.coordinatorDecision
    this.coordinatorStopped = own.coordinatorStopped
    this.coordinatorFailed = own.coordinatorFailed
    const coordinators = new Coordinators(core, own)
    this.profiles = new Profiles(core)
    this.archive = new TaskArchive(
      core,
      () => kernel.needs.archives.current,
      () => kernel.config.get(TaskSettings.archiveAfterDays),
    )
    this.writer = new TaskWriter(core)
    this.control = new TaskControl(core)
    this.execution = new TaskExecution(core, coordinators, () => kernel.config.get(TaskSettings.designatedRunMax))
    this.graph = new TaskGraph(core)
    this.blocks = new Blocks(core, () => kernel.config.get(TaskSettings.blockRecurrenceLimit))
    this.runs = new RunControl(core, tokens, () => kernel.config.get(TaskSettings.agentForce))
    this.reviews = new Reviews(
      core,
      () => kernel.config.get(TaskSettings.reviewRounds),
      (t, task, session) => mayReview(this.profiles.partsOf(task, t), session),
    )
    this.stalls = new Stalls(core)
    this.scheduler = new SchedulerState(core)
    this.recovery = new Recovery(core, tokens)
    const wantsResult = (reads: Reads, task: string) => this.profiles.partsOf(task, reads).runtime.mode === 'evidence'
    this.kept = new KeptRuns(
      core,
      this.recovery,
      reads => this.scheduler.pausedIn(reads),
      (reads, task) => this.budgets.limits(reads, task),
      wantsResult,
    )
    const maxHeld = () => kernel.config.get(TaskSettings.maxActiveRuns)
    const runtime = ({ kind }: Pick<RunRow, 'kind'>) => runtimeOf(kernel.config, kind)
    const admission = new Admission(core, {
      activeRuns: maxHeld,
      failures: () => kernel.config.get(TaskSettings.spawnFailureLimit),
      coordinators: () => kernel.config.get(TaskSettings.coordinatorsAtOnce),
      startsCoordinators: () => kernel.config.get(TaskSettings.coordinators),
    })
    const ladder = new Ladder(core)
    this.details = new TaskDetails(core)
    this.history = new TaskHistory(core, this.details)
    this.bundles = new TaskBundles(core, this.profiles, this.history)
    this.health = new Health(this.recovery, () => kernel.config.get(HealthEscalation))
    this.workers = new Workers(
      core,
      coordinators,
      this.profiles,
      this.scheduler,
      this.health,
      ladder,
      admission,
      this.bundles,
      this.stalls,
      runtime,
      (session, task) => refusalOf(this.budgets, kernel.db, session, task),
    )
    this.claims = new Claims(
      core,
      tokens,
      this.recovery,
      this.scheduler,
      this.budgets,
      (wish, session) => this.preClaim.run(wish, session),
      maxHeld,
    )
    this.leases = new Leases(core, tokens, wantsResult)
    this.completing = new CompleteAndNext(core, this.leases, this.claims)
    this.inbox = new TaskInbox(core)
    this.news = new TaskNews(core, this.inbox)
    this.inspection = new TaskInspection(core, this.details, this.scheduler)
    this.#catalog = new TaskCatalog(core, this.archive)
  }

  async start(): Promise<void> {
    this.kernel.needs.ownership.owns(
      Tasks,
      id => this.#core.tasks.get(id) !== undefined || this.archive.segmentOf(id) !== undefined,
    )
    await this.profiles.adopt()
    await this.recovery.boot()
  }

  /** Handles everything that becomes due by itself, until the signal aborts. */
  async expire(signal: AbortSignal): Promise<void> {
    const { budgets, wakes, recovery, reviews } = this
    await this.kernel.needs.daemon.released(signal)
    await this.#core.deadlines.run(signal, {
      budgets: { next: () => budgets.nextCount(), pass: () => budgets.count() },
      wakes: { next: () => wakes.nextDelivery(), pass: () => wakes.deliver() },
      runs: { next: () => recovery.nextDeadline(), pass: () => recovery.expireDue() },
      reviews: { next: () => reviews.nextDeadline(), pass: () => reviews.expire() },
    })
  }

  /** Creates a task. An agent can only create tasks in its own workspace. */
  async create(who: Who, body: CreateTaskBody): Promise<Task> {
    return this.writer.create(who, body, await this.#targetOf(who, body))
  }

  async createChild(who: Who, parent: string, body: CreateTaskBody): Promise<Task> {
    this.visible(who, parent)
    return this.writer.create(who, body, await this.#targetOf(who, body), parent)
  }

  async submit(actor: Actor, body: CreateTaskBody, { origin, key, profile, isQueued = true }: SubmitOptions = {}) {
    const own = whoOf(actor)
    const originRef = typeof origin === 'string' ? { ref: origin } : origin
    const who = { ...own, origin: { ...own.origin, ...originRef } }
    const known = body.id === undefined ? undefined : this.#core.tasks.get(body.id)
    const task = known ? this.#core.tasks.toWire(known) : await this.create(who, body)
    if (profile) await this.profiles.set(who, task.id, profile)
    if (!isQueued || task.draft || task.approval_state === 'pending') return { task }
    return this.execution.start(who, task.id, key === undefined ? {} : { idempotency_key: key })
  }

  async cancel(actor: Actor, id: string, reason: string): Promise<void> {
    const task = this.#core.tasks.get(id)
    if (task && !FINAL_TASK.has(task.status)) await this.control.cancel(whoOf(actor), id, { reason })
  }

  status(): ReturnType<typeof statusOf> {
    return statusOf(this.#core, this.recovery.since, this.runs.forcedStops)
  }

  /** Doctor findings: the scheduler and all unhealthy runs. */
  check(): DiagnosticItem[] {
    return [
      schedulerFinding(this.scheduler.toWire(), this.stalls.current),
      ...runFindings(this.#core),
      ...this.archive.findings(),
    ]
  }

  drain(who: Who, body: DrainBody, signal: AbortSignal): Promise<DrainReply> {
    return drainScheduler(this.#core, this.scheduler, who, body, signal)
  }

  async backlog(query: BacklogQuery): Promise<BacklogReply['backlog']> {
    return this.history.backlog(query, await this.#workspaceId(query.workspace))
  }

  async dashboard(query: DashboardQuery): Promise<Dashboard> {
    return dashboardOf(this.#core, query, await this.#workspaceId(query.workspace))
  }

  async listInbox(actor: Actor, query: InboxQuery): Promise<Inbox> {
    return this.inbox.list(whoOf(actor), query, await this.#workspaceId(query.workspace))
  }

  crewOf(id: string): { readonly isCoordinator: boolean; readonly workers: number } {
    const run = this.#core.runs.get(id)
    const group = run?.designation_group_id ?? null
    const sql = "SELECT count(*) FROM tasks_run WHERE kind = 'worker' AND designation_group_id = ?"
    const workers = group === null ? 0 : Number(this.kernel.db.row(sql, [group])?.[0] ?? 0)
    return { isCoordinator: run?.kind === 'coordinator', workers }
  }

  /** The active run of a session. */
  runOf(session: string): TaskRun | undefined {
    const [run] = this.#core.runs.ofSession(session)
    return run && runToWire(run)
  }

  readonly waiting = (most?: number) => waitingTasks(this.#core, most)

  async #workspaceId(reference: string | undefined): Promise<string | undefined> {
    return reference ? (await this.kernel.needs.workspaces.find(reference)).id : undefined
  }

  titleOf(id: string): string | undefined {
    return this.#core.tasks.get(id)?.title
  }

  workspaceOf(id: string): string | undefined {
    return this.#core.tasks.get(id)?.workspace_id ?? undefined
  }

  creatorSession(id: string): string | undefined {
    const { created_by_kind: kind, created_by_ref: ref } = this.#core.tasks.get(id) ?? {}
    return kind === 'agent_session' ? ref : undefined
  }

  run(id: string): TaskRun | undefined {
    const row = this.#core.runs.get(id)
    return row && runToWire(row)
  }

  attention(actor: Actor, of: { readonly workspaceId?: string | undefined; readonly limit: number }): TaskAttention {
    return attentionOf(this.#core, this.inbox, actor, of)
  }

  activity(workspaceId?: string) {
    return activityOf(this.#core, workspaceId)
  }

  async list(actor: Actor, query: ListTasksQuery): Promise<ListTasksReply> {
    const session = sessionOf(actor)
    const own = session === undefined ? undefined : this.kernel.needs.sessions.get(session)?.workspaceId
    const workspaceId = query.workspace && (await this.kernel.needs.workspaces.find(query.workspace)).id
    if (own !== undefined && workspaceId && workspaceId !== own) throw foreignWorkspace()
    return this.#catalog.list(actor, query, own ?? (workspaceId || undefined))
  }

  /**
   * Reads a task from the catalog or from the archive. Throws `task_not_found` (404), `identity_unauthorized` (403) when an agent
   * reads a task of another workspace.
   */
  async reading<T>(actor: Actor, id: string, read: (views: TaskReading) => T): Promise<T> {
    const who = whoOf(actor)
    const segment = this.#core.tasks.get(id) ? undefined : this.archive.segmentOf(id)
    return this.#read(who, segment, () => id, read)
  }

  /** {@link reading} for the task of a run. Throws `task_run_not_found` (404). */
  async readingRun<T>(actor: Actor, id: string, read: (views: TaskReading) => T): Promise<T> {
    const segment = this.#core.runs.get(id) ? undefined : this.archive.segmentOfPart(id)
    return this.#read(whoOf(actor), segment, ({ core }) => core.runs.find(id).task_id, read)
  }

  /** {@link reading} for the task of a review. Throws `task_review_not_found` (404). */
  async readingReview<T>(actor: Actor, id: string, read: (views: TaskReading) => T): Promise<T> {
    const segment = this.reviews.has(id) ? undefined : this.archive.segmentOfPart(id)
    return this.#read(whoOf(actor), segment, ({ reviews }) => reviews.find(id).task_id, read)
  }

  async #read<T>(
    who: Who,
    segment: number | undefined,
    taskOf: (views: TaskReading) => string,
    read: (views: TaskReading) => T,
  ): Promise<T> {
    const from = (views: TaskReading): T => {
      this.#admit(who, views.core.tasks.find(taskOf(views)))
      return read(views)
    }
    if (segment === undefined) {
      const { details, history, inspection, profiles, reviews } = this
      return from({ core: this.#core, details, history, inspection, profiles, reviews })
    }
    return this.archive.use(segment, db => {
      const views = readingOf(this.kernel, db)
      return from({ ...views, inspection: new TaskInspection(views.core, views.details, this.scheduler) })
    })
  }

  /**
   * Streams the events of a task from the catalog or the archive, each once, until the reader disconnects or the task is deleted.
   */
  async *stream(actor: Actor, id: string, after: number, signal: AbortSignal): AsyncGenerator<Frame> {
    let at = after
    while (!signal.aborted) {
      for await (const frame of this.history.stream(id, at, signal)) {
        at = Number(frame.id)
        yield frame
      }
      if (signal.aborted || this.archive.segmentOf(id) === undefined) return
      for (;;) {
        const old = await this.reading(actor, id, ({ history }) => history.frames(id, at))
        for (const frame of old) yield frame
        if (old.length === 0) break
        at = Number(old.at(-1)?.id)
      }
      while (!signal.aborted && this.archive.segmentOf(id) !== undefined) await this.#core.journal.changed(id, signal)
    }
  }

  /** Restores a task from the archive, with its whole tree. */
  async restore(id: string): Promise<Task> {
    await this.archive.restore(id)
    return this.#core.tasks.toWire(this.#core.tasks.find(id))
  }

  listRuns({ core }: TaskReading, task: string, query: ListTaskRunsQuery): TaskRun[] {
    const { status, session_id: sessionId, participation_channel: channel, limit = DEFAULT_RUNS } = query
    const filter = { status, sessionId, channel, limit }
    return core.runs.list(task, filter).map(runToWire)
  }

  /** Throws `identity_unauthorized` (403) when an agent accesses a task of another workspace. */
  visible(who: Who, id: string): void {
    this.#admit(who, this.#core.tasks.find(id))
  }

  #admit({ by }: Who, task: Pick<TaskRow, 'workspace_id'>): void {
    if (by.kind !== 'agent_session') return
    const own = this.kernel.needs.sessions.get(by.ref)?.workspaceId
    if (task.workspace_id !== null && task.workspace_id !== own) throw foreignWorkspace()
  }

  /**
   * The calling session: that of the socket or token, or the one that an operator names in headers, which the plugin
   * `identity` has verified. Throws `identity_required` (401), `AUTONOMY_SESSION_REQUIRED` (409).
   */
  caller(actor: Actor, headers: Headers): { readonly session: SessionInfo; readonly who: Who } {
    const own = sessionOf(actor)
    const agent = headers['x-service-agent']
    const id = own ?? headers['x-service-session-id']
    if (id === undefined || (own === undefined && agent === undefined)) {
      const next = 'run the command in a session, where SVC_SOCKET is set'
      throw KernelErrors.identity_required('this operation requires an agent session; the caller is the operator', {
        next,
      })
    }
    const session = this.kernel.needs.sessions.get(id)
    if (!session || (agent !== undefined && session.agentName !== agent))
      throw KernelErrors.identity_required('the headers do not name a session of that agent', {
        next: command('session list'),
      })
    return { session: this.#core.activeSession(id), who: whoOfSession(actor, session.id) }
  }

  async #targetOf({ by }: Who, { scope, workspace }: CreateTaskBody): Promise<TaskTarget> {
    const { sessions, workspaces } = this.kernel.needs
    const own = by.kind === 'agent_session' ? sessions.get(by.ref)?.workspaceId : undefined
    if (scope === 'global') {
      if (workspace) throw TaskErrors.task_invalid('workspace: not allowed with scope global')
      return { scope }
    }
    if (!workspace && own === undefined) throw TaskErrors.task_invalid('workspace: required for scope workspace')
    const { id } = workspace ? await workspaces.find(workspace) : { id: own ?? '' }
    if (own !== undefined && id !== own) throw foreignWorkspace()
    return { scope, workspaceId: id }
  }
}
