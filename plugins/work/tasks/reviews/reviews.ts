import { command } from '../../../../kernel/kit/commands/command-line.js'
import { matching } from '../../../../kernel/kit/table.js'
import type { Reads, Tx } from '../../../../kernel/plugin.js'
import type {
  ListReviewsQuery,
  RequestReviewBody,
  ReviewRequestReply,
  TaskReview,
  VerdictBody,
  VerdictReply,
} from '../../../../schemas/tasks.js'
import type { SessionInfo } from '../../sessions/api.js'
import type { Settle, TaskCore } from '../core.js'
import { LIMITS } from '../limits.js'
import { type RunRow, runToWire } from '../runs/run-row.js'
import { wantAttention } from '../tasks/attention.js'
import type { TaskRow } from '../tasks/task-row.js'
import { continuationKey } from '../views/bundle.js'
import { type Who, whoOf } from '../who.js'
import { ReviewErrors } from './errors.js'
import { findReview, moveReview, OPEN, tellReview } from './moves.js'
import { newReview, type ReviewRow, type ReviewWish, reviewTable, reviewToWire } from './review-row.js'
import { consequenceOf, isDue } from './states.js'
import { checkedVerdict, invalid, text } from './verdict.js'

const DEFAULT_LIMIT = 50
const MOST_ROUNDS = 100

/** Reviews of ended runs. */
export class Reviews {
  constructor(
    private readonly core: TaskCore,
    /** Rounds after which a rejection needs attention; 0: no limit. */
    private readonly mostRounds: () => number,
    /** Whether the profile of the task allows the session to review its runs. */
    private readonly mayReview: (t: Tx, task: string, session: SessionInfo) => boolean,
  ) {}

  find(id: string, reads: Reads = this.core.kernel.db): ReviewRow {
    return findReview(reads, id)
  }

  has(id: string): boolean {
    return this.core.kernel.db.row('SELECT 1 FROM tasks_review WHERE id = ?', [id]) !== undefined
  }

  show(id: string): TaskReview {
    return reviewToWire(this.find(id))
  }

  /** The reviews of a task or a run, newest first. */
  list(of: { readonly task: string } | { readonly run: string }, query: ListReviewsQuery): TaskReview[] {
    const [column, id] =
      'task' in of ? ['task_id', this.core.tasks.find(of.task).id] : ['run_id', this.core.runs.find(of.run).id]
    const { sql, params } = matching(
      [`${column} = ?`, id],
      ['status = ?', query.status],
      ['session_id = ?', query.reviewer_session_id],
    )
    const rows = reviewTable.query(
      this.core.kernel.db,
      `WHERE ${sql} ORDER BY requested_at DESC, round DESC, id LIMIT +?`,
      [...params, query.limit ?? DEFAULT_LIMIT],
    )
    return rows.map(reviewToWire)
  }

  /** Requests a review of an ended run. There is one review per round. */
  request(who: Who, id: string, body: RequestReviewBody): Promise<ReviewRequestReply> {
    const deadline = Date.parse(body.deadline_at)
    const reason = text('reason', body.reason, LIMITS.reason)
    return this.core.write(who, t => {
      const run = this.core.runs.find(id, t)
      if (body.run_id !== id) throw invalid(`run_id: must be ${id}, as in the path`)
      if (body.task_id !== run.task_id) throw invalid(`task_id: must be ${run.task_id}, the task of run ${id}`)
      if (body.attempt !== undefined && body.attempt !== run.attempt)
        throw invalid(`attempt: must be ${run.attempt}, the attempt of run ${id}`)
      const parent = body.parent_review_id === undefined ? undefined : this.find(body.parent_review_id, t)
      if (parent && parent.task_id !== run.task_id)
        throw invalid(`parent_review_id: review ${parent.id} belongs to another task`)
      const round = body.review_round ?? (parent ?? this.#before(t, run))?.round ?? 0
      const own = body.review_round === undefined ? round + 1 : round
      if (own < 1 || own > MOST_ROUNDS) throw invalid(`review_round: must be between 1 and ${MOST_ROUNDS}, not ${own}`)
      const known = this.#of(t, id, body.review_round)
      if (known) return { review: reviewToWire(known), created: false }
      if (deadline <= this.core.now()) throw invalid(`deadline_at: must be in the future, not ${body.deadline_at}`)
      const policy = body.policy ?? 'always'
      if (!isDue(policy, run.status))
        throw ReviewErrors.task_review_not_due(
          `run ${id} is ${run.status}; only ended runs that review policy ${policy} covers can be reviewed`,
        )
      const review = this.#insert(t, who, run, { round: own, policy, reason, deadline, parent: parent?.id ?? null })
      return { review: reviewToWire(review), created: true }
    })
  }

  /** Assigns the review to a session. */
  route(who: Who, id: string, sessionId: string): Promise<TaskReview> {
    return this.core.write(who, t => {
      const review = this.find(id, t)
      const session = this.core.activeSession(sessionId)
      this.#refuseUnfit(t, review, session)
      return moveReview(this.core, t, who, review, 'route', 'task.run_review_routed', {
        session_id: session.id,
        agent_name: session.agentName,
        routed_at: this.core.now(),
      })
    })
  }

  /** The calling session starts the review. From then on, only this session or a person can record the verdict. */
  start(who: Who, id: string, session: SessionInfo): Promise<TaskReview> {
    return this.core.write(who, t => {
      const review = this.find(id, t)
      this.#refuseForeign(t, review, session)
      if (review.status === 'in_review') return reviewToWire(review)
      const now = this.core.now()
      return moveReview(this.core, t, who, review, 'start', 'task.run_review_started', {
        session_id: session.id,
        agent_name: session.agentName,
        routed_at: review.routed_at ?? now,
        started_at: now,
      })
    })
  }

  cancel(who: Who, id: string): Promise<TaskReview> {
    return this.core.write(who, t =>
      moveReview(this.core, t, who, this.find(id, t), 'cancel', 'task.run_review_canceled', {}),
    )
  }

  /** Records the verdict. A rejection queues another run or makes the task need attention. */
  async verdict(who: Who, id: string, body: VerdictBody, session: SessionInfo | undefined): Promise<VerdictReply> {
    const { verdict } = body
    const said = checkedVerdict(verdict)
    return this.core.write(who, (t, settle) => {
      const review = this.find(id, t)
      if (body.run_id !== review.run_id) throw invalid(`run_id: must be ${review.run_id}, the run of review ${id}`)
      if (session) this.#refuseForeign(t, review, session)
      if (review.delivery_id === verdict.delivery_id) return this.#recorded(t, review)
      const reviewer = session ? { session_id: session.id, agent_name: session.agentName } : {}
      return this.#record(t, who, review, { ...said, ...reviewer }, settle)
    })
  }

  /** The earliest deadline of an open review, in epoch milliseconds. */
  nextDeadline(): number | undefined {
    const row = this.core.kernel.db.row(`SELECT min(deadline_at) FROM tasks_review WHERE status IN (${OPEN})`)
    return typeof row?.[0] === 'number' ? row[0] : undefined
  }

  /** Records the outcome timeout for overdue reviews. */
  async expire(): Promise<void> {
    const who = whoOf(this.core.kernel.actor)
    const read = (reads: Reads) =>
      reviewTable.query(reads, `WHERE status IN (${OPEN}) AND deadline_at <= ? ORDER BY deadline_at, id LIMIT +?`, [
        this.core.now(),
        LIMITS.batch,
      ])
    if (read(this.core.kernel.db).length === 0) return
    await this.core.write(who, (t, settle) => {
      const late = read(t)
      const said = { outcome: 'timeout', verdict_reason: 'no verdict before the deadline' } as const
      for (const review of late) this.#record(t, who, review, said, settle)
    })
  }

  /** Unassigns the open reviews of a stopped session. */
  sessionStopped(session: string): Promise<void> {
    const who = whoOf(this.core.kernel.actor)
    return this.core.write(who, t => {
      const rows = reviewTable.query(t, `WHERE session_id = ? AND status IN ('routed', 'in_review')`, [session])
      const nobody = { session_id: null, agent_name: null, routed_at: null, started_at: null }
      for (const row of rows) moveReview(this.core, t, who, row, 'giveBack', 'task.run_review_requested', nobody)
    })
  }

  #insert(t: Tx, who: Who, run: RunRow, wish: ReviewWish): ReviewRow {
    const row = newReview(this.core.kernel.ids.id('trev'), this.core.now(), run, wish)
    reviewTable.insert(t, row)
    this.core.deadlines.arm('reviews', row.deadline_at)
    tellReview(this.core, t, who, row, 'task.run_review_requested')
    return row
  }

  #record(t: Tx, who: Who, review: ReviewRow, said: Partial<ReviewRow>, settle: Settle): VerdictReply {
    const task = this.core.tasks.find(review.task_id, t)
    const what = consequenceOf(said.outcome ?? 'error', review.round, this.mostRounds())
    const next = what === 'continue' ? this.#continue(t, who, task, review, said) : undefined
    const stop = what === 'stop'
    moveReview(
      this.core,
      t,
      who,
      review,
      stop ? 'openCircuit' : 'record',
      stop ? 'task.run_review_circuit_opened' : 'task.run_review_recorded',
      {
        ...said,
        reviewed_by_kind: who.by.kind,
        reviewed_by_ref: who.by.ref,
        reviewed_at: this.core.now(),
        continuation_run: next?.id ?? null,
      },
    )
    if (stop) wantAttention(this.core, t, who, task, `review_${said.outcome}: ${said.verdict_reason}`, review.run_id)
    settle(task.id)
    return this.#recorded(t, this.find(review.id, t))
  }

  /** Queues the next run, unless the task is canceled or already has an open run. */
  #continue(t: Tx, who: Who, task: TaskRow, review: ReviewRow, said: Partial<ReviewRow>): RunRow | undefined {
    if (task.status === 'canceled' || this.core.runs.open(task.id, t).length > 0) return undefined
    const metadata = {
      review: {
        review_id: review.id,
        review_round: review.round,
        reason: said.verdict_reason,
        ...(said.guidance ? { next_round_guidance: said.guidance } : {}),
        ...(said.missing_work ? { missing_work: JSON.parse(said.missing_work) } : {}),
      },
    }
    const previous = this.core.runs.find(review.run_id, t)
    const wish = { key: continuationKey(review.id), metadata, previous, reopens: true }
    return this.core.reservations.reserve(t, who, task, wish).run
  }

  #recorded(t: Tx, review: ReviewRow): VerdictReply {
    const next = review.continuation_run === null ? undefined : this.core.runs.get(review.continuation_run, t)
    return {
      review: reviewToWire(review),
      circuit_opened: review.status === 'circuit_opened',
      continuation_run: next ? runToWire(next) : null,
    }
  }

  /** The review of a run in that round, or its latest open review. */
  #of(t: Tx, run: string, round: number | undefined): ReviewRow | undefined {
    if (round !== undefined) return reviewTable.get(t, { run_id: run, round })
    return reviewTable.query(t, `WHERE run_id = ? AND status IN (${OPEN}) ORDER BY round DESC LIMIT 1`, [run])[0]
  }

  /** The latest review of a run or of its previous run. */
  #before(t: Tx, run: RunRow): ReviewRow | undefined {
    const runs = [run.id, run.previous_run_id ?? '']
    return reviewTable.query(t, 'WHERE run_id IN (?, ?) ORDER BY round DESC LIMIT 1', runs)[0]
  }

  #refuseForeign(t: Tx, review: ReviewRow, session: SessionInfo): void {
    this.#refuseUnfit(t, review, session)
    if (review.session_id !== null && review.session_id !== session.id)
      throw ReviewErrors.task_review_foreign(`review ${review.id} is assigned to session ${review.session_id}`)
  }

  #refuseUnfit(t: Tx, review: ReviewRow, session: SessionInfo): void {
    if (!this.mayReview(t, review.task_id, session))
      throw ReviewErrors.task_review_foreign(
        `the profile of task ${review.task_id} does not allow agent ${session.agentName} to review its runs`,
        { next: command('task profile show', review.task_id) },
      )
    const worked = this.core.runs.find(review.run_id, t).session_id
    if (worked === session.id)
      throw ReviewErrors.task_review_own_work(
        `session ${session.id} worked on run ${review.run_id} and cannot review it`,
      )
  }
}
