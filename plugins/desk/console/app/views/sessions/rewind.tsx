import { useEffect, useState } from 'preact/hooks'
import { announce } from '../../core/announce.js'
import { api, type ReplyOf } from '../../core/api.js'
import { text } from '../../text.js'
import { Confirm } from '../../ui/confirm.js'
import { Problem } from '../../ui/parts.js'
import { type Entry, type Place, promptText } from './use-transcript.js'

type Page = ReplyOf<'GET /api/workspaces/{workspace_id}/sessions/{session_id}/transcript'>

const words = text.rewind

/** Confirms the rewind of a conversation to before a prompt. The prompt then becomes the draft. */
export function Rewind({
  at,
  entry,
  close,
  done,
}: {
  readonly at: Place
  readonly entry: Entry
  readonly close: () => void
  readonly done: (draft: string) => void
}) {
  const [now, set] = useState<Page>()
  const [error, setError] = useState<unknown>()
  // The position of the conversation: the daemon refuses the rewind if it grew while the dialog was open.
  useEffect(() => {
    api('GET /api/workspaces/{workspace_id}/sessions/{session_id}/transcript', {
      path: at,
      query: { limit: 1 },
    }).then(set, setError)
  }, [])
  const run = async () => {
    const body = {
      message_id: entry.message.id,
      idempotency_key: crypto.randomUUID(),
      expected_epoch: now?.epoch ?? null,
      expected_generation: now?.generation ?? null,
      expected_max_sequence: now?.max_sequence ?? null,
    }
    const { rewind } = await api('POST /api/workspaces/{workspace_id}/sessions/{session_id}/rewind', { path: at, body })
    const files = rewind.changed_files ?? []
    announce(files.length === 0 ? words.done : words.kept(files.join(', ')))
    done(rewind.draft_text)
  }
  return (
    <Confirm title={words.title} confirm={words.confirm} tone="danger" run={run} close={close}>
      <blockquote class="quoted">{promptText(entry)}</blockquote>
      <p class="muted">{words.what}</p>
      <Problem error={error} />
    </Confirm>
  )
}
