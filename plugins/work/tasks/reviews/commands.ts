import { createHash } from 'node:crypto'
import { command, placeholder } from '../../../../kernel/kit/commands/command-line.js'
import type { CommandContext } from '../../../../kernel/plugin.js'
import { durationMs } from '../../../../schemas/duration.js'
import type {
  ReviewRequestReply,
  RunDetailReply,
  SchedulerReply,
  TaskReview,
  VerdictReply,
} from '../../../../schemas/tasks.js'
import { ReviewOutcome } from '../../../../schemas/tasks.js'

const DAY_MS = 86_400_000
const url = (...parts: string[]) => `/api/${parts.map(encodeURIComponent).join('/')}`

/** `svc task review request <run-id>`. */
export async function runRequestReview({ args, options, client, out, fault }: CommandContext): Promise<void> {
  const { 'run-id': id = '' } = args
  const ms = options.within === undefined ? DAY_MS : durationMs(String(options.within))
  if (!ms)
    return fault(
      'usage',
      `invalid value for --within: ${options.within}; use a duration such as 30m or 1d`,
      command('task review request', '--help'),
    )
  // The daemon compares deadlines with its own clock.
  const { scheduler } = (await client.request('GET', '/api/scheduler')) as SchedulerReply
  const { run } = (await client.request('GET', url('task-runs', id))) as RunDetailReply
  const body = {
    run_id: id,
    task_id: run.run.task_id,
    deadline_at: new Date(Date.parse(scheduler.as_of) + ms).toISOString(),
    ...(options.policy === undefined ? {} : { policy: options.policy }),
    ...(options.reason === undefined ? {} : { reason: options.reason }),
    ...(options.round === undefined ? {} : { review_round: options.round }),
  }
  const reply = (await client.request('POST', url('task-runs', id, 'reviews'), body)) as ReviewRequestReply
  if (out.json) return out.value(reply)
  out.id(reply.review.review_id)
  out.line(`${reply.review.review_id}  ${reply.created ? 'requested' : 'already requested'}: ${stateOf(reply.review)}`)
  const { review_id: review, status } = reply.review
  if (status === 'requested')
    out.line(
      `next: ${command('task review route', review, '--session-id', placeholder('session'))}, or ${command('task review verdict', review, placeholder('outcome'), '--reason', placeholder('reason'))}`,
    )
}

/** `svc task review verdict <id> <outcome>`. */
export async function runReviewVerdict({ args, options, client, out, fault }: CommandContext): Promise<void> {
  const { id = '', outcome = '' } = args
  const next = command('task review verdict', '--help')
  if (!ReviewOutcome.options.includes(outcome as ReviewOutcome))
    fault('usage', `invalid outcome: ${outcome}; use one of ${ReviewOutcome.options.join(', ')}`, next)
  if (options.reason === undefined) fault('usage', '--reason is required', next)
  const confidence = options.confidence === undefined ? null : Number(options.confidence)
  if (confidence !== null && !(confidence >= 0 && confidence <= 1))
    fault('usage', `invalid value for --confidence: ${options.confidence}; use a number from 0 to 1`, next)
  const { review } = (await client.request('GET', url('task-reviews', id))) as { review: TaskReview }
  const said = {
    outcome,
    reason: options.reason,
    confidence,
    ...(options.guidance === undefined ? {} : { next_round_guidance: options.guidance }),
    ...(options.text === undefined ? {} : { review_text: options.text }),
  }
  // Derived from the verdict, so that sending the same verdict twice records it once.
  const delivery_id = `cli-${createHash('sha256')
    .update(JSON.stringify([id, said]))
    .digest('hex')
    .slice(0, 32)}`
  const body = { run_id: review.run_id, verdict: { ...said, delivery_id } }
  const reply = (await client.request('POST', url('task-reviews', id, 'verdict'), body)) as VerdictReply
  if (out.json) return out.value(reply)
  out.line(`${id}  ${stateOf(reply.review)}`)
  if (reply.continuation_run) out.line(`queued run ${reply.continuation_run.id} to continue the work`)
  if (reply.circuit_opened) out.line(`the task needs attention; next: ${command('task inspect', reply.review.task_id)}`)
}

const stateOf = ({ status, review_round: round, outcome, deadline_at: by }: TaskReview) =>
  `round ${round}, ${outcome ? `${status}: ${outcome}` : `${status}, until ${by.replace(/\.\d+Z$/, 'Z')}`}`
