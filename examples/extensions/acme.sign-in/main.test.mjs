import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startExtension } from 'svc/testing'

let extension
before(async () => {
  extension = await startExtension(import.meta.dirname)
})
after(() => extension.close())

test('a sign-in is finished once, by whoever began it', async () => {
  const { state } = (await extension.request('POST', '/api/ext/acme.sign-in/begun')).body
  const finish = () => extension.request('GET', `/api/ext/acme.sign-in/callback?state=${state}&code=c1`)
  const done = await finish()
  assert.equal(done.status, 200)
  assert.match(done.body, /You are signed in with c1/)
  const again = await finish()
  assert.deepEqual([again.status, /<p>this sign-in was not started here/.test(again.body)], [400, true])
})
