import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { createKernel, type Kernel } from 'svc'
import { daemon, resources } from 'svc/plugins'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import notes from '../../examples/plugins/notes/index.js'
import shout from '../../examples/plugins/shout/index.js'
import { withBase } from '../harness/kernel.js'

/** A kernel on a home of its own, nothing listening; `request` acts as the operator on the Unix socket does. */
async function withNotes(use: (request: Request, kernel: Kernel) => Promise<void>, config = '{}'): Promise<void> {
  const home = await mkdtemp(path.join(os.tmpdir(), 'notes-'))
  await writeFile(path.join(home, 'config.json'), config)
  const kernel = await createKernel({ home, plugins: withBase([daemon, resources, notes, shout]), checkReplies: true })
  try {
    await use(async (method, url, body) => {
      const reply = await kernel.inject({ method, url, body })
      return { status: reply.status, body: JSON.parse(reply.body) }
    }, kernel)
  } finally {
    assert.equal(await kernel.close(), [])
    await rm(home, { recursive: true })
  }
}
// biome-ignore lint/suspicious/noExplicitAny: replies of any shape
type Request = (method: string, url: string, body?: unknown) => Promise<{ status: number; body: any }>

/** The notes that have a word, once they are these: a write is answered before its record is projected. */
async function finds(request: Request, word: string, wanted: readonly string[]): Promise<void> {
  for (let tries = 0; ; tries++) {
    const { body } = await request('GET', `/api/ext/acme.notes/search?word=${word}`)
    if (tries === 500 || JSON.stringify(body.notes) === JSON.stringify(wanted)) return assert.equal(body.notes, wanted)
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}

const put = (request: Request, id: string, spec: object) =>
  request('PUT', `/api/resources/acme.note/${id}`, { scope: { kind: 'global' }, spec, expected_version: 0 })

test('a note is found by its words after it is written', () =>
  withNotes(async request => {
    assert.is((await put(request, 'n1', { title: 'Milk and bread' })).status, 201)
    await put(request, 'n2', { title: 'Rye', text: 'The bread of the north' })
    await finds(request, 'bread', ['n1', 'n2'])
  }))

test('publishing counts, passes through the taps of other plugins, and can be refused by them', () =>
  withNotes(async request => {
    await put(request, 'n1', { title: 'Milk', text: 'and honey' })
    await put(request, 'n2', { title: 'secret', text: 'recipe' })
    await request('POST', '/api/ext/acme.notes/n1/publish')
    const { body } = await request('POST', '/api/ext/acme.notes/n1/publish')
    assert.equal(body, { text: 'MILK\nAND HONEY -- ME', times: 2 })
    const refused = await request('POST', '/api/ext/acme.notes/n2/publish')
    assert.equal([refused.status, refused.body.code], [403, 'note_secret'])
  }, '{ "plugins": { "acme.notes": { "signature": " -- me" } } }'))

test('a bad note is quarantined by name and affects no other', () =>
  withNotes(async request => {
    await put(request, 'bad', { title: 'Bad', text: 'a\u0000b' })
    await put(request, 'good', { title: 'Good' })
    await finds(request, 'good', ['good'])
    const { body } = await request('GET', '/api/doctor')
    assert.ok(body.items.some((item: { message: string }) => item.message.includes('acme.note')))
  }))

test('the resources of a plugin are released with it', () =>
  withNotes(async (request, kernel) => {
    await kernel.host.unload('acme.notes')
    assert.is((await request('GET', '/api/ext/acme.notes/search?word=x')).status, 404)
    const waiting = kernel.host.plugins().find(plugin => plugin.name === 'acme.shout')
    assert.equal(waiting?.state, { status: 'waiting', missing: ['acme.shout', 'acme.notes@1'] })
    await kernel.host.load(notes)
    assert.is((await request('GET', '/api/ext/acme.notes/search?word=x')).status, 200)
  }))

test.run()
