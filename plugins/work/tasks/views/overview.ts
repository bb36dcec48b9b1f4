import { cut } from '../../../../kernel/kit/text.js'
import type { Actor, SqlValue } from '../../../../kernel/plugin.js'
import type { TaskCore } from '../core.js'
import { actorToWire, whoOf } from '../who.js'
import type { TaskInbox } from './inbox.js'
import { failedPart } from './next-step.js'

/** Maximum number of examined tasks that need attention. */
const LOOKED_AT = 50
const DETAIL = 300

/** A task that waits for its caller. */
export interface WaitingTask {
  readonly kind: 'approval' | 'failure' | 'needs_input'
  readonly taskId: string
  readonly runId?: string
  readonly sessionId?: string
  readonly title: string
  readonly detail?: string
  /** Epoch milliseconds. */
  readonly at: number
  /** Available actions: verbs of `svc task`. */
  readonly actions: readonly string[]
}

/** The tasks that wait for a caller: counts by kind, and the newest of them. */
export interface TaskAttention {
  readonly counts: Readonly<Record<WaitingTask['kind'], number>>
  readonly newest: readonly WaitingTask[]
}

const ACTIONS: Readonly<Record<WaitingTask['kind'], readonly string[]>> = {
  approval: ['approve', 'reject'],
  failure: ['retry', 'open'],
  needs_input: ['recover', 'open'],
}

interface Row {
  readonly id: string
  readonly title: string
  readonly at: number
  readonly reason: string | null
}

/**
 * The lanes `approvals` and `failed_runs` of the inbox of a caller, and the tasks in need of attention that the caller owns. Tasks
 * without an owner belong to the operator.
 */
export function attentionOf(
  core: TaskCore,
  inbox: TaskInbox,
  actor: Actor,
  { workspaceId, limit }: { readonly workspaceId?: string | undefined; readonly limit: number },
): TaskAttention {
  const who = whoOf(actor)
  const { approvals, failures, rows } = inbox.waiting(who, workspaceId, limit)
  const owned = needingAttention(core, actorToWire(who.by.kind, who.by.ref), workspaceId)
  const found = [
    ...rows.map(row => ({ row, kind: row.lane === 'approvals' ? ('approval' as const) : ('failure' as const) })),
    ...owned.map(row => ({ row, kind: 'needs_input' as const })),
  ]
  const newest = found.toSorted((a, b) => b.row.at - a.row.at || (a.row.id < b.row.id ? -1 : 1)).slice(0, limit)
  return {
    counts: { approval: approvals, failure: failures, needs_input: owned.length },
    newest: newest.map(({ row, kind }) => itemOf(core, row, kind)),
  }
}

/** Time of the last activity of tasks, and whether runs of them are active now. */
export function activityOf(
  { kernel: { db } }: TaskCore,
  workspaceId: string | undefined,
): { readonly at: number | undefined; readonly isLive: boolean } {
  const values = workspaceId === undefined ? [] : [workspaceId]
  const of = (column: string) => (workspaceId === undefined ? '' : ` AND ${column} = ?`)
  const [latest] = db.row(`SELECT max(last_activity_at) FROM tasks_task WHERE 1${of('workspace_id')}`, values) ?? []
  const [live, beat] =
    db.row(
      `SELECT count(*), max(heartbeat_at) FROM tasks_run WHERE status IN ('claimed', 'starting', 'running')${of('place')}`,
      values,
    ) ?? []
  const at = Math.max(Number(latest ?? 0), Number(beat ?? 0))
  return { at: at === 0 ? undefined : at, isLive: Number(live) > 0 }
}

/** Tasks that need attention, without those in the lane `failed_runs`. */
function needingAttention(
  core: TaskCore,
  owner: { readonly kind: string; readonly ref: string },
  workspaceId: string | undefined,
): Row[] {
  if (owner.kind === 'daemon' || owner.ref === '') return []
  const isPerson = owner.kind === 'human'
  const values: SqlValue[] = [owner.kind, owner.ref, ...(workspaceId === undefined ? [] : [workspaceId])]
  return core.kernel.db.all<Row>(
    `SELECT id, title, ifnull(attention_at, last_activity_at) AS at, attention_reason AS reason FROM tasks_task
     WHERE status = 'needs_attention' AND last_run_failed = 0
       AND (owner_kind = ? AND owner_ref = ?${isPerson ? ' OR owner_kind IS NULL' : ''})
       ${workspaceId === undefined ? '' : 'AND workspace_id = ?'}
     ORDER BY at DESC, id LIMIT ${LOOKED_AT}`,
    values,
  )
}

function itemOf(core: TaskCore, row: Row, kind: WaitingTask['kind']): WaitingTask {
  const runs = kind === 'approval' ? [] : core.runs.all(row.id)
  const run =
    kind === 'failure' ? (failedPart(runs) ?? runs[0]) : (runs.find(of => of.status === 'needs_attention') ?? runs[0])
  const detail = kind === 'failure' ? run?.error : row.reason
  return {
    kind,
    taskId: row.id,
    ...(run ? { runId: run.id } : {}),
    ...(run?.session_id ? { sessionId: run.session_id } : {}),
    title: row.title,
    ...(detail ? { detail: cut(detail, DETAIL) } : {}),
    at: row.at,
    actions: ACTIONS[kind],
  }
}
