import type { ReviewContinuation } from '../../../schemas/tasks.js'
import { cutText } from '../../sidecars/api.js'
import type { RunRow } from '../runs/run-row.js'
import type { TaskRow } from '../tasks/task-row.js'
import { continuationOf } from '../views/bundle.js'

/** Characters of an error that are told, or kept with a session that ended. */
export const ERROR_CHARS = 500

/** What is known of a run besides itself. */
export interface Before {
  /** Runs that are over, the newest first. */
  readonly earlier: readonly RunRow[]
  /** What the last of them left. */
  readonly handoff: string | undefined
  /** Of its worktree. */
  readonly branch: string | undefined
  /** Bytes of the description that are told; the whole is read by a command. */
  readonly bodyBytes: number
}

/** What an agent is told that was started for a run. */
export function promptOf(task: TaskRow, run: RunRow, { earlier, handoff, branch, bodyBytes }: Before): string {
  const { text, truncated } = cutText(task.description ?? '', bodyBytes)
  const cut = truncated ? `${text}\n(the whole: svc task get ${task.id})` : text
  const wanted = continuationOf(run)
  const failed = earlier.flatMap(({ attempt, status, error }) =>
    error === null ? [] : [`- attempt ${attempt} is ${status}: ${error.slice(0, ERROR_CHARS)}`],
  )
  return [
    `Work on this task: ${task.title}`,
    ...(run.designation_brief === null ? [] : [`Your part of it: ${run.designation_brief}`]),
    ...(cut === '' ? [] : [cut]),
    ...(failed.length === 0 ? [] : [`What was tried before:\n${failed.join('\n')}`]),
    ...(handoff === undefined ? [] : [`What the run before this one left:\n${handoff}`]),
    ...(wanted === undefined ? [] : [wishOf(wanted)]),
    ...(branch ? [`You are in a git worktree of your own, on the branch ${branch}. Commit what you do there.`] : []),
    `You work on run ${run.id} of task ${task.id} under a lease. Run these commands in a shell:
1. svc task next --lease-seconds 900   (claims the run; do it first)
2. svc task begin ${run.id}   (when the work begins)
3. svc task heartbeat ${run.id}   (before the lease runs out; again and again while you work)
4. svc task complete ${run.id} --result '{"summary":"what you did"}'   (when it is done)
   or svc task fail ${run.id} --error "why"   (when it cannot be done)
   or svc task release ${run.id}   (when another session has to do it)
A command that is refused with AUTONOMY_LEASE_EXPIRED or AUTONOMY_FOREIGN_RUN says that the run is no longer yours: stop then.`,
  ].join('\n\n')
}

/** What a reviewer wants of the run. */
const wishOf = ({ reason, next_round_guidance: guidance, missing_work: missing }: ReviewContinuation) =>
  [
    `What was done before was reviewed and rejected: ${reason}`,
    ...(guidance === '' ? [] : [guidance]),
    ...missing.map(item => `- missing: ${item}`),
  ].join('\n')

/** What it is told when its turn ended and the run has not. */
export const reminderOf = (run: RunRow): string =>
  run.status === 'queued'
    ? `You have not claimed run ${run.id}. Claim it with svc task next, do the work, and complete or fail it.`
    : `Run ${run.id} is still yours and is ${run.status}. End it: svc task complete ${run.id}, svc task fail ${run.id} --error "why", or svc task release ${run.id}.`
