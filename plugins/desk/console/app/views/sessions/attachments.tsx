import { useRef, useState } from 'preact/hooks'
import { announce } from '../../core/announce.js'
import { api, faultOf, faultText, ownHeaders, urlOf } from '../../core/api.js'
import { bytes } from '../../core/format.js'
import { text } from '../../text.js'
import type { Place } from './use-transcript.js'

const words = text.attachments

/** The daemon's limit. It would refuse a larger file only after the upload. */
const MAX_BYTES = 20 * 1024 * 1024

export interface Attached {
  /** The key in this list; the id exists only after the upload. */
  readonly key: string
  readonly name: string
  readonly size: number
  readonly id?: string
  readonly error?: string
}

async function upload(at: Place, file: File): Promise<string> {
  const form = new FormData()
  form.append('file', file, file.name)
  const url = urlOf('/api/workspaces/{workspace_id}/sessions/{session_id}/attachments', { ...at }, {})
  // Without a content type: the browser sets that of a form, with its boundary.
  const reply = await fetch(url, { method: 'POST', headers: ownHeaders(), credentials: 'same-origin', body: form })
  if (!reply.ok) throw await faultOf(reply)
  const { attachment } = (await reply.json()) as { attachment: { id: string } }
  return attachment.id
}

export interface Attachments {
  readonly files: readonly Attached[]
  readonly isUploading: boolean
  add(files: Iterable<File>): void
  remove(file: Attached): void
  /** Empties the list after its prompt was sent. */
  clear(): void
}

/** The files of the next prompt. The daemon receives them at once, and the prompt contains only their ids. */
export function useAttachments(at: Place): Attachments {
  const [files, set] = useState<readonly Attached[]>([])
  const patch = (key: string, change: Partial<Attached>) =>
    set(before => before.map(one => (one.key === key ? { ...one, ...change } : one)))
  return {
    files,
    isUploading: files.some(({ id, error }) => id === undefined && error === undefined),
    add(added) {
      for (const file of added) {
        const key = crypto.randomUUID()
        const isLarge = file.size > MAX_BYTES
        const error = isLarge ? words.tooLarge(bytes(MAX_BYTES)) : undefined
        set(before => [...before, { key, name: file.name, size: file.size, ...(error && { error }) }])
        announce(error ?? words.added(file.name))
        if (isLarge) continue
        upload(at, file).then(
          id => patch(key, { id }),
          problem => patch(key, { error: faultText(problem) }),
        )
      }
    },
    remove({ key, id }) {
      set(before => before.filter(one => one.key !== key))
      if (id === undefined) return
      const path = { ...at, attachment_id: id }
      const route = 'DELETE /api/workspaces/{workspace_id}/sessions/{session_id}/attachments/{attachment_id}'
      // If the deletion fails, the file is deleted with its session.
      void api(route, { path }).catch(() => {})
    },
    clear: () => set([]),
  }
}

/** The files of the next prompt, and a button that adds files. */
export function AttachmentBar({ attachments }: { readonly attachments: Attachments }) {
  const input = useRef<HTMLInputElement>(null)
  const { files } = attachments
  return (
    <div class="attachments">
      {files.length > 0 && (
        <ul aria-label={words.title}>
          {files.map(file => (
            <li key={file.key} class={file.error ? 'attachment failure' : 'attachment'}>
              <span class="clip">{file.name}</span>
              <span class="muted">
                {file.error ?? `${bytes(file.size)}${file.id === undefined ? ` · ${words.sending}` : ''}`}
              </span>
              <button
                type="button"
                class="quiet"
                aria-label={words.remove(file.name)}
                onClick={() => attachments.remove(file)}
              >
                {words.removeShort}
              </button>
            </li>
          ))}
        </ul>
      )}
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label={words.choose}
        onChange={event => {
          attachments.add(event.currentTarget.files ?? [])
          event.currentTarget.value = ''
        }}
      />
      <button type="button" onClick={() => input.current?.click()}>
        {words.choose}
      </button>
      <span class="muted">{words.limit(bytes(MAX_BYTES))}</span>
    </div>
  )
}
