import type { VerdictBody } from '../../../schemas/tasks.js'
import { LIMITS } from '../limits.js'
import { json } from '../rows.js'
import { UNSTORABLE } from '../tasks/write.js'
import { ReviewErrors } from './errors.js'
import type { ReviewRow } from './review-row.js'

/** Bytes of what a reviewer writes for the next round, which the next run has in its metadata. */
const MOST = { guidance: 4096, missing: 8192, text: 64 * 1024 }

/** What makes a review or a verdict invalid: the member, and what is wrong with it. */
export const invalid = (text: string) => ReviewErrors.task_review_invalid(text)

/** A text without the spaces around it; null for none. */
export function text(member: string, value: string | undefined, most: number): string | null {
  const trimmed = value?.trim() || null
  if (trimmed !== null && UNSTORABLE.test(trimmed))
    throw invalid(`${member}: NUL and unpaired surrogates are not allowed`)
  if (trimmed !== null && Buffer.byteLength(trimmed) > most) throw invalid(`${member}: at most ${most} bytes`)
  return trimmed
}

/** What a verdict says of a review, within its bounds. Throws `task_review_invalid` (400). */
export function checkedVerdict(verdict: VerdictBody['verdict']): Partial<ReviewRow> {
  const { confidence, delivery_id: delivery } = verdict
  if (confidence !== null && !(confidence >= 0 && confidence <= 1)) throw invalid('verdict.confidence: from 0 to 1')
  if (delivery === '' || delivery.length > LIMITS.key)
    throw invalid(`verdict.delivery_id: from 1 to ${LIMITS.key} characters`)
  const reason = text('verdict.reason', verdict.reason, LIMITS.reason)
  if (reason === null) throw invalid('verdict.reason: required')
  const missing = json(verdict.missing_work)
  if (missing !== null && Buffer.byteLength(missing) > MOST.missing)
    throw invalid(`verdict.missing_work: at most ${MOST.missing} bytes`)
  return {
    outcome: verdict.outcome,
    verdict_reason: reason,
    confidence,
    delivery_id: delivery,
    missing_work: missing,
    guidance: text('verdict.next_round_guidance', verdict.next_round_guidance, MOST.guidance),
    text: text('verdict.review_text', verdict.review_text, MOST.text),
  }
}
