import { iso, messageOf, type Tx } from '../../../../kernel/plugin.js'
import type { GoalOutcome, GoalVerdict, PromptReceipt } from '../../../../schemas/sessions.js'
import { SessionErrors, type TurnOutcome } from '../api.js'
import type { SessionsContext } from '../context.js'
import { isRestartable } from '../states.js'
import type { SessionRow } from '../table.js'
import { type NewPrompt, newPrompt } from '../turn/new-prompt.js'
import type { PromptStatus } from '../turn/prompts.js'
import { GOAL, type Goal, type GoalCommand, goalOf, goalPrompt, mayBecome, reportIn } from './goal.js'
import { snapshotOf } from './snapshot.js'

/** Trailing chunks of an answer that are searched for a report. */
const LAST_PIECES = 50
/** Temporary failures of a model. */
const USAGE_LIMIT = /rate.?limit|quota|usage limit|too many requests|\b429\b/i

type Ended = TurnOutcome | undefined
type Became = Pick<Goal, 'status' | 'run_status' | 'cause'>

/**
 * Goals of sessions: an agent works towards a goal over many turns, until it reports success or a block, a person pauses it, or its
 * turns are used up. The row stores the goal; turns are counted as they begin, so that a crash cannot add turns.
 */
export class Goals {
  constructor(private readonly context: SessionsContext) {}

  /**
   * Executes a goal command; the row keeps the reply under the key of the prompt. `isDue`: a turn may begin now.
   * @throws Fault `goal_not_active` (404), `goal_replace_required`, `session_stopped` (409)
   */
  async take(
    prompt: NewPrompt,
    command: GoalCommand,
  ): Promise<{ readonly prompt: PromptReceipt; readonly isDue: boolean }> {
    const { kernel, logs, table, prompts } = this.context
    const { session_id: id, idempotency_key: key, message_id } = prompt
    const row = this.#row(id)
    const before = goalOf(row)
    const now = command.kind === 'status' ? before : this.#after(before, command)
    const isDue = command.kind !== 'status' && now?.status === 'active'
    if (isDue) checkUsable(row)
    const replaced_run_id = command.kind === 'replace' ? (before?.run_id ?? null) : null
    const stored = now ? JSON.stringify(now) : null
    const snapshot = await snapshotOf(this.context, { ...row, goal: stored })
    const outcome = outcomeOf(command, replaced_run_id)
    const receipt: PromptReceipt = {
      status: `goal_${outcome}`,
      goal: { outcome, reason_code: null, replaced_run_id, snapshot },
      message_id,
      ...(key !== null && { idempotency_key: key }),
    }
    await kernel.db.tx(t => {
      if (command.kind !== 'status') table.update(t, id, { goal: stored, updated_at: kernel.clock.now() })
      if (key === null) return
      const answered = { generation: prompts.generation(id), reply: JSON.stringify(receipt) }
      prompts.insert(t, { ...prompt, text: '', status: 'completed', ...answered })
    })
    if (command.kind !== 'status') {
      await logs.use(id, async log => void log.append(goalEvent(outcome, isDue ? (now?.objective ?? '') : '')))
    }
    return { prompt: receipt, isDue }
  }

  /** The prompt of the next turn of an active goal; undefined when none is due. */
  next(id: string): NewPrompt | undefined {
    const goal = goalOf(this.#row(id))
    if (goal?.status !== 'active') return undefined
    return newPrompt(this.context.kernel, id, goalPrompt(goal, goal.turns_used + 1), { source: GOAL })
  }

  /** Stores and counts a turn that begins. */
  begin(t: Tx, prompt: NewPrompt, status: PromptStatus): void {
    const { prompts } = this.context
    const { session_id: id } = prompt
    prompts.insert(t, { ...prompt, status, generation: prompts.generation(id), reply: '{}' })
    const goal = goalOf(this.#row(id))
    if (goal) this.#write(t, id, { ...goal, run_status: 'running', turns_used: goal.turns_used + 1 })
  }

  /** Called after a turn. `isOwn`: the turn pursued the goal; `ended` is undefined when its end is unknown. */
  async over(id: string, ended: Ended, isOwn: boolean): Promise<void> {
    const row = this.context.table.get(id)
    const goal = row && goalOf(row)
    if (goal?.status !== 'active') return
    if (ended?.status === 'canceled') {
      // After a stop or a steering prompt the goal continues later.
      const isPaused = row?.state === 'active' && this.context.prompts.queued(id).length === 0
      if (isPaused) await this.#become(id, goal, 'the turn was canceled', PAUSED)
    } else if (isOwn && ended?.status === 'completed') await this.#judge(id, goal, ended)
    else if (isOwn)
      await this.failed(id, ended?.status === 'failed' ? ended.error : 'its turn could not be written down')
  }

  /** The next turn could not begin, or failed. */
  async failed(id: string, why: string): Promise<void> {
    const goal = goalOf(this.#row(id))
    if (goal?.status !== 'active') return
    const cause = 'goal_prompt_request_failed'
    const became: Became = USAGE_LIMIT.test(why)
      ? { status: 'usage-limited', run_status: 'stalled', cause }
      : { status: 'blocked', run_status: 'failed', cause }
    await this.#become(id, goal, why, became)
  }

  async #judge(id: string, goal: Goal, { turnId, stopReason }: Extract<TurnOutcome, { status: 'completed' }>) {
    if (stopReason === 'refusal') {
      const became: Became = { status: 'blocked', run_status: 'blocked', cause: 'goal_agent_refused' }
      return this.#become(id, goal, 'the agent refused', became)
    }
    const report = reportIn(await this.#lastWords(id, turnId))
    const verdict = (outcome: GoalVerdict['outcome'], note = ''): GoalVerdict => ({
      outcome,
      evaluated_at: iso(this.context.kernel.clock.now()),
      evidence_ref: turnId,
      blocking_issues: note === '' ? [] : [{ id: 'agent', note }],
    })
    if (report?.says === 'reached') {
      const became: Became = { status: 'complete', run_status: 'done', cause: null }
      return this.#become(id, { ...goal, last_verdict: verdict('approved') }, report.note, became)
    }
    if (report) {
      const became: Became = { status: 'blocked', run_status: 'blocked', cause: null }
      return this.#become(id, { ...goal, last_verdict: verdict('blocked', report.note) }, report.note, became)
    }
    const judged = { ...goal, last_verdict: verdict('rejected') }
    if (goal.turns_used >= goal.turn_limit) {
      const became: Became = { status: 'budget-limited', run_status: 'exhausted', cause: 'goal_budget_fenced' }
      return this.#become(id, judged, `its ${goal.turn_limit} turns are used up`, became)
    }
    await this.context.kernel.db.tx(t => this.#write(t, id, { ...judged, run_status: 'queued' }))
  }

  /** Changes the goal, unless a command has changed it in the meantime. */
  async #become(id: string, goal: Goal, why: string, became: Became): Promise<void> {
    const { kernel, logs } = this.context
    const isSame = await kernel.db.tx(t => {
      const now = goalOf(this.#row(id))
      const may = now?.run_id === goal.run_id && mayBecome(now.status, became.status)
      if (may) this.#write(t, id, { ...goal, ...became })
      return may
    })
    if (isSame) await logs.use(id, async log => void log.append(goalEvent(became.status, why)))
  }

  async #lastWords(id: string, turnId: string): Promise<string> {
    const query = { type: 'agent_message', turnId, limit: LAST_PIECES }
    const pieces = await this.context.logs
      .use(id, log => log.query(query, this.#row(id).usage))
      .catch(error => {
        this.context.kernel.log.error('an answer could not be read', { id, error: messageOf(error) })
        return []
      })
    return pieces.map(({ content }) => String(content.text ?? '')).join('')
  }

  /** The goal after a command. */
  #after(goal: Goal | undefined, command: Exclude<GoalCommand, { kind: 'status' }>): Goal | undefined {
    const { limits, kernel } = this.context
    if ('objective' in command) {
      if (command.kind === 'start' && goal && goal.status !== 'complete') throw SessionErrors.goal_replace_required()
      return {
        run_id: kernel.ids.id('goal'),
        objective: command.objective,
        status: 'active',
        run_status: 'queued',
        cause: null,
        last_verdict: null,
        turn_limit: limits.goalTurns,
        turns_used: 0,
      }
    }
    if (!goal) throw SessionErrors.goal_not_active('this session has no goal')
    if (command.kind === 'clear') return undefined
    const became: Became = command.kind === 'pause' ? PAUSED : { status: 'active', run_status: 'queued', cause: null }
    const isOver = command.kind === 'resume' && goal.status === 'active'
    if (isOver || !mayBecome(goal.status, became.status)) {
      throw SessionErrors.goal_not_active(`the goal of this session is ${goal.status}`)
    }
    // A resume after the last turn grants the same number of turns again.
    const turn_limit = goal.turns_used < goal.turn_limit ? goal.turn_limit : goal.turns_used + limits.goalTurns
    return { ...goal, ...became, turn_limit }
  }

  #write(t: Tx, id: string, goal: Goal): void {
    this.context.table.update(t, id, { goal: JSON.stringify(goal) })
  }

  #row(id: string): SessionRow {
    const row = this.context.table.get(id)
    if (!row) throw SessionErrors.session_not_found(`no session ${id}`)
    return row
  }
}

const PAUSED: Became = { status: 'paused', run_status: 'paused', cause: null }

function checkUsable({ state, stop_reason }: SessionRow): void {
  if (state === 'active' || isRestartable(state, stop_reason ?? undefined)) return
  throw SessionErrors.session_stopped(`this session is ${state}${stop_reason ? ` (${stop_reason})` : ''}`)
}

function outcomeOf({ kind }: GoalCommand, replaced: string | null): GoalOutcome['outcome'] {
  if (kind === 'start' || kind === 'replace') return replaced === null ? 'started' : 'replaced'
  return kind === 'status' ? 'status' : ({ pause: 'paused', resume: 'resumed', clear: 'cleared' } as const)[kind]
}

/** The event about a change of a goal. */
const goalEvent = (became: string, why: string) =>
  ({
    type: 'system',
    turnId: '',
    content: { note: 'goal', goal: became, text: `goal ${became}${why && `: ${why}`}` },
  }) as const
