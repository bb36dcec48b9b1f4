import { shown } from '../../../../kernel/kit/text.js'
import { iso } from '../../../../kernel/plugin.js'
import type { SessionInfo } from '../../sessions/api.js'
import type { TaskCore } from '../core.js'
import { whoOfSession } from '../who.js'
import type { TaskInbox } from './inbox.js'

/** Maximum number of tasks that are listed. */
const TOLD = 5

/** Task context for an agent that is woken. It is read-only: nothing is claimed and no lease renewed. */
export class TaskNews {
  constructor(
    private readonly core: TaskCore,
    private readonly inbox: TaskInbox,
  ) {}

  /** The run that a session holds, or the number of runs that it could claim. */
  async task({ id, workspaceId }: SessionInfo): Promise<string | undefined> {
    const [run] = this.core.runs.ofSession(id)
    if (run) {
      const task = this.core.tasks.find(run.task_id)
      const until = run.lease_until === null ? '' : `, lease expires at ${iso(run.lease_until)}`
      return `you hold run ${run.id} of task ${task.id}, ${shown(task.title)}: ${run.status}${until}`
    }
    const row = this.core.kernel.db.row(
      "SELECT count(*) FROM tasks_run WHERE place IN (?, '') AND status = 'queued' AND claimable = 1",
      [workspaceId],
    )
    const count = Number(row?.[0] ?? 0)
    return count === 0 ? undefined : `you hold no run; claimable runs: ${count}`
  }

  /** The inbox of the session. */
  async summary(session: SessionInfo): Promise<string | undefined> {
    const who = whoOfSession(this.core.kernel.actor, session.id)
    const { groups, page } = this.inbox.list(who, { limit: TOLD }, session.workspaceId)
    if (page.total === 0) return undefined
    const lines = groups.flatMap(({ lane, items = [] }) =>
      items.map(
        ({ task, blocking_reason: why }) => `${lane}: ${task.id}, ${shown(task.title)}${why ? `: ${shown(why)}` : ''}`,
      ),
    )
    return [`tasks in your inbox: ${page.total}`, ...lines].join('\n')
  }
}
