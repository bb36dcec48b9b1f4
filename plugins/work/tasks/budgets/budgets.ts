import { shown } from '../../../../kernel/kit/text.js'
import type { Reads, Tx } from '../../../../kernel/plugin.js'
import type { Budget, BudgetKind, SetBudgetBody } from '../../../../schemas/tasks.js'
import type { SessionInfo, SessionUse, SessionUses } from '../../sessions/api.js'
import type { TaskCore } from '../core.js'
import { LIMITS } from '../limits.js'
import { type RunRow, runTable } from '../runs/run-row.js'
import { escalate } from '../tasks/attention.js'
import { type Who, whoOf } from '../who.js'
import { type Limits, NOTHING, plus, shareOf, usedUp } from './amounts.js'
import { checked, invalid } from './checked.js'
import { BudgetErrors } from './errors.js'
import { Ledger, limitsOf, toldOf } from './ledger.js'
import { exhausted, judgeMeasured, wordsOf } from './refusals.js'
import { budgetTable, type Caps, type Hold, holdTable } from './tables.js'
import { AgentUses, type Told } from './uses.js'

/** At most this many runs share the rest of a budget. */
const SHARERS = 16
const KINDS = ['task', 'agent'] as const

/**
 * Enforces budgets. A claim reserves an equal share of the remaining budget for the run, counting the queued runs. A run that
 * has used its share gets another one while anything is left; after that, the next usage report of its agent cancels the turn.
 */
export class Budgets {
  readonly #ledger: Ledger
  readonly #uses: AgentUses
  #count: number | undefined

  constructor(private readonly core: TaskCore) {
    this.#ledger = new Ledger(core.kernel.db, () => core.now())
    this.#uses = new AgentUses(() => core.kernel.needs.sessions.uses)
  }

  list(): Budget[] {
    return this.#ledger.all().map(row => this.#ledger.toWire(row))
  }

  /** Throws `task_budget_not_found` (404). */
  show(kind: BudgetKind, ref: string): Budget {
    const row = this.#ledger.budget(kind, ref)
    if (!row) throw BudgetErrors.task_budget_not_found(`budget not found: ${kind} ${shown(ref)}`)
    return this.#ledger.toWire(row)
  }

  /** Sets the limits of a task or an agent. They also apply to active runs. */
  async set(who: Who, kind: BudgetKind, ref: string, body: SetBudgetBody): Promise<Budget> {
    const limits = checked(body)
    if (kind === 'task') this.core.tasks.find(ref)
    else if (ref === '' || ref.length > LIMITS.key) throw invalid(`ref: must have 1 to ${LIMITS.key} characters`)
    const sessions = this.core.kernel.needs.sessions
    const held = sessions.unstopped().filter(({ agentName }) => kind === 'task' || agentName === ref)
    for (const { id } of held) await this.learn(id)
    await this.core.write(who, t => {
      budgetTable.replace(t, { kind, ref, ...limits, updated_at: this.core.now() })
      this.#count = undefined
      this.#changed(t, kind, ref)
      this.core.kernel.db.onDurable(t, () => this.#arm())
    })
    return this.show(kind, ref)
  }

  async remove(who: Who, kind: BudgetKind, ref: string): Promise<void> {
    this.show(kind, ref)
    await this.core.write(who, t => {
      budgetTable.delete(t, { kind, ref })
      this.#count = undefined
      this.#changed(t, kind, ref)
    })
  }

  /** The usage that the agent of a claimant has to report for the runs of a task. */
  measures(t: Tx, task: string): readonly ('tokens' | 'cost')[] {
    if (this.#isUnused()) return []
    const budget = this.#ledger.budget('task', task, t)
    return budget ? toldOf(limitsOf(budget)) : []
  }

  /** Whether a budget limits the task. */
  limits(reads: Reads, task: string): boolean {
    return !this.#isUnused() && this.#ledger.budget('task', task, reads) !== undefined
  }

  /** The usage that the agent of a session reports; undefined when unknown or when there are no budgets. */
  tells({ agentName, provider }: SessionInfo): ReturnType<SessionUses['tells']> {
    return this.#isUnused() ? undefined : this.core.kernel.needs.sessions.uses.tells(agentName, provider)
  }

  /** Loads the reported usage of a session, since a transaction cannot wait for it. */
  async learn(session: string): Promise<void> {
    if (!this.#isUnused()) await this.#uses.learn(session)
  }

  /** Throws `AUTONOMY_BUDGET_…` (409) when the agent's own budget does not allow a claim. */
  judgeAgent(t: Reads, session: SessionInfo): void {
    const budget = this.#isUnused() ? undefined : this.#ledger.budget('agent', session.agentName, t)
    if (!budget) return
    judgeMeasured(limitsOf(budget), session, this.tells(session))
    const name = usedUp(this.#ledger.left(budget, '', t), NOTHING)
    if (name !== undefined) throw exhausted(budget, name)
  }

  /** Throws when the budget of a task does not allow the agent to claim one of its runs. */
  judgeTask(t: Reads, session: SessionInfo, task: string): void {
    const budget = this.#isUnused() ? undefined : this.#ledger.budget('task', task, t)
    if (budget) judgeMeasured(limitsOf(budget), session, this.tells(session))
  }

  /** Reserves the share of the run. Returns the reason when nothing is left. */
  reserve(t: Tx, session: SessionInfo, run: RunRow): string | undefined {
    if (this.#isUnused()) return undefined
    const caps: { [K in BudgetKind]?: Limits } = {}
    for (const kind of KINDS) {
      const budget = this.#ledger.budget(kind, kind === 'task' ? run.task_id : session.agentName, t)
      if (!budget) continue
      const left = this.#ledger.left(budget, run.id, t)
      const name = usedUp(left, NOTHING)
      if (name !== undefined) return exhausted(budget, name).message
      caps[kind] = shareOf(left, NOTHING, 1 + this.#waiting(t, kind, run))
    }
    if (Object.keys(caps).length > 0) this.#hold(t, session, run, caps)
    this.core.kernel.db.onDurable(t, () => this.#arm())
    return undefined
  }

  /** Counts the usage that an agent reported. */
  async recordUsage(session: string, use: SessionUse): Promise<void> {
    this.#uses.note(session, use)
    if (!this.#isUnused() && this.#ledger.hold({ sessionId: session })) await this.#measure(session)
  }

  /**
   * A turn has ended. A run with a limit that its agent did not report on during the turn is stopped.
   * @param cutShort a cancel or a crash may have ended the turn before the agent could report anything
   */
  async turnEnded(session: string, cutShort: boolean): Promise<void> {
    const fresh = this.#uses.turnEnded(session)
    if (!this.#isUnused() && this.#ledger.hold({ sessionId: session }))
      await this.#measure(session, cutShort ? undefined : fresh)
  }

  /**
   * When the time of active runs is counted next, in epoch milliseconds: when the first of them exhausts its time, or after the
   * interval. Undefined without a reservation.
   */
  nextCount(): number | undefined {
    if (this.#isUnused() || this.#ledger.holds().length === 0) return undefined
    return Math.min(this.#ledger.nextEnd() ?? Number.POSITIVE_INFINITY, this.core.now() + LIMITS.intervalMs)
  }

  /** Counts the time of all active runs. */
  async count(): Promise<void> {
    if (this.#isUnused()) return
    for (const { sessionId } of this.#ledger.holds()) await this.#measure(sessionId)
  }

  forget(session: string): void {
    this.#uses.forget(session)
  }

  #arm(): void {
    this.core.deadlines.arm('budgets', this.nextCount())
  }

  /** Counts the usage and stops the run when it exceeds its budget. */
  async #measure(session: string, fresh?: Told): Promise<void> {
    const who = whoOf(this.core.kernel.actor)
    const { sessions } = this.core.kernel.needs
    const written = this.core.write(who, (t, settle) => {
      const hold = this.#ledger.hold({ sessionId: session }, t)
      const run = hold && this.core.runs.get(hold.runId, t)
      if (!hold || !run || run.lease_until === null) return false
      const after = this.#counted(t, hold)
      const why = this.#overrun(t, after, run) ?? (fresh ? this.#untold(after, fresh) : undefined)
      if (why === undefined) return false
      escalate(this.core, t, who, run, why, settle)
      runTable.update(t, { id: run.id }, { failure_kind: 'budget_exceeded' })
      const task = this.core.tasks.find(run.task_id, t)
      this.core.journal.write(t, who, 'task.budget_exceeded', { task, run: run.id, payload: { reason: why } })
      return true
    })
    // If the store cannot be written, the turn is canceled anyway; the run is escalated once writes work again.
    const stopped = await written.catch(async error => {
      if (this.#isOver(session)) await sessions.interrupt(session).catch(() => {})
      throw error
    })
    if (stopped) await sessions.interrupt(session).catch(() => {})
  }

  /** Gives the run another share when it has used its own. Returns the reason when nothing is left. */
  #overrun(t: Tx, hold: Hold, run: RunRow): string | undefined {
    let caps: Caps = hold.caps
    for (const kind of KINDS) {
      const cap = caps[kind]
      if (!cap || usedUp(cap, hold.used) === undefined) continue
      const budget = this.#ledger.budget(kind, kind === 'task' ? hold.taskId : hold.agentName, t)
      if (!budget) continue
      const left = this.#ledger.left(budget, hold.runId, t)
      const name = usedUp(left, NOTHING)
      if (name !== undefined)
        return `budget_exhausted: ${wordsOf(budget, name, this.#ledger.spent(kind, budget.ref, t)[name])}`
      caps = { ...caps, [kind]: shareOf(left, hold.used, 1 + this.#waiting(t, kind, run)) }
    }
    if (caps !== hold.caps) holdTable.replace(t, { ...hold, caps })
    return undefined
  }

  #untold({ caps, told, agentName }: Hold, fresh: Told): string | undefined {
    const names = KINDS.flatMap(kind => toldOf(caps[kind] ?? { tokens: null, cost: null, wall_ms: null }))
    const missing = names.find(name => told[name] === null || !fresh[name])
    return missing && `budget_unmeasured: agent ${agentName} ended a turn without reporting its ${missing}`
  }

  #counted(t: Tx, hold: Hold): Hold {
    return this.#ledger.add(
      t,
      hold,
      this.#uses.since(hold, this.core.now()),
      this.#uses.get(hold.sessionId) ?? hold.told,
    )
  }

  /** Whether the lease holder has used its share of a budget. */
  #isOver(session: string): boolean {
    const hold = this.#ledger.hold({ sessionId: session })
    if (!hold) return false
    const used = plus(hold.used, this.#uses.since(hold, this.core.now()))
    return KINDS.some(kind => hold.caps[kind] !== undefined && usedUp(hold.caps[kind], used) !== undefined)
  }

  /** The lease has ended: its unused reservation becomes available to other runs. */
  release(t: Tx, run: RunRow): void {
    if (this.#isUnused()) return
    const hold = this.#ledger.hold({ runId: run.id }, t)
    if (!hold) return
    this.#counted(t, hold)
    holdTable.delete(t, { runId: run.id })
  }

  #hold(t: Tx, session: SessionInfo, run: RunRow, caps: Caps): void {
    const reported = this.#uses.get(session.id) ?? { tokens: null, cost: null }
    holdTable.replace(t, {
      runId: run.id,
      sessionId: session.id,
      agentName: session.agentName,
      taskId: run.task_id,
      caps,
      used: NOTHING,
      told: reported,
      countedAt: this.core.now(),
    })
  }

  /** Applies changed limits to active and queued runs. */
  #changed(t: Tx, kind: BudgetKind, ref: string): void {
    if (kind === 'task') this.core.reservations.spread(t, this.core.tasks.find(ref, t))
    const budget = this.#ledger.budget(kind, ref, t)
    const runs = t.all<RunRow>('SELECT * FROM tasks_run WHERE lease_until IS NOT NULL AND session_id IS NOT NULL')
    for (const run of runs) {
      const session = this.core.kernel.needs.sessions.get(run.session_id ?? '')
      if (!session || (kind === 'task' ? run.task_id : session.agentName) !== ref) continue
      const hold = this.#ledger.hold({ runId: run.id }, t)
      const { [kind]: _, ...others } = hold?.caps ?? {}
      const used = hold?.used ?? NOTHING
      const cap = budget && shareOf(this.#ledger.left(budget, run.id, t), used, 1 + this.#waiting(t, kind, run))
      const caps = cap ? { ...others, [kind]: cap } : others
      if (hold) holdTable.replace(t, { ...hold, caps })
      else if (cap) this.#hold(t, session, run, caps)
    }
  }

  /** The number of queued runs that share the rest of the budget. */
  #waiting(t: Tx, kind: BudgetKind, run: RunRow): number {
    const [column, value] = kind === 'task' ? ['task_id', run.task_id] : ['place', run.place]
    const row = t.row(
      `SELECT count(*) FROM (SELECT 1 FROM tasks_run WHERE ${column} = ? AND ${column === 'task_id' ? '+' : ''}status = 'queued' AND claimable = 1 AND id <> ?
         LIMIT ${SHARERS - 1})`,
      [value ?? '', run.id],
    )
    return Number(row?.[0] ?? 0)
  }

  /** Without any budget, claims skip all of this. */
  #isUnused(): boolean {
    this.#count ??= Number(this.core.kernel.db.row('SELECT count(*) FROM tasks_budget')?.[0] ?? 0)
    return this.#count === 0
  }
}
