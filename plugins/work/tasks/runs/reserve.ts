import { command } from '../../../../kernel/kit/commands/command-line.js'
import type { Ids, Reads, Tx } from '../../../../kernel/plugin.js'
import type { ParticipationRequest } from '../../../../schemas/network.js'
import { TaskErrors } from '../api.js'
import type { TaskJournal } from '../journal.js'
import { LIMITS } from '../limits.js'
import { json } from '../rows.js'
import { FINAL_TASK } from '../states.js'
import type { TaskRow } from '../tasks/task-row.js'
import { runKinds, type Totals } from '../totals.js'
import type { Who } from '../who.js'
import { askedChannel, type RunParticipation } from './participation.js'
import { type RunKind, type RunRow, runTable, UNCLAIMED } from './run-row.js'
import type { RunStore } from './run-store.js'

/** A request to queue a run. */
export interface Reservation {
  readonly key: string
  readonly metadata?: unknown
  readonly participation?: ParticipationRequest | null | undefined
  /** The run that it succeeds; max_attempts does not apply then. */
  readonly previous?: RunRow
  /** Allows a run of a completed task whose result was rejected. */
  readonly reopens?: boolean
  /** The part of a fan-out that it works on; by default that of `previous`. */
  readonly designation?: Designation
}

/** A part of a fan-out, or the run that coordinates it. */
type Designation =
  | { readonly index: number; readonly brief: string; readonly group: string }
  | { readonly kind: 'coordinator'; readonly index: null; readonly group: string }

/** Requirements on the claimant, stored with the run; empty for a run that any session may claim. */
export interface Wants {
  readonly owner?: { readonly kind: string; readonly ref: string }
  readonly required?: readonly string[]
  readonly preferred?: readonly string[]
  readonly agents?: readonly string[]
  readonly provider?: string
  /** Usage that its agent has to report, because the budget of the task limits it. */
  readonly measured?: readonly ('tokens' | 'cost')[]
}

/** Queues runs. All runs are created here. */
export class Reservations {
  /** Since the daemon started: repeated requests, and runs that requested a network channel but stay local. */
  readonly counts = { duplicates: 0, mismatches: 0 }

  constructor(
    private readonly ids: Ids,
    private readonly now: () => number,
    private readonly runs: RunStore,
    private readonly journal: TaskJournal,
    private readonly totals: Totals,
    private readonly participation: RunParticipation,
    /** The request in the execution profile of a task. */
    private readonly profiled: (t: Tx, task: TaskRow) => ParticipationRequest | null | undefined,
    /** The requirements on claimants of a task. */
    readonly wants: (t: Tx, task: TaskRow, kind: RunKind) => Wants,
    /** Whether the execution profile of a task wants a coordinator. */
    readonly guided: (reads: Reads, task: string) => boolean,
  ) {}

  /**
   * Queues a run, or returns the one that the same origin queued with the same key. The caller has to reconcile the status
   * of the task.
   * @throws Fault `task_run_open`, `task_attempts_exhausted`, `task_conflict`, `task_key_conflict`
   */
  reserve(t: Tx, who: Who, task: TaskRow, wish: Reservation): { readonly run: RunRow; readonly existing: boolean } {
    if (wish.key.length > LIMITS.key) throw TaskErrors.task_invalid(`idempotency_key: at most ${LIMITS.key} characters`)
    const known = this.#known(t, who, task, wish.key)
    if (known) {
      this.counts.duplicates++
      return { run: known, existing: true }
    }
    const part = wish.designation ?? (wish.previous ? partOf(wish.previous) : this.#lead(t, task))
    this.#judge(t, task, wish, part)
    const attempt = this.#attempt(t, task, wish, part)
    const kind = part?.index === null ? 'coordinator' : 'worker'
    const wants = this.wants(t, task, kind)
    const id = this.ids.id('trun')
    const requests = { request: wish.participation, profile: this.profiled(t, task) }
    const participation = this.participation.resolve(t, { runId: id, task, ...requests })
    const named = askedChannel(task, requests)
    if (named !== null && participation.mode === 'local') this.counts.mismatches++
    const run: RunRow = {
      id,
      task_id: task.id,
      kind,
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
      designation_index: part?.index ?? null,
      designation_brief: briefOf(part),
      designation_group_id: part?.group ?? null,
      metadata: metadataOf(wish, part),
      result: null,
      error: null,
      failure_kind: null,
      participation: json(participation),
      channel: participation.mode === 'live' ? participation.channel_id : named,
      place: task.workspace_id ?? '',
      priority: task.priority,
      claimable: task.claimable,
      wants: Object.keys(wants).length > 0 ? json(wants) : null,
      profiled: Number(t.row('SELECT 1 FROM tasks_profile WHERE task_id = ?', [task.id]) !== undefined),
      next_key: null,
      next_run: null,
    }
    runTable.insert(t, run)
    this.totals.moved(t, runKinds(run.origin_kind, run.place), undefined, run.status)
    this.journal.write(t, who, 'task.run_enqueued', {
      task,
      run: run.id,
      payload: { attempt, ...(part && { designation: part }) },
    })
    return { run, existing: false }
  }

  /** Applies changed requirements of a task or profile to its queued runs. */
  spread(t: Tx, task: TaskRow): void {
    for (const kind of ['worker', 'coordinator'] as const) {
      const wants = this.wants(t, task, kind)
      t.run("UPDATE tasks_run SET wants = ? WHERE task_id = ? AND kind = ? AND +status = 'queued'", [
        Object.keys(wants).length > 0 ? json(wants) : null,
        ...[task.id, kind],
      ])
    }
  }

  /** The first run of a task with a coordinator is the coordinator itself: its fan-outs join it. */
  #lead(t: Tx, { id }: TaskRow): Designation | undefined {
    return this.guided(t, id) ? { kind: 'coordinator', index: null, group: this.ids.id('tgrp') } : undefined
  }

  #known(t: Tx, { origin }: Who, task: TaskRow, key: string): RunRow | undefined {
    const run = t.get<RunRow>(
      'SELECT * FROM tasks_run WHERE origin_kind = ? AND origin_ref = ? AND idempotency_key = ?',
      [origin.kind, origin.ref, key],
    )
    if (run && run.task_id !== task.id)
      throw TaskErrors.task_key_conflict(`idempotency_key already used by run ${run.id} of task ${run.task_id}`)
    return run
  }

  #judge(t: Tx, task: TaskRow, { previous, reopens }: Reservation, part: Designation | undefined): void {
    const next = command('task get', task.id)
    if (task.status === 'draft')
      throw TaskErrors.task_conflict(`task ${task.id} is a draft; publish it first`, {
        next: command('task publish', task.id),
      })
    const goesOn = previous !== undefined && (task.status === 'failed' || (reopens && task.status === 'completed'))
    if (FINAL_TASK.has(task.status) && !goesOn)
      throw TaskErrors.task_conflict(`task ${task.id} is ${task.status}; no run can be queued`, { next })
    const other = this.runs.open(task.id, t).find(run => run.designation_group_id !== (part?.group ?? ''))
    if (other)
      throw TaskErrors.task_run_open(`task ${task.id} already has an open run: ${other.id} is ${other.status}`, {
        next,
      })
  }

  /** Each part of a fan-out counts its own attempts. */
  #attempt(t: Tx, task: TaskRow, { previous }: Reservation, part: Designation | undefined): number {
    const attempt = this.runs.nextAttempt(task.id, { group: part?.group ?? null, index: part?.index ?? null }, t)
    if (previous || attempt <= task.max_attempts) return attempt
    throw TaskErrors.task_attempts_exhausted(`task ${task.id} has used all ${task.max_attempts} attempts`, {
      next: command('task run list', task.id),
    })
  }
}

function metadataOf({ metadata }: Reservation, part: Designation | undefined): string | null {
  const own = part && part.index !== null && { designation: { index: part.index, brief: part.brief } }
  const text = json(own && isObject(metadata ?? {}) ? { ...(metadata as object | undefined), ...own } : metadata)
  if (text !== null && Buffer.byteLength(text) > LIMITS.metadata)
    throw TaskErrors.task_invalid(`metadata: at most ${LIMITS.metadata} bytes`)
  return text
}

const briefOf = (part: Designation | undefined): string | null =>
  part === undefined || part.index === null ? null : part.brief

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The part of a fan-out that a run works on; its successor gets the same part. */
function partOf(run: RunRow): Designation | undefined {
  if (run.designation_group_id === null) return undefined
  const { designation_group_id: group, designation_index: index, kind } = run
  if (kind === 'coordinator') return { kind, index: null, group }
  return index === null ? undefined : { group, index, brief: run.designation_brief ?? '' }
}
