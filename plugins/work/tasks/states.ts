import type { TaskRunStatus, TaskStatus } from '../../../schemas/tasks.js'
import type { Outcome } from './runs/latest.js'

/**
 * All transitions of a run: source statuses and target status. Transitions with `Lease` in their name require an unexpired
 * lease; the others are operations without a lease.
 */
export const RUN_MOVES = {
  claim: { from: ['queued'], to: 'claimed' },
  bind: { from: ['claimed'], to: 'starting' },
  start: { from: ['starting'], to: 'running' },
  startByLease: { from: ['claimed', 'starting'], to: 'running' },
  completeByLease: { from: ['claimed', 'starting', 'running'], to: 'completed' },
  failByLease: { from: ['claimed', 'starting', 'running'], to: 'failed' },
  releaseByLease: { from: ['claimed', 'starting', 'running'], to: 'queued' },
  /** The lease has expired, or its holder has stopped. */
  requeue: { from: ['claimed', 'starting', 'running'], to: 'queued' },
  complete: { from: ['running'], to: 'completed' },
  fail: { from: ['starting', 'running'], to: 'failed' },
  cancel: { from: ['queued', 'claimed', 'starting', 'running', 'needs_attention'], to: 'canceled' },
  escalate: { from: ['queued', 'claimed', 'starting', 'running'], to: 'needs_attention' },
  forceRelease: { from: ['claimed'], to: 'queued' },
  forceFail: { from: ['queued', 'claimed'], to: 'failed' },
  /** A recovery has queued a successor. */
  supersede: { from: ['needs_attention'], to: 'failed' },
  /** Boot recovery: the session of the holder is alive. */
  adopt: { from: ['claimed', 'starting', 'running'], to: 'running' },
  /** Boot recovery: the session of a started run has ended. */
  abandon: { from: ['starting', 'running'], to: 'failed' },
} as const satisfies Readonly<Record<string, { readonly from: readonly TaskRunStatus[]; readonly to: TaskRunStatus }>>
export type RunMove = keyof typeof RUN_MOVES

/** Whether the transition is allowed from this status. */
export const allows = (move: RunMove, status: TaskRunStatus): boolean =>
  (RUN_MOVES[move].from as readonly TaskRunStatus[]).includes(status)

/** Terminal statuses. */
export const FINAL_RUN: ReadonlySet<TaskRunStatus> = new Set(['completed', 'failed', 'canceled'])
export const FINAL_TASK: ReadonlySet<TaskStatus> = new Set(['completed', 'failed', 'canceled'])
/** Statuses that a failed part of a fan-out does not change. */
const CLOSED_TASK: ReadonlySet<TaskStatus> = new Set(['draft', 'completed', 'canceled'])

/** The facts from which the status of a task is derived. */
export interface TaskFacts extends Outcome {
  /** The stored status. */
  readonly status: TaskStatus
  /** At least one run is starting or running. */
  readonly working: boolean
  /** At least one run is queued or claimed. */
  readonly waiting: boolean
  /** At least one run needs attention. Another part of a fan-out may have ended while the task is still open. */
  readonly stuck: boolean
  readonly needsAttention: boolean
  /** A dependency, a missing approval, a pause or a block holds it back. */
  readonly blocked: boolean
}

/** Whether the task needs attention because failed parts of a fan-out may be retried. */
export const needsParts = ({ status, working, waiting, stuck, partFailed, exhausted }: TaskFacts): boolean =>
  partFailed && !exhausted && !working && !waiting && !stuck && !CLOSED_TASK.has(status)

/** Derives the status of a task. Only commands leave `draft` and `canceled`. */
export function deriveStatus(facts: TaskFacts): TaskStatus {
  if (facts.status === 'draft' || facts.status === 'canceled') return facts.status
  if (facts.working) return 'in_progress'
  const isOpen = facts.waiting || facts.stuck
  const { ended, exhausted, partFailed } = facts
  // A fan-out that was completed although a part had failed stays completed.
  const isDecided = ended !== 'failed' || (exhausted && !(partFailed && facts.status === 'completed'))
  if (!isOpen && ended !== undefined && isDecided) return ended
  if (needsParts(facts)) return 'needs_attention'
  if (!isOpen && FINAL_TASK.has(facts.status)) return facts.status
  if (facts.needsAttention || (facts.stuck && !facts.waiting)) return 'needs_attention'
  return facts.blocked ? 'blocked' : 'ready'
}
