import type { VerdictBody } from '../../../../schemas/tasks.js'
import { LIMITS } from '../limits.js'
import { json } from '../rows.js'
import { UNSTORABLE } from '../tasks/write.js'
import { ReviewErrors } from './errors.js'
import type { ReviewRow } from './review-row.js'

/** Maximum sizes in bytes. Guidance and missing work become part of the metadata of the next run. */
const MOST = { guidance: 4096, missing: 8192, text: 64 * 1024 }

/** The error for an invalid review or verdict; the text names the member. */
export const invalid = (text: string) => ReviewErrors.task_review_invalid(text)

/** The trimmed text; null when empty. */
export function text(member: string, value: string | undefined, most: number): string | null {
  const trimmed = value?.trim() || null
  if (trimmed?.includes(UNSTORABLE)) throw invalid(`${member}: NUL is not allowed`)
  if (trimmed !== null && Buffer.byteLength(trimmed) > most) throw invalid(`${member}: at most ${most} bytes`)
  return trimmed
}

/** Checks a verdict. Throws `task_review_invalid` (400). */
export function checkedVerdict(verdict: VerdictBody['verdict']): Partial<ReviewRow> {
  const { confidence, delivery_id: delivery } = verdict
  if (confidence !== null && !(confidence >= 0 && confidence <= 1))
    throw invalid(`verdict.confidence: must be between 0 and 1, not ${confidence}`)
  if (delivery === '' || delivery.length > LIMITS.key)
    throw invalid(`verdict.delivery_id: must have 1 to ${LIMITS.key} characters`)
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
