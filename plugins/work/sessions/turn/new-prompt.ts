import type { Clock, Ids } from '../../../../kernel/plugin.js'
import { SessionErrors } from '../api.js'
import type { SessionsContext } from '../context.js'
import type { SessionRow } from '../table.js'
import { digestOf, type PromptRow } from './prompts.js'

/** The columns of a prompt that are known before it is stored. */
export type NewPrompt = Omit<PromptRow, 'seq' | 'status' | 'generation' | 'reply'>

/** A prompt with newly generated IDs, except for the given members. */
export function newPrompt(
  { ids, clock }: { readonly ids: Ids; readonly clock: Clock },
  sessionId: string,
  text: string,
  overrides: Partial<NewPrompt>,
): NewPrompt {
  return {
    id: ids.id('prq'),
    session_id: sessionId,
    message_id: ids.id('msg'),
    idempotency_key: null,
    digest: digestOf(text, 'queue', null),
    text,
    mode: 'queue',
    source: 'user',
    turn_id: ids.id('trn'),
    cause: null,
    attachments: null,
    context_blocks: null,
    on_behalf_of: null,
    runtime: null,
    enqueued_at: clock.now(),
    ...overrides,
  }
}

/** The row of a session that may get a prompt. Throws `session_archived` (409). */
export function unarchived({ table }: Pick<SessionsContext, 'table'>, id: string): SessionRow | undefined {
  const row = table.get(id)
  if (row && row.archived_at !== null) throw SessionErrors.session_archived()
  return row
}
