import type { Ids, Tx } from '../../../kernel/plugin.js'
import type { ParticipationRequest, ResolvedParticipation } from '../../../schemas/network.js'
import { TaskErrors } from '../api.js'
import type { TaskJournal } from '../journal.js'
import { LIMITS } from '../limits.js'
import { insert, json } from '../rows.js'
import { FINAL_TASK } from '../states.js'
import type { TaskRow } from '../tasks/task-row.js'
import { runKinds, type Totals } from '../totals.js'
import type { Who } from '../who.js'
import { type RunRow, UNCLAIMED } from './run-row.js'
import type { RunStore } from './run-store.js'

/** A run that is asked for. */
export interface Reservation {
  readonly key: string
  readonly metadata?: unknown
  readonly participation?: ParticipationRequest | null | undefined
  /** The run whose work it goes on with; then the number of attempts of the task does not bound it. */
  readonly previous?: RunRow
  /** It goes on also with a task that is completed: what was made was not good. */
  readonly reopens?: boolean
  readonly designation?: { readonly index: number; readonly brief: string; readonly group: string }
}

/** What the claimant of a run has to be. Stored with the run; nothing of it for a run that anybody may claim. */
export interface Wants {
  readonly owner?: { readonly kind: string; readonly ref: string }
  readonly required?: readonly string[]
  readonly preferred?: readonly string[]
  readonly agents?: readonly string[]
  readonly provider?: string
  /** What it has to tell of its use, since the budget of the task limits that. */
  readonly measured?: readonly ('tokens' | 'cost')[]
}

/** Queues runs: the one way in which they come to be. */
export class Reservations {
  /** Since the daemon was started: requests that had a run already, and runs that do not take part where they were to. */
  readonly counts = { duplicates: 0, mismatches: 0 }

  constructor(
    private readonly ids: Ids,
    private readonly now: () => number,
    private readonly runs: RunStore,
    private readonly journal: TaskJournal,
    private readonly totals: Totals,
    /** What the claimants of the runs of a task have to be. */
    readonly wants: (t: Tx, task: TaskRow) => Wants,
  ) {}

  /**
   * Queues a run, or finds the one that was queued by the same origin with the same key. The status of the task is the caller's
   * to bring up to date.
   * @throws Fault `task_run_open`, `task_attempts_exhausted`, `task_conflict`, `task_key_conflict`
   */
  reserve(t: Tx, who: Who, task: TaskRow, wish: Reservation): { readonly run: RunRow; readonly existing: boolean } {
    if (wish.key.length > LIMITS.key) throw TaskErrors.task_invalid(`idempotency_key: at most ${LIMITS.key} characters`)
    const known = this.#known(t, who, task, wish.key)
    if (known) {
      this.counts.duplicates++
      return { run: known, existing: true }
    }
    this.#judge(t, task, wish)
    const attempt = wish.previous ? this.runs.nextAttempt(task.id, t) : this.#attempt(t, task, wish)
    const wants = this.wants(t, task)
    const channel = channelOf(task, wish.participation)
    if (channel !== null) this.counts.mismatches++
    const run: RunRow = {
      id: this.ids.id('trun'),
      task_id: task.id,
      kind: 'worker',
      status: 'queued',
      attempt,
      recovery_count: 0,
      previous_run_id: wish.previous?.id ?? null,
      idempotency_key: wish.key,
      origin_kind: who.origin.kind,
      origin_ref: who.origin.ref,
      ...UNCLAIMED,
      queued_at: this.now(),
      ended_at: null,
      designation_index: wish.designation?.index ?? null,
      designation_brief: wish.designation?.brief ?? null,
      designation_group_id: wish.designation?.group ?? null,
      metadata: metadataOf(wish),
      result: null,
      error: null,
      failure_kind: null,
      participation: json(participationOf(task, wish.participation)),
      channel,
      place: task.workspace_id ?? '',
      priority: task.priority,
      claimable: task.claimable,
      wants: Object.keys(wants).length > 0 ? json(wants) : null,
      profiled: Number(t.row('SELECT 1 FROM tasks_profile WHERE task_id = ?', [task.id]) !== undefined),
    }
    insert(t, 'tasks_run', run)
    this.totals.moved(t, runKinds(run.origin_kind, run.place), undefined, run.status)
    this.journal.write(t, who, 'task.run_enqueued', { task, run: run.id, payload: { attempt } })
    return { run, existing: false }
  }

  #known(t: Tx, { origin }: Who, task: TaskRow, key: string): RunRow | undefined {
    const run = t.get<RunRow>(
      'SELECT * FROM tasks_run WHERE origin_kind = ? AND origin_ref = ? AND idempotency_key = ?',
      [origin.kind, origin.ref, key],
    )
    if (run && run.task_id !== task.id)
      throw TaskErrors.task_key_conflict(`run ${run.id} of task ${run.task_id} has this key`)
    return run
  }

  #judge(t: Tx, task: TaskRow, { designation, previous, reopens }: Reservation): void {
    const next = `svc task get ${task.id}`
    if (task.status === 'draft')
      throw TaskErrors.task_conflict(`task ${task.id} is a draft`, { next: `svc task publish ${task.id}` })
    const goesOn = previous !== undefined && (task.status === 'failed' || (reopens && task.status === 'completed'))
    if (FINAL_TASK.has(task.status) && !goesOn)
      throw TaskErrors.task_conflict(`task ${task.id} is ${task.status}; no run can follow`, { next })
    const other = this.runs.open(task.id, t).find(run => run.designation_group_id !== (designation?.group ?? ''))
    if (other) throw TaskErrors.task_run_open(`run ${other.id} of task ${task.id} is ${other.status}`, { next })
  }

  /** Runs of one group are one attempt together. */
  #attempt(t: Tx, task: TaskRow, { designation }: Reservation): number {
    const group =
      designation &&
      t.row('SELECT attempt FROM tasks_run WHERE task_id = ? AND designation_group_id = ?', [
        task.id,
        designation.group,
      ])
    if (group) return Number(group[0])
    const attempt = this.runs.nextAttempt(task.id, t)
    if (attempt <= task.max_attempts) return attempt
    throw TaskErrors.task_attempts_exhausted(`all ${task.max_attempts} attempts of task ${task.id} are used`, {
      next: `svc task run list ${task.id}`,
    })
  }
}

function metadataOf({ metadata, designation }: Reservation): string | null {
  const own = designation && { designation: { index: designation.index, brief: designation.brief } }
  const text = json(own && isObject(metadata ?? {}) ? { ...(metadata as object | undefined), ...own } : metadata)
  if (text !== null && Buffer.byteLength(text) > LIMITS.metadata)
    throw TaskErrors.task_invalid(`metadata: at most ${LIMITS.metadata} bytes`)
  return text
}

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The channel by name that the run was to take part in. */
function channelOf(task: TaskRow, asked: ParticipationRequest | null | undefined): string | null {
  const wish: ParticipationRequest | null | undefined =
    asked ?? (task.participation === null ? undefined : JSON.parse(task.participation))
  return wish?.mode === 'live' && wish.channel_strategy === 'named' ? wish.channel_id : null
}

/** There is no network yet: whatever was asked for, the run takes no part, and says who would have decided. */
function participationOf(task: TaskRow, asked: ParticipationRequest | null | undefined): ResolvedParticipation {
  const source = asked ? 'explicit_request' : task.participation === null ? 'built_in_local' : 'task_profile'
  return { mode: 'local', source, version: 'network-participation/v1' }
}
