import type { RunRow } from '../runs/run-row.js'
import type { TaskRow } from '../tasks/task-row.js'

/** Characters of a description that stand in a prompt; the whole is read by a command. */
const SHOWN = 8192
/** Earlier attempts that are told of, and characters of each error. */
export const EARLIER = { runs: 5, chars: 500 }

/** What an agent is told that was started for a run. */
export function promptOf(task: TaskRow, run: RunRow, earlier: readonly RunRow[], branch: string | undefined): string {
  const description = task.description ?? ''
  const cut =
    description.length > SHOWN ? `${description.slice(0, SHOWN)}\n(the whole: svc task get ${task.id})` : description
  const failed = earlier.flatMap(({ attempt, status, error }) =>
    error === null ? [] : [`- attempt ${attempt} is ${status}: ${error.slice(0, EARLIER.chars)}`],
  )
  return [
    `Work on this task: ${task.title}`,
    ...(run.designation_brief === null ? [] : [`Your part of it: ${run.designation_brief}`]),
    ...(cut === '' ? [] : [cut]),
    ...(failed.length === 0 ? [] : [`What was tried before:\n${failed.join('\n')}`]),
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

/** What it is told when its turn ended and the run has not. */
export const reminderOf = (run: RunRow): string =>
  run.status === 'queued'
    ? `You have not claimed run ${run.id}. Claim it with svc task next, do the work, and complete or fail it.`
    : `Run ${run.id} is still yours and is ${run.status}. End it: svc task complete ${run.id}, svc task fail ${run.id} --error "why", or svc task release ${run.id}.`
