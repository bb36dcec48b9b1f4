import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { api } from '../../core/api.js'
import { useResource } from '../../core/resource.js'
import { text } from '../../text.js'
import { Action, Problem } from '../../ui/parts.js'
import { AttachmentBar, useAttachments } from './attachments.js'
import type { Place } from './use-transcript.js'

const words = text.sessions
const MODES = ['queue', 'steer', 'interrupt'] as const
type Mode = (typeof MODES)[number]

/** The browser stores a draft until it is sent. */
const draftKey = (session: string) => `svc.draft.${session}`

export interface Offered {
  readonly text: string
}

/** The prompt field. During a turn, a prompt waits in the queue, joins the turn, or interrupts it. */
export function Prompt({
  at,
  isBusy,
  sent,
  offered,
}: {
  readonly at: Place
  readonly isBusy: boolean
  readonly sent: () => void
  /** A text that replaces the draft: the prompt of a rewind. */
  readonly offered: Offered | undefined
}) {
  const id = useId()
  const key = draftKey(at.session_id)
  const [draft, setDraft] = useState(() => localStorage.getItem(key) ?? '')
  const [mode, setMode] = useState<Mode>('queue')
  const [error, setError] = useState<unknown>()
  const attachments = useAttachments(at)
  const [isOver, setOver] = useState(false)
  const isSending = useRef(false)
  const queue = useResource(
    signal => api('GET /api/workspaces/{workspace_id}/sessions/{session_id}/prompt/queue', { path: at }, signal),
    [at.session_id, isBusy],
    /^(?:session|prompt)\./,
  )
  const change = (value: string) => {
    setDraft(value)
    if (value === '') localStorage.removeItem(key)
    else localStorage.setItem(key, value)
  }
  useEffect(() => {
    if (offered) change(offered.text)
  }, [offered])
  const send = async () => {
    if (isSending.current || attachments.isUploading) return
    const ids = attachments.files.flatMap(({ id: one }) => one ?? [])
    if (draft.trim() === '' && ids.length === 0) return
    isSending.current = true
    setError(undefined)
    try {
      // With this key, the daemon handles a resent prompt only once.
      const body = {
        text: draft,
        idempotency_key: crypto.randomUUID(),
        ...(isBusy && { mode }),
        ...(ids.length > 0 && { attachments: ids }),
      }
      await api('POST /api/workspaces/{workspace_id}/sessions/{session_id}/prompt', { path: at, body })
      change('')
      attachments.clear()
      sent()
      queue.reload()
    } catch (problem) {
      setError(problem)
    } finally {
      isSending.current = false
    }
  }
  const keyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
    event.preventDefault()
    void send()
  }
  const waiting = queue.data?.inputs.filter(({ status }) => !['delivered', 'canceled'].includes(status)) ?? []
  return (
    <form
      class={isOver ? 'prompt drop' : 'prompt'}
      onDragOver={event => {
        if (!event.dataTransfer?.types.includes('Files')) return
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={() => setOver(false)}
      onDrop={event => {
        setOver(false)
        if (!event.dataTransfer?.types.includes('Files')) return
        event.preventDefault()
        attachments.add(event.dataTransfer.files)
      }}
      onSubmit={event => {
        event.preventDefault()
        void send()
      }}
    >
      <Problem error={error} />
      {waiting.length > 0 && (
        <ul class="rows queue" aria-label={words.queuedCount(waiting.length)}>
          {waiting.map(input => (
            <li key={input.id}>
              <span class="badge plain">{words.queued}</span>
              <span class="clip">{input.text}</span>
            </li>
          ))}
        </ul>
      )}
      <label class="unseen" htmlFor={id}>
        {words.message}
      </label>
      <textarea
        id={id}
        rows={3}
        placeholder={words.placeholder}
        aria-describedby={`${id}-keys`}
        value={draft}
        onInput={event => change(event.currentTarget.value)}
        onKeyDown={keyDown}
      />
      <AttachmentBar attachments={attachments} />
      <div class="prompt-foot">
        <span id={`${id}-keys`} class="muted">
          {words.keys}
        </span>
        {isBusy && (
          <>
            <label class="inline">
              <span class="unseen">{words.mode}</span>
              <select value={mode} onChange={event => setMode(event.currentTarget.value as Mode)}>
                {MODES.map(one => (
                  <option key={one} value={one}>
                    {words[one]}
                  </option>
                ))}
              </select>
            </label>
            <Action
              label={words.stopTurn}
              run={() => api('POST /api/workspaces/{workspace_id}/sessions/{session_id}/prompt/cancel', { path: at })}
            />
          </>
        )}
        <button type="submit" class="primary">
          {isBusy ? words[mode] : words.send}
        </button>
      </div>
    </form>
  )
}
