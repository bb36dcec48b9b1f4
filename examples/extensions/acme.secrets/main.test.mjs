import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startExtension } from 'svc/testing'

let extension
before(async () => {
  extension = await startExtension(import.meta.dirname)
})
after(() => extension.close())

const VALUE = 'correct horse/battery+staple'
const put = (name, value) => extension.request('PUT', `/api/ext/acme.secrets/values/${name}`, { value })
const logIn = async name => (await extension.request('POST', `/api/ext/acme.secrets/logins/${name}`)).body

test('a value that is stored is told by no error, whatever it was encoded as', async () => {
  assert.equal((await put('shop', VALUE)).status, 204)
  const { code, error, details } = await logIn('shop')
  assert.deepEqual([code, error], ['acme_login_refused', 'the server refused [redacted:acme:shop]'])
  assert.match(details.sent, /^Basic \S{5,8}\[redacted:acme:shop\]\S{0,4}$/)
})

test('it is shown again once it was deleted', async () => {
  await put('shop', VALUE)
  await put('shop', 'another value')
  assert.equal((await logIn('shop')).error, 'the server refused [redacted:acme:shop]')
  assert.equal((await extension.request('DELETE', '/api/ext/acme.secrets/values/shop')).status, 204)
  assert.equal((await logIn('shop')).code, 'acme_secret_missing')
})

test('a value that is as short as a word is refused and not stored', async () => {
  const { status, body } = await put('door', '1234')
  assert.deepEqual([status, body.code], [422, 'secret_too_short'])
  assert.equal((await logIn('door')).code, 'acme_secret_missing')
})
