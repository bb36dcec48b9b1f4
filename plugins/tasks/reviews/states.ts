import type { ReviewOutcome, ReviewPolicy, ReviewStatus, TaskRunStatus } from '../../../schemas/tasks.js'

/** States in which a verdict is still to come. */
export const OPEN_REVIEW = ['requested', 'routed', 'in_review'] as const satisfies readonly ReviewStatus[]

/** Everything that can happen to a review: from which states, and to which one. */
export const REVIEW_MOVES = {
  /** A session is named that is to review. */
  route: { from: ['requested', 'routed'], to: 'routed' },
  /** A session says that it has begun. */
  start: { from: ['requested', 'routed'], to: 'in_review' },
  /** The session that was to review is no more. */
  giveBack: { from: ['routed', 'in_review'], to: 'requested' },
  record: { from: OPEN_REVIEW, to: 'recorded' },
  /** The verdict is recorded, and nothing follows from it by itself: a person has to look. */
  openCircuit: { from: OPEN_REVIEW, to: 'circuit_opened' },
  cancel: { from: OPEN_REVIEW, to: 'canceled' },
} as const satisfies Readonly<Record<string, { readonly from: readonly ReviewStatus[]; readonly to: ReviewStatus }>>
export type ReviewMove = keyof typeof REVIEW_MOVES

export const allowsReview = (move: ReviewMove, status: ReviewStatus): boolean =>
  (REVIEW_MOVES[move].from as readonly ReviewStatus[]).includes(status)

/** May a run that ended so be reviewed? One that is not over may not. */
export function isDue(policy: ReviewPolicy, status: TaskRunStatus): boolean {
  if (status === 'completed') return policy === 'always' || policy === 'on_success'
  return status === 'failed' && (policy === 'always' || policy === 'on_failure')
}

/** What follows from a verdict. */
export type Consequence = 'nothing' | 'continue' | 'stop'

/**
 * What was rejected is done again, with what the reviewer wrote, as often as there may be rounds. A reviewer that is blocked, and a
 * rejection after the last round, are for a person. A review that came to nothing says nothing of the run.
 * @param mostRounds 0: as many as there are
 */
export function consequenceOf(outcome: ReviewOutcome, round: number, mostRounds: number): Consequence {
  if (outcome === 'blocked') return 'stop'
  if (outcome !== 'rejected') return 'nothing'
  return mostRounds > 0 && round >= mostRounds ? 'stop' : 'continue'
}
