import { shown } from '../../../kernel/kit/text.js'
import type { BlockedReason } from '../../../schemas/tasks.js'
import { recoveryOf } from '../budgets/recovery.js'
import type { TaskCore } from '../core.js'
import type { RunRow } from '../runs/run-row.js'
import { isPaused } from '../scheduler/state.js'
import type { TaskRow } from '../tasks/task-row.js'
import { latestWorker } from '../workers/worker-row.js'

/** Tasks that are waited for and named. */
const NAMED = 3

/** Why a task or a run stands where it does, where there is a reason, and the command that moves it on, or what is waited for. */
export interface NextStep {
  readonly why?: string
  readonly next: string
}

/** The run of a task that decides how the task goes on: one that waits for a person, else the newest one. */
export function decidingRun(core: TaskCore, id: string): RunRow | undefined {
  return core.runs.list(id, { status: 'needs_attention', limit: 1 })[0] ?? core.runs.list(id, { limit: 1 })[0]
}

/** What moves the task on from where it is; `run` is the one that is asked about. */
export function nextStepOf(core: TaskCore, task: TaskRow, run: RunRow | undefined): NextStep {
  if (run?.status === 'needs_attention') return { ...because(run.error), next: recoveryOf(core, run) }
  if (task.status === 'needs_attention' || (task.attention_at !== null && isOver(task))) {
    const stuck = decidingRun(core, task.id)
    return {
      ...because(task.attention_reason ?? stuck?.error),
      next: stuck?.status === 'needs_attention' ? recoveryOf(core, stuck) : `svc task recover ${task.id}`,
    }
  }
  if (task.status === 'draft') return { why: 'it is a draft', next: `svc task publish ${task.id}` }
  if (run !== undefined && run.session_id !== null && run.ended_at === null && run.status !== 'queued')
    return { next: `wait for session ${run.session_id}` }
  const [blocked] = core.tasks.blockedBy(task)
  if (blocked) return blockedStep(core, task, blocked)
  if (task.status === 'failed')
    return { ...because(run?.error), next: run ? `svc task retry ${run.id}` : `svc task get ${task.id}` }
  if (task.status === 'completed' || task.status === 'canceled') return { next: 'none' }
  if (run?.status === 'queued') return queuedStep(core, run)
  if (run?.status === 'failed') return { ...because(run.error), next: `svc task retry ${run.id}` }
  const children = core.tasks.children(task.id).filter(({ status }) => status !== 'completed')
  if (children.length > 0)
    return {
      why: `it is completed when its children are; ${children.length === 1 ? 'one is' : `${children.length} are`} not`,
      next: `svc task tree ${task.id}`,
    }
  return { next: `svc task start ${task.id}` }
}

/** Of a run that nobody has claimed yet. */
export function queuedStep(core: TaskCore, run: RunRow): NextStep {
  if (isPaused(core.kernel.db)) return { why: 'the scheduler is paused', next: 'svc scheduler resume' }
  const worker = latestWorker(core.kernel.db, run.id)
  if (worker?.ended_at === null && worker.session_id !== null) {
    const agent = core.kernel.needs.sessions.get(worker.session_id)?.agentName
    const of = agent === undefined ? '' : ` of agent ${agent}`
    return {
      why: `session ${worker.session_id}${of} was started for it and has not claimed it yet`,
      next: `wait for session ${worker.session_id}, which was started for run ${run.id}; what it asks: svc inbox`,
    }
  }
  if (worker?.error) {
    const next = `wait for the next session, the one before failed: svc task run show ${run.id}`
    return { why: `the last session that was started for it ended in vain: ${worker.error}`, next }
  }
  return { next: 'wait for a session to claim the run: svc task next' }
}

/** It is done, well or not, and may still be one that somebody has to look at. */
const isOver = ({ status }: TaskRow) => status === 'completed' || status === 'failed'

const because = (text: string | null | undefined) => (text ? { why: text } : {})

function blockedStep(core: TaskCore, task: TaskRow, blocked: BlockedReason): NextStep {
  const why = blockedText(core, blocked)
  if (blocked.source === 'approval' && task.approval_state === 'rejected')
    return { why, next: `svc task cancel ${task.id}` }
  if (blocked.source === 'approval') return { why, next: `svc task approve ${task.id}` }
  if (blocked.source === 'paused') return { why, next: `svc task resume ${task.pausing_task}` }
  if (blocked.source === 'block') return { why, next: `svc task unblock ${task.id} ${blocked.block_id}` }
  const ids = blocked.depends_on_task_ids ?? []
  // Only a completed task ends the wait, and one that was canceled stays so.
  const canceled = ids.find(id => core.tasks.get(id)?.status === 'canceled')
  if (canceled !== undefined) return { why, next: `svc task dependency remove ${task.id} ${canceled}` }
  return { why, next: `wait for ${ids.join(', ')}` }
}

/** A reason for which a task is blocked, in words; other tasks go by their titles. */
export function blockedText(
  core: TaskCore,
  { source, kind, reason, depends_on_task_ids: ids = [] }: BlockedReason,
): string {
  if (source === 'paused') return reason ? `paused: ${reason}` : 'paused'
  if (source === 'block') return `blocked (${kind}): ${reason}`
  if (source === 'approval') return reason ?? 'it waits for its approval'
  const named = ids.slice(0, NAMED).map(id => {
    const other = core.tasks.get(id)
    return other ? `${shown(other.title)} (${id}, ${other.status})` : id
  })
  return `it waits for ${named.join(', ')}${ids.length > NAMED ? ` and ${ids.length - NAMED} more` : ''}`
}
