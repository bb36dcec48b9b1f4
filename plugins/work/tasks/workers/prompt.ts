import { clip } from '../../../../kernel/kit/text.js'
import type { ReviewContinuation } from '../../../../schemas/tasks.js'
import { cutText } from '../../../agents/sidecars/api.js'
import { channelOfRun } from '../runs/participation.js'
import type { RunRow } from '../runs/run-row.js'
import type { TaskRow } from '../tasks/task-row.js'
import { continuationOf } from '../views/bundle.js'

/** Maximum length of an error in the prompt and in a worker row. */
export const ERROR_CHARS = 500

/** Context of a run for its prompt. */
export interface Before {
  /** Ended runs, newest first. */
  readonly earlier: readonly RunRow[]
  /** Result or error of the previous run. */
  readonly handoff: string | undefined
  /** Branch of the worktree. */
  readonly branch: string | undefined
  /** Maximum size of the description in the prompt. */
  readonly bodyBytes: number
  /** For a coordinator: the guidance of the profile, and its worker runs. */
  readonly lead: { readonly guidance: string | undefined; readonly parts: readonly RunRow[] } | undefined
}

/** The first prompt of a session that was started for a run. */
export function promptOf(task: TaskRow, run: RunRow, { earlier, handoff, branch, bodyBytes, lead }: Before): string {
  const { text, truncated } = cutText(task.description ?? '', bodyBytes)
  const cut = truncated ? `${text}\n[truncated; full description: svc task get ${task.id}]` : text
  const wanted = continuationOf(run)
  const channel = channelOfRun(run)
  const failed = earlier.flatMap(({ attempt, status, error }) =>
    error === null ? [] : [`- attempt ${attempt} (${status}): ${clip(error, ERROR_CHARS)}`],
  )
  return [
    `${lead ? 'Coordinate' : 'Work on'} this task: ${task.title}`,
    ...(run.designation_brief === null ? [] : [`Your part of the task: ${run.designation_brief}`]),
    ...(cut === '' ? [] : [cut]),
    ...(lead ? [leadOf(task, lead)] : []),
    ...(failed.length === 0 ? [] : [`Earlier attempts:\n${failed.join('\n')}`]),
    ...(handoff === undefined ? [] : [`Handoff from the previous run:\n${handoff}`]),
    ...(wanted === undefined ? [] : [wishOf(wanted)]),
    ...(branch ? [`You work in your own git worktree on branch ${branch}. Commit your changes to this branch.`] : []),
    ...(channel === undefined
      ? []
      : [
          `The run has the channel ${channel.id}, of which you are a peer once you have claimed it: svc ch recv ${channel.id}`,
        ]),
    `You work on run ${run.id} of task ${task.id}. Claim it first and hold its lease while you work. Run these commands in a shell:
1. svc task next --lease-seconds 900   (claim the run; run this first)
2. svc task begin ${run.id}   (when you start working)
3. svc task heartbeat ${run.id}   (renew the lease before it expires; repeat while you work)
4. svc task complete ${run.id} --result '{"summary":"what you did"}'   (when the work is done)
   or svc task fail ${run.id} --error "reason"   (when the work cannot be done)
   or svc task release ${run.id}   (to return the run to the queue for another session)
If the shell does not find svc, as a login shell may not, run "$SVC_BIN" instead of svc.
If a command fails with AUTONOMY_LEASE_EXPIRED or AUTONOMY_FOREIGN_RUN, you no longer hold the run: stop working on it.`,
  ].join('\n\n')
}

/** The instructions of a coordinator, whose workers do the task. */
function leadOf({ id }: TaskRow, { guidance, parts }: NonNullable<Before['lead']>): string {
  const lines = parts.map(
    ({ id: run, status, designation_index: index, designation_brief: brief }) =>
      `- part ${(index ?? 0) + 1}, run ${run}, ${status}: ${brief ?? ''}`,
  )
  return [
    ...(guidance === undefined ? [] : [guidance, '']),
    'Other sessions do the work; you split it, answer them and judge the results.',
    ...(parts.length > 0
      ? ['The parts of the work:', ...lines]
      : ['Split the work into parts, each of which becomes a run:']),
    ...(parts.length > 0
      ? []
      : [
          `  svc task fan-out ${id} --idempotency-key parts --designations '[{"brief":"first part"},{"brief":"second part"}]'`,
        ]),
    `How far they are: svc task run list ${id}. End your run when all parts have ended.`,
  ].join('\n')
}

/** The verdict of the reviewer. */
const wishOf = ({ reason, next_round_guidance: guidance, missing_work: missing }: ReviewContinuation) =>
  [
    `A reviewer rejected the previous run: ${reason}`,
    ...(guidance === '' ? [] : [guidance]),
    ...missing.map(item => `- missing: ${item}`),
  ].join('\n')

/** The reminder after a turn that did not end the run. */
export const reminderOf = (run: RunRow): string =>
  run.status === 'queued'
    ? `You have not claimed run ${run.id}. Claim it with svc task next ("$SVC_BIN" task next if the shell does not find svc), do the work, then complete or fail it.`
    : `You still hold run ${run.id}, which is ${run.status}. End it: svc task complete ${run.id}, svc task fail ${run.id} --error "reason", or svc task release ${run.id}.`
