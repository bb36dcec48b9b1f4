import { command } from '../../../../kernel/kit/commands/command-line.js'
import type { Tx } from '../../../../kernel/plugin.js'
import type { ExecutionBody, FanOutBody, FanOutReply, Task, TaskRun } from '../../../../schemas/tasks.js'
import { TaskErrors } from '../api.js'
import type { Settle, TaskCore } from '../core.js'
import { LIMITS } from '../limits.js'
import type { Reservation } from '../runs/reserve.js'
import { type RunRow, runToWire } from '../runs/run-row.js'
import { moveTask } from '../transitions.js'
import type { Who } from '../who.js'
import type { Coordinators } from '../workers/coordinators.js'
import { showHint, type TaskRow, taskTable } from './task-row.js'
import { bounded, checked, checkedKey, invalid } from './write.js'

/** A task and the run that was queued for it, now or earlier with the same key. */
export interface Executed {
  readonly task: Task
  readonly run: TaskRun
  readonly existing_run: boolean
}

/** Queues the runs of tasks. */
export class TaskExecution {
  constructor(
    private readonly core: TaskCore,
    private readonly coordinators: Pick<Coordinators, 'decided'>,
    /** Maximum number of runs per fan-out. */
    private readonly mostRuns: () => number,
  ) {}

  start(who: Who, id: string, body: ExecutionBody): Promise<Executed> {
    return this.#execute(who, id, 'start', body)
  }

  enqueue(who: Who, id: string, body: ExecutionBody): Promise<Executed> {
    return this.#execute(who, id, 'enqueue', body)
  }

  /** Publishes a draft and queues its first run, which cannot be claimed while the task is blocked. */
  async publish(who: Who, id: string, body: ExecutionBody): Promise<Executed> {
    await this.core.kernel.needs.daemon.admit('task run')
    return this.core.write(who, (t, settle) => {
      const draft = this.core.tasks.find(id, t)
      if (draft.status !== 'draft')
        throw TaskErrors.task_conflict(`task ${id} is ${draft.status}; only drafts can be published`, showHint(id))
      moveTask(this.core, t, who, { task: draft, status: 'pending', event: 'task.published' })
      return this.#queue(t, who, id, wishOf(body, 'publish', id), settle)
    })
  }

  /** Approves a task and queues a run, unless it has an open run. */
  async approve(who: Who, id: string, body: ExecutionBody): Promise<Executed> {
    await this.core.kernel.needs.daemon.admit('task run')
    return this.core.write(who, (t, settle) => {
      const before = this.core.tasks.find(id, t)
      if (before.approval_policy !== 'manual' || before.approval_state !== 'pending')
        throw TaskErrors.task_conflict(
          `task ${id} is not waiting for approval: its approval state is ${before.approval_state}`,
          showHint(id),
        )
      if (before.status === 'draft')
        throw TaskErrors.task_conflict(`task ${id} is a draft; publish it first`, { next: command('task publish', id) })
      taskTable.update(t, { id }, { approval_state: 'approved' })
      this.core.journal.write(t, who, 'task.approved', { task: before })
      const [open] = this.core.runs.open(id, t)
      const wish = wishOf(body, before.auto_enqueue ? 'auto_enqueue' : 'approve', id)
      if (!open) return this.#queue(t, who, id, wish, settle)
      settle(id)
      const task = this.core.tasks.toWire(this.core.tasks.find(id, t), t)
      return { task, run: runToWire(this.core.runs.find(open.id, t)), existing_run: true }
    })
  }

  /** Queues several runs, one by one: when one fails, the earlier ones stay queued. */
  async fanOut(who: Who, id: string, body: FanOutBody): Promise<FanOutReply> {
    await this.core.kernel.needs.daemon.admit('task run')
    const coordinator = this.#mayFanOut(who, id)
    const { designations, network_participation: participation } = body
    const key = checkedKey(body.idempotency_key)
    const most = this.mostRuns()
    if (designations.length < 1 || designations.length > most)
      throw invalid(`designations: must have 1 to ${most} entries, not ${designations.length}`)
    const wishes = designations.map(({ brief, idempotency_key: own, metadata }, index) => {
      const name = `designations.${index}`
      const text = checked(`${name}.brief`, brief, LIMITS.reason)
      if (text === undefined) throw invalid(`${name}.brief: required`)
      const its = checkedKey(own, `${name}.idempotency_key`) ?? checkedKey(key && `${key}.${index}`)
      if (its === undefined) throw invalid(`${name}.idempotency_key: required when the request has no idempotency_key`)
      bounded(`${name}.metadata`, metadata)
      return { key: its, metadata, participation, brief: text }
    })
    if (new Set(wishes.map(wish => wish.key)).size < wishes.length)
      throw invalid('designations: each entry must have a different idempotency_key')
    const { group, first } = this.#placeOf(
      who,
      id,
      wishes.map(wish => wish.key),
    )
    if (first + wishes.length > most)
      throw invalid(`designations: the coordinator has ${first} runs already, and at most ${most} are allowed`)
    const lead = await this.#lead(who, id, group, participation)
    const runs: TaskRun[] = []
    for (const [at, { brief, ...wish }] of wishes.entries()) {
      const index = first + at
      const run = await this.core.write(who, (t, settle) => {
        const task = this.core.tasks.find(id, t)
        refuseUnapproved(task)
        const { run } = this.core.reservations.reserve(t, who, task, { ...wish, designation: { index, brief, group } })
        settle(id)
        return this.core.runs.find(run.id, t)
      })
      runs.push(runToWire(run))
    }
    if (coordinator)
      this.coordinators.decided(
        coordinator,
        who.by.ref,
        runs.map(run => run.id),
      )
    return { designation_group_id: group, runs: [...runs, ...lead] }
  }

  /** An agent may divide only the work that it coordinates. Returns its run. @throws Fault `task_fan_out_refused` */
  #mayFanOut({ by }: Who, id: string): RunRow | undefined {
    if (by.kind !== 'agent_session') return undefined
    const held = this.core.runs.ofSession(by.ref)
    const run = held.find(run => run.kind === 'coordinator' && run.task_id === id)
    if (run) return run
    throw TaskErrors.task_fan_out_refused(`the session ${by.ref} holds no coordinator run of task ${id}`)
  }

  /** Queues the coordinator of a fan-out, if the profile of the task wants one and none is active. */
  async #lead(who: Who, id: string, group: string, participation: Reservation['participation']): Promise<TaskRun[]> {
    if (!this.core.reservations.guided(this.core.kernel.db, id)) return []
    const run = await this.core.write(who, (t, settle) => {
      const task = this.core.tasks.find(id, t)
      refuseUnapproved(task)
      if (this.core.runs.all(id, t).some(run => run.kind === 'coordinator' && run.designation_group_id === group))
        return undefined
      const designation = { kind: 'coordinator', index: null, group } as const
      const { run } = this.core.reservations.reserve(t, who, task, {
        ...{ key: `task.coordinate.${group}`, participation, designation },
      })
      settle(id)
      return this.core.runs.find(run.id, t)
    })
    return run ? [runToWire(run)] : []
  }

  /**
   * The group of a fan-out, and the index of its first part. A repetition of a partly failed request, recognised by its keys,
   * continues the earlier group; otherwise new parts follow those of the active coordinator.
   */
  #placeOf({ origin }: Who, id: string, keys: readonly string[]): { readonly group: string; readonly first: number } {
    const { kernel, runs } = this.core
    for (const [at, key] of keys.entries()) {
      const run = kernel.db.get<RunRow>(
        'SELECT * FROM tasks_run WHERE origin_kind = ? AND origin_ref = ? AND idempotency_key = ?',
        [origin.kind, origin.ref, key],
      )
      const { designation_group_id: group, designation_index: index } = run ?? {}
      if (group) return { group, first: Math.max(0, (index ?? at) - at) }
    }
    const group = runs.open(id).find(run => run.kind === 'coordinator')?.designation_group_id
    if (!group) return { group: kernel.ids.id('tgrp'), first: 0 }
    const parts = runs.all(id).filter(run => run.designation_group_id === group && run.designation_index !== null)
    return { group, first: Math.max(-1, ...parts.map(run => run.designation_index ?? 0)) + 1 }
  }

  async #execute(who: Who, id: string, action: 'start' | 'enqueue', body: ExecutionBody): Promise<Executed> {
    await this.core.kernel.needs.daemon.admit('task run')
    return this.core.write(who, (t, settle) => {
      const before = this.core.tasks.find(id, t)
      refuseUnapproved(before)
      return this.#queue(t, who, id, wishOf(body, action, id), settle)
    })
  }

  #queue(t: Tx, who: Who, id: string, wish: Reservation, settle: Settle): Executed {
    const { run, existing } = this.core.reservations.reserve(t, who, this.core.tasks.find(id, t), wish)
    settle(id)
    const task = this.core.tasks.toWire(this.core.tasks.find(id, t), t)
    return { task, run: runToWire(this.core.runs.find(run.id, t)), existing_run: existing }
  }
}

/** Throws `task_conflict` or `task_approval_pending` (409) for a task without a required approval. */
function refuseUnapproved({ id, approval_policy: policy, approval_state: state }: TaskRow): void {
  if (policy !== 'manual' || state === 'approved') return
  if (state === 'rejected')
    throw TaskErrors.task_conflict(`task ${id} was rejected`, { next: command('task cancel', id) })
  throw TaskErrors.task_approval_pending(`task ${id} is waiting for approval`, { next: command('task approve', id) })
}

const wishOf = (
  { idempotency_key: key, metadata, network_participation: participation }: ExecutionBody,
  action: string,
  id: string,
) => ({
  key: checkedKey(key) ?? `task.${action}.${id}`,
  metadata,
  participation,
})
