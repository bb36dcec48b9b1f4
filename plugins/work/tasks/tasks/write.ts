import { shown } from '../../../../kernel/kit/text.js'
import type { Tx } from '../../../../kernel/plugin.js'
import type { CreateTaskBody, Owner, Task, UpdateTaskBody } from '../../../../schemas/tasks.js'
import { TaskErrors } from '../api.js'
import type { TaskCore } from '../core.js'
import { LIMITS, PRIORITY } from '../limits.js'
import { json } from '../rows.js'
import type { Who } from '../who.js'
import { showHint, type TaskRow, taskTable } from './task-row.js'

const ID = /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$/

/** Scope and workspace of a new task. */
export type TaskTarget = { readonly scope: 'global' } | { readonly scope: 'workspace'; readonly workspaceId: string }

/** Creates and updates tasks. */
export class TaskWriter {
  constructor(private readonly core: TaskCore) {}

  /** Throws `task_invalid` (422), `task_too_large` (413), `task_exists`, `task_graph_limit` (409), `task_not_found` of the parent. */
  create(who: Who, body: CreateTaskBody, target: TaskTarget, parentId?: string): Promise<Task> {
    return this.core.write(who, (t, settle) => {
      const row = this.insert(t, who, body, target, parentId)
      settle(row.id)
      return this.core.tasks.toWire(this.core.tasks.find(row.id, t), t)
    })
  }

  /** Inserts a task in a transaction of the caller, who has to reconcile the status. */
  insert(t: Tx, who: Who, body: CreateTaskBody, target: TaskTarget, parentId?: string): TaskRow {
    const { tasks, journal, kernel } = this.core
    const now = this.core.now()
    const parent = parentId === undefined ? undefined : this.#parent(t, parentId, target)
    if (body.id !== undefined && !ID.test(body.id))
      throw invalid('id: must start with a letter or digit and have at most 128 letters, digits, and _ . : -')
    const id = body.id ?? kernel.ids.id('task')
    if (tasks.get(id, t)) throw TaskErrors.task_exists(`a task with this ID already exists: ${shown(id)}`)
    const policy = body.approval_policy ?? 'none'
    const row: TaskRow = {
      id,
      identifier: checked('identifier', body.identifier, LIMITS.key) ?? null,
      title: checked('title', body.title, LIMITS.title) ?? missing('title'),
      description: checked('description', body.description, LIMITS.text) ?? null,
      status: body.draft ? 'draft' : 'pending',
      priority: PRIORITY[body.priority ?? 'medium'],
      scope: target.scope,
      workspace_id: target.scope === 'workspace' ? target.workspaceId : null,
      parent_task_id: parent?.id ?? null,
      max_attempts: attempts(body.max_attempts) ?? LIMITS.attempts.byDefault,
      auto_enqueue: Number(body.auto_enqueue_on_ready ?? false),
      approval_policy: policy,
      approval_state: policy === 'manual' ? 'pending' : 'not_required',
      ...ownerColumns(body.owner),
      created_by_kind: who.by.kind,
      created_by_ref: who.by.ref,
      origin_kind: who.origin.kind,
      origin_ref: who.origin.ref,
      wake_creator: Number(body.wake_creator ?? who.by.kind === 'agent_session'),
      metadata: metadata(body.metadata),
      participation: json(body.network_participation),
      paused_at: null,
      paused_by: null,
      paused_reason: null,
      pausing_task: parent?.pausing_task ?? null,
      attention_at: null,
      attention_reason: null,
      attention_by_kind: null,
      attention_by_ref: null,
      claimable: 0,
      last_run_failed: 0,
      recurrences: null,
      created_at: now,
      updated_at: now,
      closed_at: null,
      latest_event_seq: 0,
      event_count: 0,
      last_activity_at: now,
    }
    taskTable.insert(t, row)
    this.core.totals.tasks.moved(t, row.scope, undefined, row.status)
    journal.write(t, who, 'task.created', { task: row, payload: { title: row.title } })
    if (parent) journal.write(t, who, 'task.child_created', { task: parent, payload: { child_task_id: id } })
    return row
  }

  update(who: Who, id: string, body: UpdateTaskBody): Promise<Task> {
    return this.core.write(who, (t, settle) => {
      const before = this.core.tasks.find(id, t)
      const changes = this.#changes(before, body)
      taskTable.update(t, { id }, { ...changes, updated_at: this.core.now() })
      const after = this.core.tasks.find(id, t)
      t.run("UPDATE tasks_run SET priority = ? WHERE task_id = ? AND +status = 'queued'", [after.priority, id])
      this.core.reservations.spread(t, after)
      this.core.journal.write(t, who, 'task.updated', { task: before, payload: { changed: Object.keys(changes) } })
      settle(id)
      return this.core.tasks.toWire(this.core.tasks.find(id, t), t)
    })
  }

  #changes(before: TaskRow, body: UpdateTaskBody): Partial<TaskRow> {
    const { owner, priority, approval_policy: policy } = body
    if (owner && body.clear_owner) throw invalid('clear_owner: not allowed together with owner')
    if (typeof body.title === 'string' && body.title.trim() === '') missing('title')
    const changed: { -readonly [K in keyof TaskRow]?: TaskRow[K] | undefined } = {
      title: checked('title', body.title, LIMITS.title),
      description:
        typeof body.description === 'string'
          ? (checked('description', body.description, LIMITS.text) ?? null)
          : undefined,
      priority: priority ? PRIORITY[priority] : undefined,
      max_attempts: attempts(body.max_attempts),
      auto_enqueue: typeof body.auto_enqueue_on_ready === 'boolean' ? Number(body.auto_enqueue_on_ready) : undefined,
      metadata: body.metadata === undefined ? undefined : metadata(body.metadata),
      participation: body.network_participation ? json(body.network_participation) : undefined,
    }
    if (owner || body.clear_owner) Object.assign(changed, ownerColumns(owner))
    if (policy && policy !== before.approval_policy)
      [changed.approval_policy, changed.approval_state] = [policy, policy === 'manual' ? 'pending' : 'not_required']
    return Object.fromEntries(Object.entries(changed).filter(([, value]) => value !== undefined))
  }

  #parent(t: Tx, id: string, target: TaskTarget): TaskRow {
    const { tasks } = this.core
    const parent = tasks.find(id, t)
    const workspace = target.scope === 'workspace' ? target.workspaceId : null
    if (parent.scope !== target.scope || parent.workspace_id !== workspace)
      throw invalid('scope: a child must have the scope and workspace of its parent')
    if (parent.status === 'completed' || parent.status === 'canceled')
      throw TaskErrors.task_conflict(`task ${id} is ${parent.status} and cannot get children`, showHint(id))
    if (tasks.depth(id, t) >= LIMITS.depth)
      throw TaskErrors.task_graph_limit(`task ${id} is at the maximum depth of ${LIMITS.depth} levels`, showHint(id))
    if (tasks.children(id, t).length >= LIMITS.children)
      throw TaskErrors.task_graph_limit(`task ${id} has ${LIMITS.children} children, the maximum`, showHint(id))
    return parent
  }
}

export const invalid = (text: string) => TaskErrors.task_invalid(text)
const missing = (member: string): never => {
  throw invalid(`${member}: required`)
}

function ownerColumns(owner: Owner | null | undefined): Pick<TaskRow, 'owner_kind' | 'owner_ref'> {
  if (!owner) return { owner_kind: null, owner_ref: null }
  return { owner_kind: owner.kind, owner_ref: checked('owner.ref', owner.ref, LIMITS.key) ?? missing('owner.ref') }
}

/** The character that the store cannot return unchanged. */
export const UNSTORABLE = '\0'

/** The trimmed text; undefined when empty. Throws `task_invalid` (422). */
export function checked(member: string, text: string | null | undefined, most: number): string | undefined {
  const trimmed = text?.trim()
  if (!trimmed) return undefined
  if (trimmed.length > most) throw invalid(`${member}: at most ${most} characters`)
  if (trimmed.includes(UNSTORABLE)) throw invalid(`${member}: NUL is not allowed`)
  return trimmed
}

/** The idempotency key of a request; undefined when empty. Throws `task_invalid` (422). */
export const checkedKey = (key: string | undefined, member = 'idempotency_key') => checked(member, key, LIMITS.key)

/** The JSON of a member, within its size limit. Throws `task_invalid` (422). */
export function bounded(member: string, value: unknown, most: number = LIMITS.metadata): string | null {
  const text = json(value)
  if (text !== null && Buffer.byteLength(text) > most) throw invalid(`${member}: at most ${most} bytes`)
  return text
}

/** The JSON of a task's metadata. Throws `task_too_large` (413). */
function metadata(value: unknown): string | null {
  const text = json(value)
  if (text === null || Buffer.byteLength(text) <= LIMITS.metadata) return text
  throw TaskErrors.task_too_large(`metadata: at most ${LIMITS.metadata} bytes`)
}

function attempts(count: number | null | undefined): number | undefined {
  if (count === null || count === undefined) return undefined
  if (count < 1 || count > LIMITS.attempts.most)
    throw invalid(`max_attempts: must be between 1 and ${LIMITS.attempts.most}, not ${count}`)
  return count
}
