import { createHmac } from 'node:crypto'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { SecretResolvers } from '../../../../kernel/kit/secret-ref.js'
import { definePlugin, surfaceOf } from '../../../../kernel/plugin.js'
import type { Reply } from '../../../harness/kernel.js'
import { type Answer, ask } from '../../../kernel/http/doors.js'
import { type Bench, type BenchOptions, bench } from './bench.js'
import { completed } from './fake-sessions.js'

const SECRET = 'a secret of this test'
type Headers = Readonly<Record<string, string>>

interface World extends Bench {
  hook(body?: Record<string, unknown>): Promise<Reply>
  post(path: string, body: string, headers: Headers): Promise<Answer>
  runsOf(id: string): Promise<Reply[]>
}

async function open(options: BenchOptions = {}): Promise<World> {
  const b = await bench({
    ...{ config: { http: { port: 0 } }, listen: ['tcp'], env: { CI_SECRET: SECRET }, answer: () => completed },
    ...options,
  })
  const tcp = b.kernel.host.listeners().find(({ door }) => door === 'tcp')
  const where = { host: '127.0.0.1', port: tcp?.door === 'tcp' ? tcp.port : 0 }
  return {
    ...b,
    post: (path, body, headers) => ask(where, path, { method: 'POST', body, headers }),
    hook: async (body = {}) => {
      const reply = await b.request('POST', '/api/automation/triggers', {
        ...{ name: 'hook', agent_name: 'report', event: 'webhook', scope: 'workspace', workspace_id: b.workspace },
        ...{ prompt: 'Delivery.', endpoint_slug: 'ci-done', webhook_secret_ref: 'env:CI_SECRET' },
        ...body,
      })
      assert.is(reply.status, 201, JSON.stringify(reply.body))
      return reply.body.trigger
    },
    runsOf: async id => (await b.request('GET', `/api/automation/triggers/${id}/runs`)).body.runs,
  }
}

const hex = (...parts: readonly string[]) => createHmac('sha256', SECRET).update(parts.join('')).digest('hex')
const own = (body: string, at: number) => ({
  'x-service-webhook-timestamp': String(Math.floor(at / 1000)),
  'x-service-webhook-signature': `sha256=${hex(`${Math.floor(at / 1000)}.`, body)}`,
})
const coded = ({ status, body }: Answer) => [status, body.code]

test('an upper-case hex signature is the same signature, and is accepted once', async () => {
  const b = await open()
  const { webhook_endpoint: path } = await b.hook()
  const github = await b.hook({ name: 'github', endpoint_slug: 'hub', webhook_scheme: 'github' })
  const upper = (headers: Headers, name: string) => ({
    ...headers,
    [name]: `sha256=${headers[name]?.slice('sha256='.length).toUpperCase()}`,
  })
  const mine = own('{}', b.clock.now())
  assert.is((await b.post(path, '{}', upper(mine, 'x-service-webhook-signature'))).status, 200)
  assert.equal(coded(await b.post(path, '{}', mine)), [409, 'webhook_replayed'])
  const theirs = { 'x-hub-signature-256': `sha256=${hex('{}')}` }
  assert.is((await b.post(github.webhook_endpoint, '{}', theirs)).status, 200)
  const again = await b.post(github.webhook_endpoint, '{}', upper(theirs, 'x-hub-signature-256'))
  assert.equal(coded(again), [409, 'webhook_replayed'])
  await b.end()
})

test('a timestamp without a time zone is refused as ambiguous', async () => {
  const b = await open()
  const { webhook_endpoint: path } = await b.hook()
  const now = b.clock.now()
  const text = new Date(now).toISOString()
  for (const wrong of [text.slice(0, -1), text.slice(0, 16), `${text.slice(0, 10)}T24:00:00Z+1`, '-5', '1.5', '1e9'])
    assert.equal(
      coded(await b.post(path, '{}', { ...own('{}', now), 'x-service-webhook-timestamp': wrong })),
      [400, 'webhook_headers_invalid'],
      wrong,
    )
  const local = `${new Date(now + 2 * 3_600_000).toISOString().slice(0, -1)}+02:00`
  const right = await b.post(path, '{}', { ...own('{}', now), 'x-service-webhook-timestamp': local })
  assert.is(right.status, 200, right.text)
  await b.end()
})

test('a whsec_ secret that is not base64 accepts nothing: its key would be empty', async () => {
  const b = await open({ env: { CI_SECRET: 'whsec_!!!!' } })
  const { webhook_endpoint: path } = await b.hook({ webhook_scheme: 'standard' })
  const seconds = String(Math.floor(b.clock.now() / 1000))
  const empty = createHmac('sha256', '').update(`msg_1.${seconds}.{}`).digest('base64')
  const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': seconds, 'webhook-signature': `v1,${empty}` }
  assert.equal(coded(await b.post(path, '{}', headers)), [400, 'webhook_secret_missing'])
  await b.end()
})

test('a forgotten delivery is still a replay after a backward clock jump', async () => {
  const b = await open()
  const { webhook_endpoint: path, id } = await b.hook()
  const at = b.clock.now()
  const first = own('{}', at)
  assert.is((await b.post(path, '{}', first)).status, 200)
  b.clock.jump(3_600_000)
  assert.is((await b.post(path, '{"n":2}', own('{"n":2}', at + 3_600_000))).status, 200)
  b.clock.jump(-3_540_000)
  assert.equal(coded(await b.post(path, '{}', first)), [409, 'webhook_replayed'])
  assert.is((await b.runsOf(id)).length, 2)
  await b.end()
})

/** A vault whose secrets are handed out when the test says so. */
function slowVault() {
  let [asked, answer] = [() => {}, () => {}]
  const waits = new Promise<void>(resolve => (asked = resolve))
  const may = new Promise<void>(resolve => (answer = resolve))
  const resolve = async () => {
    asked()
    await may
    return SECRET
  }
  const resolver = { scheme: 'vault', resolve }
  const plugin = definePlugin({ name: 'test.slow-vault', version: '1.0.0' }).surface({
    registries: [surfaceOf().contribute(SecretResolvers, () => [resolver])],
  })
  return { plugin, waits, answer: () => answer() }
}

for (const [what, change, expected] of [
  ['deleted', (b: World, url: string) => b.request('DELETE', url), [404, 0]],
  ['disabled', (b: World, url: string) => b.request('PATCH', url, { enabled: false }), [404, 0]],
  ['given another prompt', (b: World, url: string) => b.request('PATCH', url, { prompt: 'Changed.' }), [200, 1]],
] as const)
  test(`a trigger that is ${what} during a delivery applies in its new state`, async () => {
    const vault = slowVault()
    const b = await open({ plugins: [vault.plugin] })
    const { webhook_endpoint: path, id } = await b.hook({ webhook_secret_ref: 'vault:automation/ci' })
    const reply = b.post(path, '{}', own('{}', b.clock.now()))
    await vault.waits
    assert.ok((await change(b, `/api/automation/triggers/${id}`)).status < 300)
    vault.answer()
    const { status } = await reply
    const { runs } = (await b.request('GET', '/api/automation/runs')).body
    assert.equal([status, runs.length], expected)
    if (runs.length > 0) {
      await b.until(async () => b.sessions.prompts.length > 0, 'it ran')
      assert.is(b.sessions.prompts[0]?.text, 'Changed.')
    }
    await b.end()
  })

test.run()
