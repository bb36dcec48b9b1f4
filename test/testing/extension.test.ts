import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type ServerEvent, type StartedExtension, startExtension } from '../../testing/index.js'

const example = (name: string) => path.join(import.meta.dirname, '../../examples/extensions', name)
const test = suite<{ reminders: StartedExtension }>('svc/testing: an extension in its own kernel')
test.before(async context => {
  context.reminders = await startExtension(example('acme.reminders'))
})
test.after(({ reminders }) => reminders.close())

const set = ({ request }: StartedExtension, text: string, in_ms: number) =>
  request('POST', '/api/ext/acme.reminders/reminders', { text, in_ms })
const RANG = '/api/ext/acme.reminders/rang'
const MINUTE = 60_000

test('companions run before the extension, and replacing ones in place of the original', async () => {
  const extension = await startExtension(example('acme.keep'), { with: [example('acme.workspaces')] })
  try {
    const { home, request } = extension
    assert.is(extension.name, 'acme.keep')
    assert.is((await extension.info('acme.workspaces')).state, 'active')
    assert.is((await request('GET', '/api/plugins/workspaces')).body.plugin.replaced_by, 'acme.workspaces')
    // The guard of the one refuses in the service of the other.
    const root = path.join(home, 'shop')
    await mkdir(root)
    const { id } = (await request('POST', '/api/workspaces', { root_dir: root, name: 'shop' })).body.workspace
    const keep = { scope: { kind: 'global' }, spec: { workspace: 'shop' }, expected_version: 0 }
    assert.is((await request('PUT', '/api/resources/acme.keep/shop', keep)).status, 201)
    assert.is((await request('DELETE', `/api/workspaces/${id}`)).body.code, 'acme_workspace_kept')
  } finally {
    await extension.close()
  }
})

test('a configuration is a value or a text, and both can name a replacement', async () => {
  const started = await startExtension(example('acme.workspaces'), {
    config: { http: { port: 4711 } },
    env: { ACME_PLACE: 'here' },
  })
  try {
    const { body } = await started.request('GET', '/api/plugins/workspaces')
    assert.is(body.plugin.replaced_by, 'acme.workspaces')
    assert.is(started.inside.env.ACME_PLACE, 'here')
  } finally {
    await started.close()
  }
  const wrong = await startExtension(example('acme.keep'), { config: '{ "http": { "colour": 1 } }' }).catch(
    error => error,
  )
  assert.match(wrong.message, 'colour')
})

test('requests may run concurrently', async ({ reminders }) => {
  const texts = Array.from({ length: 20 }, (_, at) => `at once ${at}`)
  const replies = await Promise.all(texts.map(text => set(reminders, text, 60 * MINUTE)))
  assert.equal(new Set(replies.map(({ status, body }) => `${status} ${body.id > 0}`)), new Set(['201 true']))
  assert.is(new Set(replies.map(({ body }) => body.id)).size, texts.length)
})

test('pass fires each timer at its time, after the writes of the previous one', async ({ reminders }) => {
  for (const [text, minutes] of Object.entries({ third: 30, first: 10, second: 20 }))
    await set(reminders, text, minutes * MINUTE)
  const rang = () =>
    reminders.inside.db.all<{ text: string; rang_at: number }>(
      "SELECT text, rang_at FROM acme_reminders_rang WHERE text NOT LIKE 'at once%' ORDER BY position",
    )
  const begin = reminders.time.clock.now()
  await reminders.time.pass(21 * MINUTE)
  assert.equal(
    rang().map(({ text }) => text),
    ['first', 'second'],
  )
  await reminders.time.pass(10 * MINUTE)
  const [first, second, third] = rang().map(({ rang_at }) => Math.round((rang_at - begin) / MINUTE))
  assert.equal([first, second, third], [10, 20, 30])
  await reminders.time.pass(60 * MINUTE)
})

test('time advances once for several waiting callers', async ({ reminders: { time } }) => {
  const [begin, real] = [time.clock.now(), performance.now()]
  const waits = Array.from({ length: 10 }, () => time.during(new Promise(resolve => setTimeout(resolve, 100))))
  await Promise.all(waits)
  const passed = time.clock.now() - begin
  assert.ok(passed > 0 && passed <= performance.now() - real, `${passed} ms of the clock passed`)
  const after = time.clock.now()
  await new Promise(resolve => setTimeout(resolve, 20))
  assert.is(time.clock.now(), after, 'it stands still when nobody waits')
})

const textOf = ({ data }: ServerEvent) => (data as { text: string }).text

test('a reader takes events one by one, by name and in a loop, and continues at its position', async ({
  reminders,
}) => {
  const newest = reminders.inside.db.get<{ position: number }>(
    'SELECT max(position) AS position FROM acme_reminders_rang',
  )
  const reader = await reminders.stream(RANG, { lastEventId: String(newest?.position) })
  for (const text of ['one', 'two', 'three', 'four']) await set(reminders, text, 0)
  assert.is(textOf(await reader.next()), 'one')
  assert.is(textOf(await reader.next('rang')), 'two')
  // What came and was not handed out is not lost.
  const second = await reader.resume()
  assert.is(second.lastEventId, reader.lastEventId)
  const rest: string[] = []
  for await (const event of second) {
    rest.push(textOf(event))
    if (rest.length === 2) second.close()
  }
  assert.equal(rest, ['three', 'four'])
})

test('a reader without a match reports the received events', async ({ reminders }) => {
  const reader = await reminders.stream(RANG)
  reader.close()
  assert.match((await reader.next('rang').catch(error => error)).message, /rang ended without the event rang/)
  const refused = await reminders.stream('/api/ext/acme.reminders/nothing').catch(error => error)
  assert.match(refused.message, /is answered with 404: .*route_not_found/)
})

test.run()
