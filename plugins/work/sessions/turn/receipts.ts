import type { PromptReceipt } from '../../../../schemas/sessions.js'
import type { PromptRow } from './prompts.js'

type Sent = Pick<PromptRow, 'id' | 'mode' | 'turn_id' | 'message_id' | 'idempotency_key'>

const identities = ({ turn_id, message_id, idempotency_key }: Sent) => ({
  new_turn_id: turn_id,
  message_id,
  ...(idempotency_key && { idempotency_key }),
})

/** The reply to a prompt whose turn begins at once. */
export const startedReceipt = (prompt: Sent): PromptReceipt => ({
  status: 'started',
  mode: prompt.mode,
  queued: false,
  ...identities(prompt),
})

/** The reply to a prompt that waits. `running`: the turn before it; `dropped`: the number of prompts that it displaced. */
export const enqueuedReceipt = (
  prompt: Sent,
  running: string | undefined,
  at: { readonly generation: number; readonly position: number; readonly dropped: number | undefined },
): PromptReceipt => ({
  status: 'queued',
  mode: prompt.mode,
  queued: true,
  queue_entry_id: prompt.id,
  queue_position: at.position,
  queue_generation: at.generation,
  ...identities(prompt),
  ...(running !== undefined && { previous_turn_id: running }),
  ...(at.dropped !== undefined && { interrupted: running !== undefined, canceled_queued_entries: at.dropped }),
  ...(prompt.mode === 'steer' && { staged: running !== undefined, fallback_mode_if_no_tool_result: 'queue' }),
})
