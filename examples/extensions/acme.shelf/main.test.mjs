import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startDaemon, startExtension } from 'svc/testing'

const folder = import.meta.dirname
const base = '/api/ext/acme.shelf/books'

let shelf
before(async () => {
  shelf = await startExtension(folder)
})
after(() => shelf.close())

test('a book is added, changed at a version, lent once and deleted', async () => {
  const ask = async (...args) => {
    const { status, body } = await shelf.request(...args)
    return [status, body?.code ?? body?.book ?? body]
  }
  const [status, { id, version }] = await ask('POST', base, { title: 'Ulysses' })
  assert.deepEqual([status, version], [201, 1])
  const at = `${base}/${id}`
  assert.deepEqual(await ask('PATCH', at, { title: 'Dubliners', expected_version: 7 }), [409, 'acme_book_changed'])
  assert.equal((await ask('PATCH', at, { title: 'Dubliners', expected_version: 1 }))[1].version, 2)
  assert.equal((await ask('POST', `${at}/lend`, { to: 'Ada' }))[1].lent_to, 'Ada')
  assert.deepEqual(await ask('POST', `${at}/lend`, { to: 'Bob' }), [409, 'acme_book_lent'])
  assert.equal((await shelf.request('GET', base)).body.books.length, 1)
  assert.deepEqual(await ask('DELETE', at, { expected_version: 2 }), [409, 'acme_book_changed'])
  assert.deepEqual(await ask('DELETE', at, { expected_version: 3 }), [204, undefined])
  assert.deepEqual(await ask('GET', at), [404, 'acme_book_not_found'])
})

test('its commands follow from the noun, and a book goes with its workspace', async () => {
  const daemon = await startDaemon({ extensions: [folder] })
  try {
    const { body } = await daemon.request('POST', '/api/workspaces', { root_dir: folder })
    const { id, name } = body.workspace
    const added = await daemon.cli('acme', 'book', 'create', 'Emma', '--workspace', name, '--json')
    assert.equal(JSON.parse(added.stdout).book.workspace_id, id, added.stderr)
    assert.match((await daemon.cli('acme', 'book', 'list')).stdout, /ID +TITLE +LENT TO +CREATED[\s\S]*Emma/)
    assert.equal((await daemon.cli('acme', 'book', 'show', 'nope')).code, 4)
    await daemon.request('DELETE', `/api/workspaces/${id}`)
    for (let tries = 0; (await daemon.request('GET', base)).body.books.length > 0; tries++) {
      assert.ok(tries < 100, 'the book is still there')
      await new Promise(resolve => setTimeout(resolve, 50))
    }
  } finally {
    await daemon.stop()
  }
})
