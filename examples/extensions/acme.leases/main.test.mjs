import assert from 'node:assert/strict'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { startDaemon, startExtension } from 'svc/testing'

const folder = import.meta.dirname
const base = '/api/ext/acme.leases'
const SECRET = 'a-key-that-nobody-should-see'
const env = { ACME_LEASES_KEY: SECRET }
const config = { plugins: { acme: { leases: { default_lease_seconds: 30 } } } }
const claim = (at, key, holder, seconds) => at.request('POST', `${base}/leases`, { key, holder, seconds })
const beat = (at, token, text) => at.request('PUT', `${base}/checkpoint`, { token, text })
const seen = ({ status, body }) => [status, body.code]

let leases
before(async () => {
  leases = await startExtension(folder, { env, config })
})
after(() => leases.close())

test('a lease lasts as long as the setting says, and what was saved behind it stays for the next holder', async () => {
  const first = await claim(leases, 'report', 'ada')
  assert.deepEqual([first.status, first.body.checkpoint], [201, null])
  assert.deepEqual(seen(await claim(leases, 'report', 'bob')), [409, 'lease_held'])
  assert.equal((await beat(leases, first.body.token, 'page 7')).status, 200)
  await leases.time.pass(31_000)
  const second = await claim(leases, 'report', 'bob')
  assert.deepEqual([second.body.checkpoint, second.body.fence > first.body.fence], ['page 7', true])
  // The lease of Ada has expired: her late heartbeat is refused, and its checkpoint is not stored.
  assert.deepEqual(seen(await beat(leases, first.body.token, 'page 8')), [409, 'lease_lost'])
  await leases.request('POST', `${base}/releases`, { token: second.body.token })
  assert.equal((await claim(leases, 'report', 'eve', 1)).body.checkpoint, 'page 7')
})

test('a heartbeat keeps a lease; a token that was changed, or signed by somebody else, is none', async () => {
  const { token } = (await claim(leases, 'beating', 'ada')).body
  for (let i = 0; i < 3; i++) {
    await leases.time.pass(20_000)
    assert.equal((await beat(leases, token, `${i}`)).status, 200)
  }
  const forged = token.replace(/\.(\d+)\./, (_, fence) => `.${Number(fence) + 1}.`)
  for (const wrong of [forged, `${token}x`, 'nothing'])
    assert.deepEqual(seen(await beat(leases, wrong, '')), [403, 'acme_lease_token_invalid'])
})

test('the list comes in pages, and a cursor is good for its own list alone', async () => {
  for (const key of ['p1', 'p2', 'p3']) await claim(leases, key, 'pager', 600)
  const page = query => leases.request('GET', `${base}/leases?holder=pager&limit=2${query}`)
  const { leases: two, has_more, next_cursor } = (await page('')).body
  assert.deepEqual([two.map(({ key }) => key), has_more], [['p1', 'p2'], true])
  assert.deepEqual((await page(`&cursor=${next_cursor}`)).body.leases[0].key, 'p3')
  const other = await leases.request('GET', `${base}/leases?cursor=${next_cursor}`)
  assert.deepEqual(seen(other), [400, 'invalid_cursor'])
})

test('a reader of the stream goes on behind what it has, and hears at its time that a lease expired', async () => {
  const stream = await leases.stream(`${base}/changes`)
  assert.equal((await stream.next()).event, 'snapshot')
  await claim(leases, 'one', 'streamer', 5)
  assert.equal((await stream.next('changed')).data.what, 'claimed')
  await leases.time.pass(5_000)
  assert.deepEqual((await leases.request('GET', `${base}/leases?holder=streamer`)).body.leases, [])
  const again = await stream.resume()
  assert.deepEqual((await again.next()).data, { what: 'expired', key: 'one', holder: 'streamer' })
  again.close()
  const future = await leases.stream(`${base}/changes`, { lastEventId: '999999999' })
  assert.equal((await future.next()).event, 'snapshot')
})

test('another extension refuses a claim through the guard, inside the transaction', async t => {
  const quota = await startExtension(path.join(folder, 'acme.quota'), { with: [folder], env })
  t.after(() => quota.close())
  const all = await Promise.all(['a', 'b', 'c'].map(key => claim(quota, key, 'ada')))
  assert.deepEqual(all.map(({ status }) => status).sort(), [201, 201, 409])
  assert.deepEqual(seen(await claim(quota, 'd', 'ada')), [409, 'acme_quota_reached'])
})

test('without its key it gives no lease, and doctor says what to set', async t => {
  const path = 'plugins.acme.leases.signing_key'
  const setKey = value => leases.time.during(leases.configuration.write([{ path, value }]))
  t.after(() => setKey('env:ACME_LEASES_KEY'))
  await setKey('env:NO_KEY')
  assert.deepEqual(seen(await claim(leases, 'x', 'ada')), [422, 'secret_missing'])
  const { items } = (await leases.request('GET', '/api/doctor?only=acme.leases.key')).body
  assert.match(items[0].message, /the daemon has no variable NO_KEY/)
})

test('commands claim, list and release a lease; the signing key appears in no output and no log', async t => {
  const daemon = await startDaemon({ extensions: [folder], env })
  t.after(() => daemon.stop())
  const claimed = await daemon.cli('acme', 'leases', 'claim', 'nightly', 'ada', '--seconds', '600')
  assert.equal(claimed.code, 0, claimed.stderr)
  const token = claimed.stdout
  const commands = [['acme', 'leases', 'list'], ['doctor'], ['plugin', 'show', 'acme.leases']]
  const shown = await Promise.all(commands.map(command => daemon.cli(...command)))
  assert.match(shown[0].stdout, /nightly +ada/)
  assert.ok(![token, daemon.output, ...shown.map(({ stdout }) => stdout)].join('').includes(SECRET))
  assert.equal((await daemon.cli('acme', 'leases', 'release', token.trim())).code, 0)
})
