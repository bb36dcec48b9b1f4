import { cli, describe } from 'svc/kit'
import { definePlugin, ok, routeOf, surfaceOf } from 'svc/plugin'
import { Events } from 'svc/plugins/events'
import * as v from 'valibot'
import { Note, NoteErrors, NotePublished, Notes } from './api.js'
import type { NotesService } from './service.js'
import { Signature } from './settings.js'

const route = routeOf<NotesService>(describe('Notes'))
const { reconciler } = surfaceOf<NotesService>()

export default definePlugin({
  name: 'acme.notes',
  version: '1.0.0',
  requires: { events: Events },
  provides: Notes,
  service: () => import('./service.js').then(module => module.NotesService),
}).surface({
  kinds: [Note],
  events: [NotePublished],
  errors: [NoteErrors],
  settings: [Signature],
  tables: [
    { id: '001', sql: 'CREATE TABLE acme_notes_published (id TEXT PRIMARY KEY, times INTEGER NOT NULL) STRICT' },
  ],
  reconcilers: [reconciler({ kind: Note, run: (service, batch) => service.project(batch) })],
  services: [{ name: 'sweep', run: (service, signal) => service.sweep(signal) }],
  routes: [
    route({
      method: 'GET',
      path: '/api/ext/acme.notes/search',
      summary: 'Find notes that contain a word',
      query: v.object({ word: v.pipe(v.string(), v.minLength(1)) }),
      replies: { 200: v.object({ notes: v.array(v.string()) }) },
      with: [cli('note search', { args: [{ name: 'word', in: 'query' }] })],
      handle: (service, { query }) => ok({ notes: service.search(query.word) }),
    }),
    route({
      method: 'POST',
      path: '/api/ext/acme.notes/{id}/publish',
      summary: 'Publish a note',
      replies: { 200: v.object({ text: v.string(), times: v.number() }) },
      with: [cli('note publish', { view: { text: 'text' } })],
      handle: async (service, { params, actor }) => ok(await service.publish(params.id, actor)),
    }),
  ],
})
