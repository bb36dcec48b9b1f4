import type { Actor, Batch, PluginKernel } from 'svc/plugin'
import type { Events } from 'svc/plugins/events'
import { Note, NoteErrors, NotePublished, type NoteSpec, type NotesApi, points } from './api.js'
import { Signature } from './settings.js'

/** Finds and publishes notes. Everything that it holds hangs on `kernel.scope` and goes with the plugin. */
export class NotesService implements NotesApi {
  readonly #words = new Map<string, ReadonlySet<string>>()
  readonly rendering
  readonly publishing

  constructor(private readonly kernel: PluginKernel<{ events: typeof Events }>) {
    const { rendering, publishing } = kernel.hooks.of(points)
    this.rendering = rendering
    this.publishing = publishing
  }

  /** Updates the index. A batch has the current records of changed keys, never their history. */
  project(batch: Batch<NoteSpec>): void {
    for (const { id, spec } of batch.records) {
      if (spec.text.includes('\u0000')) batch.fail(id, new Error('a note is text'))
      else this.#words.set(id, wordsOf(`${spec.title} ${spec.text}`))
    }
    for (const id of batch.removed) this.#words.delete(id)
  }

  search(word: string): string[] {
    return [...this.#words].flatMap(([id, words]) => (words.has(word.toLowerCase()) ? [id] : [])).sort()
  }

  /** Counts the publication and tells of it, in one transaction; resolves when both are on the disk. */
  async publish(id: string, actor: Actor): Promise<{ text: string; times: number }> {
    const note = this.kernel.records.get(Note, id)
    if (!note) throw NoteErrors.note_not_found(`there is no note ${id}`)
    const refusal = await this.publishing.ask(id)
    if (refusal) throw refusal
    const text = await this.rendering.run(
      `${note.spec.title}\n${note.spec.text}${this.kernel.config.get(Signature)}`,
      id,
    )
    const times = await this.kernel.db.tx(t => {
      const row = t.get<{ times: number }>(
        `INSERT INTO acme_notes_published (id, times) VALUES (?, 1)
         ON CONFLICT (id) DO UPDATE SET times = times + 1 RETURNING times`,
        [id],
      )
      const count = row?.times ?? 0
      this.kernel.needs.events.emit(t, NotePublished, { id, times: count }, { actor, subject: id })
      return count
    })
    return { text, times }
  }

  /** Forgets, once an hour, how often notes were published that are gone. Started again with backoff when it throws. */
  async sweep(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.kernel.clock.sleep(3_600_000, signal)
      await this.kernel.db.tx(t => {
        for (const { id } of t.all<{ id: string }>('SELECT id FROM acme_notes_published'))
          if (!this.kernel.records.get(Note, id)) t.run('DELETE FROM acme_notes_published WHERE id = ?', [id])
      })
    }
  }
}

function wordsOf(text: string): ReadonlySet<string> {
  return new Set(text.toLowerCase().match(/\p{L}+/gu))
}
