import type { TaskRunStatus, TaskStatus } from '../../schemas/tasks.js'

/**
 * Everything that can happen to the state of a run: from which states, and to which one. `Lease` in a name says that only the
 * holder of an unexpired lease does it; the others have no lease to show.
 */
export const RUN_MOVES = {
  claim: { from: ['queued'], to: 'claimed' },
  bind: { from: ['claimed'], to: 'starting' },
  start: { from: ['starting'], to: 'running' },
  startByLease: { from: ['claimed', 'starting'], to: 'running' },
  completeByLease: { from: ['claimed', 'starting', 'running'], to: 'completed' },
  failByLease: { from: ['claimed', 'starting', 'running'], to: 'failed' },
  releaseByLease: { from: ['claimed', 'starting', 'running'], to: 'queued' },
  /** The lease has run out, or its holder is gone. */
  requeue: { from: ['claimed', 'starting', 'running'], to: 'queued' },
  complete: { from: ['running'], to: 'completed' },
  fail: { from: ['starting', 'running'], to: 'failed' },
  cancel: { from: ['queued', 'claimed', 'starting', 'running', 'needs_attention'], to: 'canceled' },
  escalate: { from: ['queued', 'claimed', 'starting', 'running'], to: 'needs_attention' },
  forceRelease: { from: ['claimed'], to: 'queued' },
  forceFail: { from: ['queued', 'claimed'], to: 'failed' },
  /** Another run goes on with the work of one that needed attention. */
  supersede: { from: ['needs_attention'], to: 'failed' },
  /** The boot found the holder alive. */
  adopt: { from: ['claimed', 'starting', 'running'], to: 'running' },
  /** The boot found that whoever had begun is dead. */
  abandon: { from: ['starting', 'running'], to: 'failed' },
} as const satisfies Readonly<Record<string, { readonly from: readonly TaskRunStatus[]; readonly to: TaskRunStatus }>>
export type RunMove = keyof typeof RUN_MOVES

/** May this happen to a run in that state? */
export const allows = (move: RunMove, status: TaskRunStatus): boolean =>
  (RUN_MOVES[move].from as readonly TaskRunStatus[]).includes(status)

/** States that nothing follows. */
export const FINAL_RUN: ReadonlySet<TaskRunStatus> = new Set(['completed', 'failed', 'canceled'])
export const FINAL_TASK: ReadonlySet<TaskStatus> = new Set(['completed', 'failed', 'canceled'])

/** What the status of a task follows from. */
export interface TaskFacts {
  /** The stored status. */
  readonly status: TaskStatus
  /** Has one run, or more, that is starting or running. */
  readonly working: boolean
  /** Has one run, or more, that is queued or claimed. */
  readonly waiting: boolean
  /** How the latest run that is over ended: that with the highest attempt, then `queued_at`, then id. */
  readonly ended: 'completed' | 'failed' | 'canceled' | undefined
  /** No attempt is left, nor one that a person is asked about. */
  readonly exhausted: boolean
  readonly needsAttention: boolean
  /** Something blocks it: a dependency, a missing approval, a pause, a block. */
  readonly blocked: boolean
}

/** The status of a task. `draft` and `canceled` are left by commands alone. */
export function deriveStatus(facts: TaskFacts): TaskStatus {
  if (facts.status === 'draft' || facts.status === 'canceled') return facts.status
  if (facts.working) return 'in_progress'
  if (!facts.waiting && facts.ended !== undefined && (facts.ended !== 'failed' || facts.exhausted)) return facts.ended
  if (!facts.waiting && FINAL_TASK.has(facts.status)) return facts.status
  if (facts.needsAttention) return 'needs_attention'
  return facts.blocked ? 'blocked' : 'ready'
}
