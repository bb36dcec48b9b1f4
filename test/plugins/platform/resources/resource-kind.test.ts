import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { describe } from '../../../../kernel/kit/annotations/index.js'
import { definePlugin, Fault, type PluginKernel } from '../../../../kernel/plugin.js'
import daemon from '../../../../plugins/desk/daemon/index.js'
import { resourceKind } from '../../../../plugins/platform/resources/api.js'
import resources from '../../../../plugins/platform/resources/index.js'
import { boot } from '../../../harness/kernel.js'

const Note = resourceKind({
  name: 'acme.note',
  spec: v.object({ title: v.pipe(v.string(), v.trim(), v.minLength(1)) }),
  maxBytes: 1024,
  onDemand: true,
})
const path = '/api/ext/acme.notes/notes'

/** A plugin without a service: its routes are those of its kind. */
async function scene() {
  let own: PluginKernel | undefined
  const notes = definePlugin({ name: 'acme.notes', version: '1.0.0' }).surface({
    kinds: [Note.kind],
    routes: [
      ...Note.routes({ path, area: 'Notes', command: 'note', noun: ['note', 'notes'] }),
      {
        method: 'GET',
        path: '/api/ext/acme.notes/self',
        with: [describe('Notes')],
        summary: 'Hands the test the kernel',
        replies: { 204: null },
        handle: (self: PluginKernel) => {
          own = self
          return { status: 204, body: undefined }
        },
      },
    ],
  })
  const s = await boot({ plugins: [daemon, resources, notes] })
  await s.request('GET', '/api/ext/acme.notes/self')
  if (!own) throw new Error('no kernel')
  const put = (id: string, title: string, more: object = {}) =>
    s.request('PUT', `${path}/${id}`, { spec: { title }, ...more })
  return { ...s, own, put }
}

test('a kind with its routes is a plugin without a service', async () => {
  const { put, request, close } = await scene()
  const { status, body } = await put('n1', ' Milk ')
  assert.equal([status, body.record.spec, body.record.scope], [201, { title: 'Milk' }, { kind: 'global' }])
  assert.equal((await request('GET', `${path}/n1`)).body, body)
  assert.is((await put('n1', 'Rye')).status, 409, 'nothing is overwritten unseen')
  assert.is((await put('n1', 'Rye', { expected_version: 1 })).body.record.version, 2)
  assert.is((await put('n2', '')).body.code, 'invalid_spec')
  assert.is((await put('n2', 'x', { colour: 'red' })).status, 400)
  assert.is((await request('DELETE', `${path}/n1?expected_version=1`)).status, 409)
  assert.is((await request('DELETE', `${path}/n1?expected_version=2`)).status, 204)
  const gone = await request('GET', `${path}/n1`)
  assert.equal([gone.status, gone.body.code], [404, 'record_not_found'])
  assert.match(JSON.stringify(gone.body), /svc note list/)
  assert.is((await request('DELETE', `${path}/n1`)).status, 404)
  await close()
})

test('the list of a kind is paged and accepts only its own cursors', async () => {
  const { put, request, close } = await scene()
  for (const id of ['c', 'a', 'e', 'b', 'd']) await put(id, id)
  const seen: string[] = []
  let cursor = ''
  do {
    const { body } = await request('GET', `${path}?limit=2${cursor && `&cursor=${cursor}`}`)
    seen.push(...body.records.map((record: { id: string }) => record.id))
    cursor = body.page.next_cursor ?? ''
  } while (cursor)
  assert.equal(seen, ['a', 'b', 'c', 'd', 'e'])
  const wrong = await request('GET', `${path}?cursor=nonsense`)
  assert.equal([wrong.status, wrong.body.code], [400, 'invalid_cursor'])
  assert.is((await request('GET', `${path}?limit=0`)).status, 400)
  await close()
})

test('a repository reads and writes the decoded records of its kind', async () => {
  const { own, close } = await scene()
  const notes = Note.repository(own)
  const scope = { kind: 'global' } as const
  const { record, created } = await notes.put(own.actor, { id: 'n1', scope, spec: { title: ' Milk ' } })
  assert.equal([created, record.spec.title], [true, 'Milk'])
  assert.is(notes.get('n1').spec.title, 'Milk')
  assert.equal(
    notes.list().map(({ id }) => id),
    ['n1'],
  )
  assert.is(notes.find('n2'), undefined)
  const code = async (run: () => unknown) => {
    try {
      await run()
    } catch (error) {
      return error instanceof Fault ? error.code : String(error)
    }
    return 'done'
  }
  assert.is(await code(() => notes.get('n2')), 'record_not_found')
  assert.is(await code(() => notes.delete(own.actor, 'n1', { mayGo: () => false })), 'record_not_found')
  assert.is(await code(() => notes.delete(own.actor, 'n1', { expectedVersion: 7 })), 'version_conflict')
  assert.is(await code(() => notes.delete(own.actor, 'n1')), 'done')
  assert.is(notes.find('n1'), undefined)
  await close()
})

test.run()
