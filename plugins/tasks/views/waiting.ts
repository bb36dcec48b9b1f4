import { iso, type Reads } from '../../../kernel/plugin.js'
import type { InboxTask } from '../../../schemas/sessions.js'

/** Tasks of each kind that are shown. */
const MOST = 50

interface Row {
  readonly id: string
  readonly title: string
  readonly workspace_id: string | null
  readonly since: number
  readonly reason: string | null
}

/** What of all tasks waits for a person: to be approved, or to be looked at. */
export function waitingTasks(reads: Reads): InboxTask[] {
  const rows = (since: string, where: string) =>
    reads.all<Row>(
      `SELECT id, title, workspace_id, ${since} AS since, attention_reason AS reason FROM tasks_task WHERE ${where} ORDER BY id LIMIT ${MOST}`,
    )
  const item = ({ id, title, workspace_id: workspace, since }: Row) => ({
    task_id: id,
    ...(workspace === null ? {} : { workspace_id: workspace }),
    title,
    created_at: iso(since),
  })
  return [
    ...rows('created_at', "status = 'blocked' AND approval_policy = 'manual' AND approval_state = 'pending'").map(
      row => ({
        ...item(row),
        kind: 'approval' as const,
        command: `svc task approve ${row.id}`,
      }),
    ),
    ...rows('ifnull(attention_at, updated_at)', "status = 'needs_attention'").map(row => ({
      ...item(row),
      kind: 'attention' as const,
      title: row.reason === null ? row.title : `${row.title}: ${row.reason}`,
      command: `svc task inspect ${row.id}`,
    })),
  ]
}
