import { command } from '../../../../kernel/kit/commands/command-line.js'
import { shown } from '../../../../kernel/kit/text.js'
import type { Reads, Tx } from '../../../../kernel/plugin.js'
import type { TaskReview } from '../../../../schemas/tasks.js'
import type { TaskEventName } from '../api.js'
import type { TaskCore } from '../core.js'
import type { Who } from '../who.js'
import { ReviewErrors } from './errors.js'
import { type ReviewRow, reviewTable, reviewToWire } from './review-row.js'
import { allowsReview, OPEN_REVIEW, REVIEW_MOVES, type ReviewMove } from './states.js'

/** The open statuses as a SQL list. */
export const OPEN = OPEN_REVIEW.map(status => `'${status}'`).join(', ')

/** Throws `task_review_not_found` (404). */
export function findReview(reads: Reads, id: string): ReviewRow {
  const row = reviewTable.get(reads, { id })
  if (!row) throw ReviewErrors.task_review_not_found(`review not found: ${shown(id)}`)
  return row
}

/**
 * Applies a transition of {@link REVIEW_MOVES}.
 * @throws Fault `task_review_conflict` when the table does not allow it
 */
export function moveReview(
  core: TaskCore,
  t: Tx,
  who: Who,
  review: ReviewRow,
  move: ReviewMove,
  event: TaskEventName,
  changes: Partial<ReviewRow>,
): TaskReview {
  if (!allowsReview(move, review.status)) {
    const text = `review ${review.id} is ${review.status}; this operation requires status ${REVIEW_MOVES[move].from.join(', ')}`
    throw ReviewErrors.task_review_conflict(text, { next: command('task review show', review.id) })
  }
  reviewTable.update(t, { id: review.id }, { ...changes, status: REVIEW_MOVES[move].to, updated_at: core.now() })
  const after = findReview(t, review.id)
  tellReview(core, t, who, after, event)
  return reviewToWire(after)
}

export function tellReview(core: TaskCore, t: Tx, who: Who, row: ReviewRow, event: TaskEventName): void {
  const task = core.tasks.find(row.task_id, t)
  const payload = { review_id: row.id, review_round: row.round, ...(row.outcome ? { outcome: row.outcome } : {}) }
  core.journal.write(t, who, event, { task, run: row.run_id, payload })
}

/** Cancels the open reviews of a task. */
export function cancelReviews(core: TaskCore, t: Tx, who: Who, task: string): void {
  const rows = reviewTable.query(t, `WHERE task_id = ? AND status IN (${OPEN})`, [task])
  for (const row of rows) moveReview(core, t, who, row, 'cancel', 'task.run_review_canceled', {})
}
