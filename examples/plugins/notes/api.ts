import { command } from 'svc/kit'
import { defineErrors, event, gate, hookTable, kind, pipeline, type TapsOf, token } from 'svc/plugin'
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

/** The hooks of notes. */
export const points = hookTable({
  rendering: pipeline<string, [id: string]>('rendering', 'A note is on its way out. A tap may change the text.'),
  publishing: gate<[id: string]>('publishing', 'Before a note is published. A fault refuses it.'),
})

/** What other plugins see of the notes. */
export interface NotesApi extends TapsOf<typeof points> {
  /** Ids of the notes in whose title or text a word occurs, ascending. */
  search(word: string): string[]
}

export const Notes = token<NotesApi>('acme.notes@1')

export const NotePublished = event('acme.note.published', v.object({ id: v.string(), times: v.number() }))

export const NoteErrors = defineErrors({
  note_not_found: { status: 404, message: 'no such note', next: command('resource list', 'acme.note') },
})
