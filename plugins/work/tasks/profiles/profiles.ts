import { column, table } from '../../../../kernel/kit/table.js'
import { iso, type Reads, type Tx } from '../../../../kernel/plugin.js'
import type { ExecutionProfile, ExecutionProfileBody, WorktreePolicy } from '../../../../schemas/tasks.js'
import type { SessionInfo } from '../../sessions/api.js'
import { TaskErrors } from '../api.js'
import type { TaskCore } from '../core.js'
import { LIMITS } from '../limits.js'
import type { Wants } from '../runs/reserve.js'
import type { RunKind } from '../runs/run-row.js'
import { ownerOf, showHint, type TaskRow } from '../tasks/task-row.js'
import type { Who } from '../who.js'
import { ProfileErrors } from './errors.js'

const { json, text, time } = column

/** The contents of a profile, without its task. */
export type ProfileParts = Omit<ExecutionProfile, 'task_id' | 'created_at' | 'updated_at'>

export const profileTable = table('tasks_profile', {
  task_id: text(),
  body: json<ProfileParts>(),
  created_at: time(),
  updated_at: time(),
})

/** The profile of a task that has none of its own. */
const DEFAULTS: ProfileParts = {
  worker: { mode: 'inherit' },
  worktree: { mode: 'inherit' },
  sandbox: { mode: 'inherit' },
  participants: {},
  review: {},
  coordinator: { mode: 'inherit' },
  runtime: { mode: 'default' },
  network_participation: null,
}

/** The execution profiles of tasks. A change applies to queued and future runs. */
export class Profiles {
  constructor(private readonly core: TaskCore) {}

  get(id: string): ExecutionProfile {
    const task = this.core.tasks.find(id)
    const row = rowOf(this.core.kernel.db, id)
    return { ...this.partsOf(id), task_id: id, ...times(row ?? task) }
  }

  /** The profile that applies to a task. */
  partsOf(id: string, reads: Reads = this.core.kernel.db): ProfileParts {
    return { ...DEFAULTS, ...rowOf(reads, id)?.body }
  }

  /** Whether the task has a profile of its own. */
  has(id: string, reads: Reads = this.core.kernel.db): boolean {
    return rowOf(reads, id) !== undefined
  }

  /** Throws `task_profile_invalid` (400) with the invalid path, `task_conflict` (409) for a task that has ended. */
  set(who: Who, id: string, body: ExecutionProfileBody): Promise<ExecutionProfile> {
    if (body.task_id !== undefined && body.task_id !== id) throw fault('task_id', `must be ${id}, as in the path`)
    const { task_id: _, created_at: _c, updated_at: _u, ...parts } = body
    return this.#write(who, id, () => ({ ...DEFAULTS, ...defined(parts) }) as ProfileParts)
  }

  /** Changes the worktree policy only. */
  setWorktree(who: Who, id: string, worktree: WorktreePolicy): Promise<ExecutionProfile> {
    return this.#write(who, id, before => ({ ...before, worktree }))
  }

  /** Fills in `profiled` for open runs that an earlier version queued. */
  async adopt(): Promise<void> {
    const unknown = `status IN ('queued', 'claimed', 'starting', 'running', 'needs_attention') AND profiled IS NULL`
    const { db } = this.core.kernel
    if (!db.row(`SELECT 1 FROM tasks_run WHERE ${unknown} LIMIT 1`)) return
    await db.tx(t =>
      t.run(`UPDATE tasks_run SET profiled = task_id IN (SELECT task_id FROM tasks_profile) WHERE ${unknown}`),
    )
  }

  async reset(who: Who, id: string): Promise<void> {
    await this.core.write(who, (t, settle) => {
      const task = this.#changeable(t, id)
      if (profileTable.delete(t, { task_id: id }) === 0) return
      this.core.journal.write(t, who, 'task.execution_profile_deleted', { task })
      this.#spread(t, task, false)
      settle(id)
    })
  }

  async #write(who: Who, id: string, change: (before: ProfileParts) => ProfileParts): Promise<ExecutionProfile> {
    await this.core.write(who, (t, settle) => {
      const task = this.#changeable(t, id)
      const body = change(this.partsOf(id, t))
      judge(body)
      const now = this.core.now()
      const { created_at = now } = rowOf(t, id) ?? {}
      profileTable.replace(t, { task_id: id, body, created_at, updated_at: now })
      this.core.journal.write(t, who, 'task.execution_profile_updated', { task })
      this.#spread(t, task, true)
      settle(id)
    })
    return this.get(id)
  }

  #changeable(t: Tx, id: string): TaskRow {
    const task = this.core.tasks.find(id, t)
    if (task.status !== 'completed' && task.status !== 'canceled') return task
    throw TaskErrors.task_conflict(`the profile of task ${id} cannot change: the task is ${task.status}`, showHint(id))
  }

  /** Queued runs get the requirements of the new profile. Other runs only record that there is one, in case they are requeued. */
  #spread(t: Tx, task: TaskRow, profiled: boolean): void {
    t.run('UPDATE tasks_run SET profiled = ? WHERE task_id = ?', [Number(profiled), task.id])
    this.core.runs.leasesChanged(t)
    this.core.reservations.spread(t, task)
  }
}

const rowOf = (reads: Reads, id: string) => profileTable.get(reads, { task_id: id })
const times = (row: { readonly created_at: number; readonly updated_at: number }) => ({
  created_at: iso(row.created_at),
  updated_at: iso(row.updated_at),
})
const defined = <T extends object>(value: T) =>
  Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as Partial<T>

/** The requirements on claimants of a task: its owner and its profile. */
export function wantsOf(task: TaskRow, { worker, participants, coordinator }: ProfileParts, kind: RunKind): Wants {
  const owner = ownerOf(task)
  if (kind === 'coordinator') {
    const { agent_name: name, provider } = coordinator
    const agents = name === undefined ? (participants.allowed_agent_names ?? []) : [name]
    return {
      ...(owner ? { owner } : {}),
      ...(agents.length > 0 ? { agents } : {}),
      ...(provider ? { provider } : {}),
    }
  }
  const named = worker.mode === 'select' && worker.agent_name !== undefined ? [worker.agent_name] : []
  const allowed = [...named, ...(worker.allowed_agent_names ?? [])]
  const agents = both(allowed, participants.allowed_agent_names ?? [])
  const required = union(worker.required_capabilities, participants.required_capabilities)
  const preferred = union(worker.preferred_capabilities, participants.preferred_capabilities)
  return {
    ...(owner ? { owner } : {}),
    ...(agents.length > 0 ? { agents } : {}),
    ...(worker.provider ? { provider: worker.provider } : {}),
    ...(required.length > 0 ? { required } : {}),
    ...(preferred.length > 0 ? { preferred } : {}),
  }
}

/**
 * The agent whose session is started for a run: the selected one, else the preferred or allowed ones in turn.
 * Undefined: the default agent of the workspace.
 * @param turn index of the run in its fan-out plus the number of failed sessions
 * @param byDefault the default agent of the workspace
 */
export function agentFor(parts: ProfileParts, kind: RunKind, turn: number, byDefault: string): string | undefined {
  const { worker, participants, coordinator } = parts
  if (kind === 'coordinator' && coordinator.agent_name !== undefined) return coordinator.agent_name
  if (kind === 'worker' && worker.mode === 'select') return worker.agent_name
  const allowed = both(worker.allowed_agent_names ?? [], participants.allowed_agent_names ?? [])
  const preferred = union(worker.preferred_agent_names, participants.preferred_agent_names)
  const fit = preferred.filter(name => allowed.length === 0 || allowed.includes(name))
  if (fit.length > 0) return fit[turn % fit.length]
  if (allowed.length === 0) return undefined
  return turn === 0 && allowed.includes(byDefault) ? byDefault : allowed[turn % allowed.length]
}

/** Whether a session of that agent may review the runs of the task. */
export function mayReview({ review }: ProfileParts, { agentName, provider }: SessionInfo): boolean {
  const named = review.agent_name === undefined ? [] : [review.agent_name]
  const agents = [...named, ...(review.allowed_agent_names ?? [])]
  return (
    (agents.length === 0 || agents.includes(agentName)) &&
    (review.provider === undefined || review.provider === provider)
  )
}

const union = (a: readonly string[] = [], b: readonly string[] = []) => [...new Set([...a, ...b])]
/** The intersection of both lists; an empty list allows everything. */
const both = (a: readonly string[], b: readonly string[]) =>
  a.length === 0 || b.length === 0 ? union(a, b) : a.filter(name => b.includes(name))

const fault = (path: string, text: string) => ProfileErrors.task_profile_invalid(`${path}: ${text}`)

/** Throws `task_profile_invalid` (400) with the first invalid path. */
function judge(parts: ProfileParts): void {
  for (const [name, part] of Object.entries(parts)) judgePart(name, part)
  const { worker, participants, sandbox, worktree, coordinator } = parts
  if (worker.mode === 'select' && !worker.agent_name) throw fault('worker.agent_name', 'required for mode select')
  if (worker.mode === 'inherit' && (worker.agent_name || worker.model))
    throw fault(worker.agent_name ? 'worker.agent_name' : 'worker.model', 'only allowed for mode select')
  for (const [name, part] of [
    ['worker', worker] as const,
    ['participants', participants] as const,
    ['review', parts.review] as const,
  ]) {
    const allowed = part.allowed_agent_names ?? []
    const at = (part.preferred_agent_names ?? []).findIndex(one => allowed.length > 0 && !allowed.includes(one))
    if (at >= 0) throw fault(`${name}.preferred_agent_names.${at}`, 'must be one of allowed_agent_names')
  }
  const mayWork = participants.allowed_agent_names ?? []
  for (const [name, agent] of [
    ['worker', worker.agent_name] as const,
    ['coordinator', coordinator.agent_name] as const,
  ])
    if (agent && mayWork.length > 0 && !mayWork.includes(agent))
      throw fault(`${name}.agent_name`, 'must be one of participants.allowed_agent_names')
  const guided = (['agent_name', 'provider', 'model', 'guidance'] as const).find(
    name => coordinator[name] !== undefined,
  )
  if (guided !== undefined && coordinator.mode !== 'guided')
    throw fault(`coordinator.${guided}`, 'only allowed for mode guided')
  paired('sandbox.sandbox_ref', sandbox.mode === 'ref', sandbox.sandbox_ref)
  paired('worktree.worktree_ref', worktree.mode === 'ref', worktree.worktree_ref)
}

function paired(path: string, isWanted: boolean, ref: string | undefined): void {
  if (isWanted && !ref?.trim()) throw fault(path, 'required for mode ref')
  if (!isWanted && ref !== undefined) throw fault(path, 'only allowed for mode ref')
}

/** Checks the sizes of texts and lists, and that lists have no empty or duplicate names. */
function judgePart(name: string, part: unknown): void {
  for (const [member, value] of Object.entries(Object(part))) {
    const path = `${name}.${member}`
    const most = member === 'guidance' ? LIMITS.text : LIMITS.key
    if (typeof value === 'string' && (value.trim() === '' || value.length > most))
      throw fault(path, `must have 1 to ${most} characters`)
    if (!Array.isArray(value)) continue
    if (value.length > LIMITS.capabilities) throw fault(path, `at most ${LIMITS.capabilities} entries`)
    for (const [at, entry] of value.entries()) {
      if (entry.trim() === '' || entry.length > LIMITS.key)
        throw fault(`${path}.${at}`, `must have 1 to ${LIMITS.key} characters`)
      if (value.indexOf(entry) !== at) throw fault(`${path}.${at}`, 'duplicate entry')
    }
  }
}
