import { command } from '../../../../kernel/kit/commands/command-line.js'
import { shown } from '../../../../kernel/kit/text.js'
import type { BlockedReason } from '../../../../schemas/tasks.js'
import { recoveryOf } from '../budgets/recovery.js'
import type { TaskCore } from '../core.js'
import { latestRuns } from '../runs/latest.js'
import type { RunRow } from '../runs/run-row.js'
import { isPaused } from '../scheduler/state.js'
import type { TaskRow } from '../tasks/task-row.js'
import { latestWorker } from '../workers/worker-row.js'

/** Maximum number of dependencies that are named. */
const NAMED = 3

/** The reason for which a task or run is not progressing, if any, and the next command or the event it waits for. */
export interface NextStep {
  readonly why?: string
  readonly next: string
}

/**
 * The run that determines the next step of a task: one that needs attention, else one whose session waits for an answer, else
 * a part of a fan-out that failed, else the newest.
 */
export function decidingRun(core: TaskCore, id: string): RunRow | undefined {
  const runs = core.runs.all(id)
  const asks = ({ session_id: session, ended_at: ended }: RunRow) =>
    ended === null && session !== null && core.kernel.needs.sessions.answerTo(session) !== undefined
  return runs.find(({ status }) => status === 'needs_attention') ?? runs.find(asks) ?? failedPart(runs) ?? runs[0]
}

/** The first failed run, newest first, that is the latest of its part of a fan-out. */
export const failedPart = (runs: readonly RunRow[]): RunRow | undefined =>
  latestRuns(runs).find(({ status, designation_group_id: group }) => status === 'failed' && group !== null)

/** The next step of a task or, with `run`, of one of its runs. */
export function nextStepOf(core: TaskCore, task: TaskRow, run: RunRow | undefined): NextStep {
  if (run?.status === 'needs_attention') return { ...because(run.error), next: recoveryOf(core, run) }
  if (task.status === 'needs_attention' || (task.attention_at !== null && isOver(task))) {
    const stuck = decidingRun(core, task.id)
    return {
      ...because(task.attention_reason ?? stuck?.error),
      next: stuck?.status === 'needs_attention' ? recoveryOf(core, stuck) : command('task recover', task.id),
    }
  }
  if (task.status === 'draft') return { why: 'draft', next: command('task publish', task.id) }
  if (run !== undefined && run.session_id !== null && run.ended_at === null && run.status !== 'queued')
    return heldStep(core, run.session_id)
  const [blocked] = core.tasks.blockedBy(task)
  if (blocked) return blockedStep(core, task, blocked)
  if (task.status === 'failed')
    return { ...because(run?.error), next: run ? command('task retry', run.id) : command('task get', task.id) }
  if (task.status === 'completed' || task.status === 'canceled') return { next: 'none' }
  const { workspace_id: workspace } = task
  if (workspace !== null && core.kernel.needs.workspaces.get(workspace) === undefined)
    return { why: `its workspace ${workspace} was removed`, next: command('task cancel', task.id) }
  if (run?.status === 'queued') return queuedStep(core, run)
  if (run?.status === 'failed') return { ...because(run.error), next: command('task retry', run.id) }
  const children = core.tasks.children(task.id).filter(({ status }) => status !== 'completed')
  if (children.length > 0)
    return {
      why: `waiting for ${children.length === 1 ? '1 child task' : `${children.length} child tasks`} to complete`,
      next: command('task tree', task.id),
    }
  return { next: command('task start', task.id) }
}

/** The next step of a run that a session holds. */
function heldStep(core: TaskCore, session: string): NextStep {
  const answer = core.kernel.needs.sessions.answerTo(session)
  return answer === undefined
    ? { next: `wait for session ${session}` }
    : { why: `session ${session} waits for your answer`, next: answer }
}

/** The next step of a queued run. */
export function queuedStep(core: TaskCore, run: RunRow): NextStep {
  if (isPaused(core.kernel.db)) return { why: 'the scheduler is paused', next: command('scheduler resume') }
  const worker = latestWorker(core.kernel.db, run.id)
  if (worker?.ended_at === null && worker.session_id !== null) {
    const agent = core.kernel.needs.sessions.get(worker.session_id)?.agentName
    const of = agent === undefined ? '' : ` of agent ${agent}`
    const answer = core.kernel.needs.sessions.answerTo(worker.session_id)
    if (answer !== undefined)
      return { why: `session ${worker.session_id}${of}, started for this run, waits for your answer`, next: answer }
    return {
      why: `session ${worker.session_id}${of} was started for this run and has not claimed it yet`,
      next: `wait for session ${worker.session_id}, which was started for run ${run.id}`,
    }
  }
  if (worker?.error) {
    const next = `wait for the next session; show the error of the last one: ${command('task run show', run.id)}`
    return { why: `the last session started for this run failed: ${worker.error}`, next }
  }
  return { next: 'wait for a session to claim the run with svc task next' }
}

/** A task that has ended can still be marked as needing attention. */
const isOver = ({ status }: TaskRow) => status === 'completed' || status === 'failed'

const because = (text: string | null | undefined) => (text ? { why: text } : {})

function blockedStep(core: TaskCore, task: TaskRow, blocked: BlockedReason): NextStep {
  const why = blockedText(core, blocked)
  if (blocked.source === 'approval' && task.approval_state === 'rejected')
    return { why, next: command('task cancel', task.id) }
  if (blocked.source === 'approval') return { why, next: command('task approve', task.id) }
  if (blocked.source === 'paused') return { why, next: command('task resume', task.pausing_task ?? task.id) }
  if (blocked.source === 'block' && blocked.block_id)
    return { why, next: command('task unblock', task.id, blocked.block_id) }
  const ids = blocked.depends_on_task_ids ?? []
  // Only completion resolves a dependency, and a canceled task never completes.
  const canceled = ids.find(id => core.tasks.get(id)?.status === 'canceled')
  if (canceled !== undefined) return { why, next: command('task dependency remove', task.id, canceled) }
  return { why, next: `wait for ${ids.join(', ')}` }
}

/** Describes a reason why a task is blocked; other tasks are named by title. */
export function blockedText(
  core: TaskCore,
  { source, kind, reason, depends_on_task_ids: ids = [] }: BlockedReason,
): string {
  if (source === 'paused') return reason ? `paused: ${reason}` : 'paused'
  if (source === 'block') return `blocked (${kind}): ${reason}`
  if (source === 'approval') return reason ?? 'waiting for approval'
  const named = ids.slice(0, NAMED).map(id => {
    const other = core.tasks.get(id)
    return other ? `${shown(other.title)} (${id}, ${other.status})` : id
  })
  return `waiting for ${named.join(', ')}${ids.length > NAMED ? ` and ${ids.length - NAMED} more` : ''}`
}
