import { defineErrors, event, type Fault, type Hook, kind, token } from 'svc/plugin'
import * as v from 'valibot'

export const Note = kind({
  name: 'acme.note',
  spec: v.object({
    title: v.pipe(v.string(), v.trim(), v.minLength(1), v.maxLength(200)),
    text: v.optional(v.string(), ''),
  }),
  maxBytes: 64 * 1024,
})
export type NoteSpec = v.InferOutput<typeof Note.spec>

/** What other plugins see of the notes. */
export interface NotesApi {
  /** Ids of the notes in whose title or text a word occurs, ascending. */
  search(word: string): string[]
  /** Changes the text of a note on its way out; taps run in plan order. */
  readonly rendering: Hook<(text: string, id: string) => string | undefined | Promise<string | undefined>>
  /** May a note be published? A tap that returns a fault refuses. */
  readonly publishing: Hook<(id: string) => Promise<Fault | undefined>>
}

export const Notes = token<NotesApi>('acme.notes@1')

export const NotePublished = event('acme.note.published', v.object({ id: v.string(), times: v.number() }))

export const NoteErrors = defineErrors({
  note_not_found: { status: 404, message: 'no such note', next: 'svc resource list acme.note' },
})
