import { iso } from '../../../../kernel/plugin.js'
import type {
  PromptReceipt,
  PutQueuedPromptBody,
  QueuedPrompt,
  SteerQueuedPromptBody,
  SteerQueuedPromptReply,
} from '../../../../schemas/sessions.js'
import { SessionErrors } from '../api.js'
import { attachmentToWire } from '../attachments/store.js'
import type { SessionsContext } from '../context.js'
import { submitted } from '../gates.js'
import type { SessionRow } from '../table.js'
import { digestOf, droppedEvent, type PromptRow } from './prompts.js'
import type { Turn } from './turn.js'

/** The waiting prompts, first in first out. */
export function listQueue(context: SessionsContext, row: SessionRow): QueuedPrompt[] {
  return context.prompts.queued(row.id).map(entry => toWire(context, entry))
}

/** Removes a prompt from the queue. Throws `prompt_not_queued` (404), also when it runs already. */
export async function dropFromQueue(
  { kernel, prompts, logs }: SessionsContext,
  row: SessionRow,
  id: string,
): Promise<PromptReceipt> {
  const entry = await kernel.db.tx(t => {
    const found = find(prompts.queued(row.id), id)
    prompts.finish(t, found, 'canceled')
    return found
  })
  await logs.use(row.id, async log => void log.append(droppedEvent(entry.turn_id)))
  return {
    status: 'canceled',
    queue_entry_id: id,
    queue_generation: entry.generation,
    canceled_queued_entries: 1,
    message_id: entry.message_id,
  }
}

/** Replaces the text of a waiting prompt, under new IDs. Throws `prompt_not_queued` (404). */
export async function changeInQueue(
  context: SessionsContext,
  row: SessionRow,
  id: string,
  { text, message_id, idempotency_key }: PutQueuedPromptBody,
): Promise<QueuedPrompt> {
  if (text.trim() === '') throw SessionErrors.prompt_text_missing()
  const { kernel, prompts, promptFiles } = context
  await promptFiles.recall(row.id)
  const input = await changedText(context, row, id, text)
  return kernel.db.tx(t => {
    const entry = find(prompts.queued(row.id), id)
    if (prompts.isBound(row.id, message_id, idempotency_key, id)) throw SessionErrors.prompt_idempotency_conflict()
    const change = { ...input, digest: digestOf(text, entry.mode, undefined), message_id, idempotency_key }
    prompts.change(t, id, change)
    return toWire(context, { ...entry, ...change })
  })
}

/** The new text of a waiting prompt after the hooks that may change it; the old text has passed them already. */
async function changedText(
  context: SessionsContext,
  row: SessionRow,
  id: string,
  text: string,
): Promise<Pick<PromptRow, 'text' | 'context_blocks'>> {
  const { source, text: before, context_blocks } = find(context.prompts.queued(row.id), id)
  if (text === before) return { text, context_blocks }
  return submitted(context, row, { message: text, source })
}

function find(queued: readonly PromptRow[], id: string): PromptRow {
  const entry = queued.find(prompt => prompt.id === id)
  if (!entry) throw SessionErrors.prompt_not_queued(`no prompt ${id} waits in this session`)
  return entry
}

/** The attached files that were not removed in the meantime. */
function attachmentsOf({ attachments }: SessionsContext, entry: PromptRow) {
  const wanted = new Set(JSON.parse(entry.attachments ?? '[]') as string[])
  return attachments
    .list(entry.session_id)
    .filter(({ id }) => wanted.has(id))
    .map(attachmentToWire)
}

function toWire(context: SessionsContext, entry: PromptRow): QueuedPrompt {
  return {
    id: entry.id,
    delivery: entry.mode === 'steer' ? 'steer' : 'queue',
    enqueued_at: iso(entry.enqueued_at),
    ...(entry.idempotency_key && { idempotency_key: entry.idempotency_key }),
    message_id: entry.message_id,
    mode: entry.mode,
    queue_generation: entry.generation,
    ...(entry.attachments !== null && { attachments: attachmentsOf(context, entry) }),
    ...(entry.runtime !== null && { runtime: JSON.parse(entry.runtime) }),
    session_id: entry.session_id,
    status: entry.status,
    text: entry.text,
  }
}

/**
 * Delivers a waiting prompt with the next tool result of the running turn; without a tool result it is the next prompt.
 * @throws Fault `no_active_prompt`, `turn_changed`, `prompt_idempotency_conflict` (409), `prompt_not_queued` (404)
 */
export async function steerFromQueue(
  context: SessionsContext,
  row: SessionRow,
  id: string,
  { text, message_id, idempotency_key, expected_turn_id: expected }: SteerQueuedPromptBody,
  running: () => Turn | undefined,
): Promise<SteerQueuedPromptReply['prompt']> {
  if (text.trim() === '') throw SessionErrors.prompt_text_missing()
  const { kernel, prompts, promptFiles } = context
  await promptFiles.recall(row.id)
  const digest = digestOf(text, 'steer', undefined)
  const receiptFields = { delivery: 'steer' as const, idempotency_key, message_id }
  const replayed = () => prompts.replay(row.id, idempotency_key, undefined, digest)
  const before = replayed()
  if (before) return { ...before, ...receiptFields, replayed: true }
  if (!running()) throw SessionErrors.no_active_prompt()
  const input = await changedText(context, row, id, text)
  return kernel.db.tx(t => {
    const replay = replayed()
    if (replay) return { ...replay, ...receiptFields, replayed: true }
    const turn = running()
    if (!turn) throw SessionErrors.no_active_prompt()
    if (turn.id !== expected) throw SessionErrors.turn_changed(`the running turn is ${turn.id}, not ${expected}`)
    const queued = prompts.queued(row.id)
    const entry = find(queued, id)
    if (prompts.isBound(row.id, message_id, idempotency_key, id)) throw SessionErrors.prompt_idempotency_conflict()
    const receipt: PromptReceipt = {
      status: 'staged',
      mode: 'steer',
      staged: true,
      fallback_mode_if_no_tool_result: 'queue',
      queue_entry_id: id,
      queue_generation: entry.generation,
      queue_position: queued.indexOf(entry) + 1,
      new_turn_id: entry.turn_id,
      previous_turn_id: turn.id,
      message_id,
      idempotency_key,
    }
    prompts.change(t, id, { ...input, digest, message_id, idempotency_key })
    prompts.stage(t, id, JSON.stringify(receipt))
    return { ...receipt, ...receiptFields, replayed: false }
  })
}
