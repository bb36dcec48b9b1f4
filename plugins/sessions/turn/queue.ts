import { iso } from '../../../kernel/plugin.js'
import type { PromptReceipt, PutQueuedPromptBody, QueuedPrompt } from '../../../schemas/sessions.js'
import { SessionErrors } from '../api.js'
import type { SessionsContext } from '../context.js'
import type { SessionRow } from '../table.js'
import { digestOf, droppedEvent, type PromptRow } from './prompts.js'

/** The prompts that wait, first in first out. */
export function listQueue({ prompts }: SessionsContext, row: SessionRow): QueuedPrompt[] {
  return prompts.queued(row.id).map(toWire)
}

/** Takes a prompt out of the queue. Throws `prompt_not_queued` (404), also when it runs already. */
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

/** Gives a prompt that waits another text, under new identities. Throws `prompt_not_queued` (404). */
export async function changeInQueue(
  { kernel, prompts }: SessionsContext,
  row: SessionRow,
  id: string,
  { text, message_id, idempotency_key }: PutQueuedPromptBody,
): Promise<QueuedPrompt> {
  if (text.trim() === '') throw SessionErrors.prompt_text_missing()
  return kernel.db.tx(t => {
    const entry = find(prompts.queued(row.id), id)
    if (prompts.isBound(row.id, message_id, idempotency_key, id)) throw SessionErrors.prompt_idempotency_conflict()
    const digest = digestOf(text, entry.mode, undefined)
    prompts.change(t, id, { text, digest, message_id, idempotency_key })
    return toWire({ ...entry, text, message_id, idempotency_key })
  })
}

function find(queued: readonly PromptRow[], id: string): PromptRow {
  const entry = queued.find(prompt => prompt.id === id)
  if (!entry) throw SessionErrors.prompt_not_queued(`no prompt ${id} waits in this session`)
  return entry
}

function toWire(entry: PromptRow): QueuedPrompt {
  return {
    id: entry.id,
    delivery: entry.mode === 'steer' ? 'steer' : 'queue',
    enqueued_at: iso(entry.enqueued_at),
    ...(entry.idempotency_key && { idempotency_key: entry.idempotency_key }),
    message_id: entry.message_id,
    mode: entry.mode,
    queue_generation: entry.generation,
    session_id: entry.session_id,
    status: entry.status,
    text: entry.text,
  }
}
