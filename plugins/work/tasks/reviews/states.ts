import type { ReviewOutcome, ReviewPolicy, ReviewStatus, TaskRunStatus } from '../../../../schemas/tasks.js'

/** Statuses without a verdict. */
export const OPEN_REVIEW = ['requested', 'routed', 'in_review'] as const satisfies readonly ReviewStatus[]

/** All transitions of a review: source statuses and target status. */
export const REVIEW_MOVES = {
  /** The review is assigned to a session. */
  route: { from: ['requested', 'routed'], to: 'routed' },
  /** A session starts the review. */
  start: { from: ['requested', 'routed'], to: 'in_review' },
  /** The reviewing session has stopped. */
  giveBack: { from: ['routed', 'in_review'], to: 'requested' },
  record: { from: OPEN_REVIEW, to: 'recorded' },
  /** The verdict is recorded and the task needs attention. */
  openCircuit: { from: OPEN_REVIEW, to: 'circuit_opened' },
  cancel: { from: OPEN_REVIEW, to: 'canceled' },
} as const satisfies Readonly<Record<string, { readonly from: readonly ReviewStatus[]; readonly to: ReviewStatus }>>
export type ReviewMove = keyof typeof REVIEW_MOVES

export const allowsReview = (move: ReviewMove, status: ReviewStatus): boolean =>
  (REVIEW_MOVES[move].from as readonly ReviewStatus[]).includes(status)

/** Whether the policy covers a run with this status. Open runs are never reviewed. */
export function isDue(policy: ReviewPolicy, status: TaskRunStatus): boolean {
  if (status === 'completed') return policy === 'always' || policy === 'on_success'
  return status === 'failed' && (policy === 'always' || policy === 'on_failure')
}

/** The effect of a verdict on the task. */
export type Consequence = 'nothing' | 'continue' | 'stop'

/**
 * A rejected run is done again with the guidance of the reviewer, until the last round. A blocked reviewer or a rejection in the
 * last round needs attention. Other outcomes have no effect on the task.
 * @param mostRounds 0: no limit
 */
export function consequenceOf(outcome: ReviewOutcome, round: number, mostRounds: number): Consequence {
  if (outcome === 'blocked') return 'stop'
  if (outcome !== 'rejected') return 'nothing'
  return mostRounds > 0 && round >= mostRounds ? 'stop' : 'continue'
}
