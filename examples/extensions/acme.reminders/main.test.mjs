import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startDaemon, startExtension } from 'svc/testing'

const MINUTE = 60_000
const set = (at, text, in_ms) => at.request('POST', '/api/ext/acme.reminders/reminders', { text, in_ms })
const RANG = '/api/ext/acme.reminders/rang'

let extension
before(async () => {
  extension = await startExtension(import.meta.dirname)
})
after(() => extension.close())

test('reminders ring in the order of their times, whatever they were set in', async () => {
  const replies = await Promise.all([set(extension, 'tea', 5 * MINUTE), set(extension, 'call', MINUTE)])
  assert.deepEqual(
    replies.map(({ status }) => status),
    [201, 201],
  )
  const stream = await extension.stream(RANG)
  await extension.time.pass(10 * MINUTE)
  assert.equal((await stream.next('rang')).data.text, 'call')
  assert.equal((await stream.next('rang')).data.text, 'tea')
  stream.close()
})

test('a reader goes on behind what it has', async () => {
  for (const text of ['one', 'two']) await set(extension, text, 0)
  await extension.time.pass(1)
  const all = await extension.stream(RANG)
  for (const text of ['call', 'tea', 'one']) assert.equal((await all.next()).data.text, text)
  const rest = await all.resume()
  assert.equal((await rest.next()).data.text, 'two')
  rest.close()
})

test('a reminder that was set before a crash rings after the restart, once', async t => {
  const daemon = await startDaemon({ extensions: [import.meta.dirname] })
  t.after(() => daemon.stop())
  assert.equal((await set(daemon, 'survive', 300)).status, 201)
  await daemon.kill('SIGKILL')
  await daemon.restart()
  const stream = await daemon.stream(RANG)
  assert.equal((await stream.next('rang')).data.text, 'survive')
  await set(daemon, 'next', 0)
  assert.equal((await stream.next('rang')).data.text, 'next')
})
