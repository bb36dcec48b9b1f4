import { command } from '../../../../kernel/kit/commands/command-line.js'
import { iso } from '../../../../kernel/plugin.js'
import type { InboxTask } from '../../../../schemas/sessions.js'
import { recoveryOf } from '../budgets/recovery.js'
import type { TaskCore } from '../core.js'

/** Default maximum number of items per kind. */
const MOST = 50

interface Row {
  readonly id: string
  readonly run: string | null
  readonly session?: string | null
  readonly review?: string
  readonly title: string
  readonly workspace_id: string | null
  readonly since: number
  readonly reason: string | null
}

/** Without INDEXED BY, SQLite reads all blocked tasks. */
const APPROVALS = `SELECT t.id, NULL AS run, t.title, t.workspace_id, t.created_at AS since, NULL AS reason
  FROM tasks_task t INDEXED BY tasks_task_approval
  WHERE t.status = 'blocked' AND t.approval_policy = 'manual' AND t.approval_state = 'pending' ORDER BY t.id`
/** Independent of the status of the task: other runs may be active, and the task may have the reason of another run. */
const RUNS = `SELECT t.id, r.id AS run, r.session_id AS session, t.title, t.workspace_id, ifnull(t.attention_at, t.updated_at) AS since,
    ifnull(r.error, t.attention_reason) AS reason
  FROM tasks_run r JOIN tasks_task t ON t.id = r.task_id WHERE r.status = 'needs_attention' ORDER BY r.queued_at, r.id`
/** Includes completed tasks, whose last review round may have been rejected. */
const TASKS = `SELECT t.id, NULL AS run, t.title, t.workspace_id, t.attention_at AS since, t.attention_reason AS reason
  FROM tasks_task t WHERE t.attention_at IS NOT NULL AND t.status <> 'canceled'
    AND NOT EXISTS (SELECT 1 FROM tasks_run r WHERE r.task_id = t.id AND r.status = 'needs_attention') ORDER BY t.id`

/** Unassigned reviews. The first of the two conditions matches the index of open reviews. */
const REVIEWS = `SELECT t.id, v.run_id AS run, v.id AS review, t.title, t.workspace_id, v.requested_at AS since, v.reason
  FROM tasks_review v JOIN tasks_task t ON t.id = v.task_id
  WHERE v.status IN ('requested', 'routed', 'in_review') AND v.status = 'requested' ORDER BY v.deadline_at, v.id`

/** Inbox items of tasks: approvals, runs and tasks that need attention, and unassigned reviews; at most `most` of each. */
export function waitingTasks(core: TaskCore, most = MOST): InboxTask[] {
  const rows = (sql: string) => core.kernel.db.all<Row>(`${sql} LIMIT +?`, [most])
  return [
    ...rows(APPROVALS).map(row => itemOf(row, 'approval', () => command('task approve', row.id))),
    ...rows(RUNS).map(row => {
      const { id: task_id, run, session } = row
      return itemOf(row, 'attention', () => recoveryOf(core, { id: run ?? '', task_id, session_id: session ?? null }))
    }),
    ...rows(TASKS).map(row => itemOf(row, 'attention', () => command('task recover', row.id))),
    ...rows(REVIEWS).map(row => itemOf(row, 'review', () => command('task review show', row.review ?? ''))),
  ]
}

/** The command is computed on access: that of a run reads budgets, and a reader shows only a few of thousands of items. */
function itemOf(row: Row, kind: InboxTask['kind'], answer: () => string): InboxTask {
  const { id, run, workspace_id: workspace, title, since, reason } = row
  return {
    task_id: id,
    ...(run === null ? {} : { task_run_id: run }),
    ...(workspace === null ? {} : { workspace_id: workspace }),
    kind,
    title: reason === null ? title : `${title}: ${reason}`,
    get command() {
      return answer()
    },
    created_at: iso(since),
  }
}
