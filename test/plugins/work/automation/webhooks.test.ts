import { createHmac, type Hmac } from 'node:crypto'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Prepared } from '../../../../kernel/store/statements.js'
import vault from '../../../../plugins/access/vault/index.js'
import { testCases } from '../../../fixtures/cases.js'
import type { Reply } from '../../../harness/kernel.js'
import { type Answer, ask } from '../../../kernel/http/doors.js'
import { type Bench, type BenchOptions, bench } from './bench.js'
import { completed } from './fake-sessions.js'

const SECRET = 'a secret of this test'
const DAY = 24 * 3_600_000

interface World extends Bench {
  /** Creates a webhook of the bench's workspace; `env:CI_SECRET` unless the body says otherwise. */
  hook(body?: Record<string, unknown>): Promise<Reply>
  post(path: string, body: string | Buffer, headers: Readonly<Record<string, string>>): Promise<Answer>
  /** Signs by the daemon's own scheme. */
  send(path: string, body: string, more?: Readonly<Record<string, string>>, at?: number): Promise<Answer>
  runsOf(id: string): Promise<Reply[]>
}

async function open(options: BenchOptions = {}): Promise<World> {
  const b = await bench({
    config: { http: { port: 0 } },
    listen: ['tcp'],
    env: { CI_SECRET: SECRET },
    answer: () => completed,
    ...options,
    plugins: [vault],
  })
  const tcp = b.kernel.host.listeners().find(({ door }) => door === 'tcp')
  const where = { host: '127.0.0.1', port: tcp?.door === 'tcp' ? tcp.port : 0 }
  const post: World['post'] = (path, body, headers) =>
    ask(where, path, { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } })
  return {
    ...b,
    post,
    hook: async (body = {}) => {
      const reply = await b.request('POST', '/api/automation/triggers', {
        ...{ name: 'hook', agent_name: 'report', event: 'webhook', scope: 'workspace', workspace_id: b.workspace },
        ...{ prompt: 'Delivery.', endpoint_slug: 'ci-done', webhook_secret_ref: 'env:CI_SECRET' },
        ...body,
      })
      assert.is(reply.status, 201, JSON.stringify(reply.body))
      return reply.body.trigger
    },
    send: (path, body, more = {}, at = b.clock.now()) => post(path, body, { ...own(body, at), ...more }),
    runsOf: async id => (await b.request('GET', `/api/automation/triggers/${id}/runs`)).body.runs,
  }
}

const hmac = (secret: string | Buffer, ...parts: readonly (string | Buffer)[]) =>
  parts.reduce((mac: Hmac, part) => mac.update(part), createHmac('sha256', secret))
const own = (body: string | Buffer, at: number, secret = SECRET) => ({
  'x-service-webhook-timestamp': String(Math.floor(at / 1000)),
  'x-service-webhook-signature': `sha256=${hmac(secret, `${Math.floor(at / 1000)}.`, body).digest('hex')}`,
})
const github = (body: string) => ({
  'x-hub-signature-256': `sha256=${hmac(SECRET, body).digest('hex')}`,
  'x-github-event': 'push',
})
const coded = ({ status, body }: Answer) => [status, body.code]

test('a signed delivery starts one session, even when it is replayed after a restart', async () => {
  const first = await open()
  const prompt = '{{ .Data.ref }} {{ .Data.head.id }} {{ index .Data "a key" }} {{ .Data.endpoint_slug }}'
  const hook = await first.hook({ prompt })
  assert.match(hook.webhook_id, /^wbh_[0-9a-f]{32}$/)
  assert.is(hook.webhook_endpoint, `/api/webhooks/workspaces/${first.workspace}/ci-done--${hook.webhook_id}`)
  const body = JSON.stringify({ ref: 'main', head: { id: 7 }, 'a key': [1] })
  const headers = { ...own(body, first.clock.now()), 'x-service-webhook-delivery-id': 'd1' }
  const reply = await first.post(hook.webhook_endpoint, body, headers)
  assert.equal([reply.status, reply.body.result.matched], [200, 1], reply.text)
  assert.is(reply.body.result.runs[0].trigger_id, hook.id)
  await first.until(async () => (await first.runsOf(hook.id))[0]?.ended_at, 'it ran')
  assert.equal(
    first.sessions.prompts.map(({ text }) => text),
    ['main 7 [1] ci-done'],
  )
  assert.equal(coded(await first.post(hook.webhook_endpoint, body, headers)), [409, 'webhook_replayed'])
  // The id of a delivery is not signed: whoever repeats one could make up another.
  const renamed = { ...headers, 'x-service-webhook-delivery-id': 'd2' }
  assert.equal(coded(await first.post(hook.webhook_endpoint, body, renamed)), [409, 'webhook_replayed'])
  const home = await first.snapshot()
  const { clock } = first
  await first.end()
  const second = await open({ home, clock })
  assert.equal(coded(await second.post(hook.webhook_endpoint, body, headers)), [409, 'webhook_replayed'])
  assert.is((await second.runsOf(hook.id)).length, 1)
  await second.end()
})

test('doctor warns of an enabled webhook whose secret does not exist', async () => {
  const b = await open()
  await b.hook()
  const ref = 'vault:automation/absent'
  const { id } = await b.hook({ name: 'absent', webhook_secret_ref: ref })
  const found = async () => {
    const { items } = (await b.request('GET', '/api/doctor?only=automation')).body
    return items.filter(({ code }: { code: string }) => code === 'webhook_secret_missing')
  }
  const items = await found()
  assert.equal(
    items.map((item: Reply) => [item.id, item.severity, item.suggested_command]),
    [[`trigger:${id}:secret`, 'warning', `svc vault put ${ref}`]],
  )
  await b.request('PATCH', `/api/automation/triggers/${id}`, { enabled: false })
  assert.equal(await found(), [])
  await b.end()
})

test('a replayed delivery is refused without a write', async () => {
  const b = await open()
  const hook = await b.hook()
  const headers = own('{}', b.clock.now())
  assert.is((await b.post(hook.webhook_endpoint, '{}', headers)).status, 200)
  await b.until(async () => (await b.runsOf(hook.id))[0]?.ended_at, 'it ran')
  const ran = await statementsOf(async () => {
    assert.equal(coded(await b.post(hook.webhook_endpoint, '{}', headers)), [409, 'webhook_replayed'])
  })
  assert.equal(
    ran.map(sql => sql.split(' WHERE')[0]),
    ['SELECT 1 FROM automation_webhook_delivery'],
  )
  await b.end()
})

test('an accepted delivery and its run take a small number of statements', async () => {
  const b = await open()
  const hook = await b.hook()
  // The first delivery reads what is kept in memory afterwards, and prunes.
  assert.is((await b.send(hook.webhook_endpoint, '1')).status, 200)
  await b.until(async () => (await b.runsOf(hook.id))[0]?.ended_at, 'it ran')
  const changes = (ran: readonly string[]) => ran.filter(sql => sql.startsWith('UPDATE automation_run'))
  const ran = await statementsOf(async found => {
    assert.is((await b.send(hook.webhook_endpoint, '2')).status, 200)
    await b.until(async () => changes(found).length === 2, 'its run has started and ended')
  })
  // The replay key is read and written, the limits are read, and the run is written three times. A run that ended, this one or the
  // one before, also wakes those that wait.
  const own = ran.filter(sql => !sql.startsWith('SELECT min(wait_until)'))
  assert.ok(own.length <= 6, own.join('\n'))
  await b.end()
})

/** The SQL statements on the tables of automation that run during the work. */
async function statementsOf(work: (found: readonly string[]) => Promise<unknown>): Promise<string[]> {
  const { rows } = Prepared.prototype
  const found: string[] = []
  Prepared.prototype.rows = function (...given) {
    if (this.sql.includes('automation_')) found.push(this.sql)
    return rows.apply(this, given)
  }
  await work(found).finally(() => Object.assign(Prepared.prototype, { rows }))
  return found
}

type Headers = Readonly<Record<string, string>>
const SIGNATURE = 'x-service-webhook-signature'
const REFUSED: readonly [
  what: string,
  body: string,
  headers: (right: Headers, now: number) => Headers,
  answer: [number, string],
][] = [
  ['no headers', '{}', () => ({}), [400, 'webhook_headers_invalid']],
  [
    'no timestamp',
    '{}',
    right => ({ ...right, 'x-service-webhook-timestamp': 'now' }),
    [400, 'webhook_headers_invalid'],
  ],
  [
    'a long delivery id',
    '{}',
    right => ({ ...right, 'x-service-webhook-delivery-id': 'x'.repeat(300) }),
    [400, 'webhook_headers_invalid'],
  ],
  ['another body', '{"a":1}', right => right, [401, 'webhook_signature_invalid']],
  ['an empty body', '', right => right, [401, 'webhook_signature_invalid']],
  ['another secret', '{}', (_, now) => own('{}', now, 'another secret'), [401, 'webhook_signature_invalid']],
  [
    'a signature without its prefix',
    '{}',
    right => ({ ...right, [SIGNATURE]: `${right[SIGNATURE]}`.slice(7) }),
    [401, 'webhook_signature_invalid'],
  ],
  ['an old timestamp', '{}', (_, now) => own('{}', now - 301_000), [401, 'webhook_stale']],
  ['a future timestamp', '{}', (_, now) => own('{}', now + 301_000), [401, 'webhook_stale']],
]

testCases({
  open: async () => {
    const b = await open()
    return { b, hook: await b.hook(), now: b.clock.now() }
  },
  close: ({ b }) => b.end(),
  cases: REFUSED,
  name: ([what, , , [status, code]]) => `a delivery is refused: ${what} (${status} ${code})`,
  run: async ({ b, hook, now }, [, body, headers, answer]) =>
    assert.equal(coded(await b.post(hook.webhook_endpoint, body, headers(own('{}', now), now))), answer),
  after: [
    'a refused delivery starts no run, and one within the tolerance or with an ISO timestamp does',
    async ({ b, hook: { webhook_endpoint: path, id }, now }) => {
      assert.is((await b.post(path, 'x'.repeat(1024 * 1024 + 1), own('{}', now))).status, 413)
      assert.equal(await b.runsOf(id), [])
      assert.is((await b.send(path, '{}', {}, now - 299_000)).status, 200)
      const iso = { ...own('{}', now), 'x-service-webhook-timestamp': new Date(now).toISOString() }
      assert.is((await b.post(path, '{}', iso)).status, 200)
    },
  ],
})

test('unknown, disabled and mismatched endpoints return an identical 404', async () => {
  const b = await open()
  const { id, webhook_id: webhookId, webhook_endpoint: path } = await b.hook()
  const off = await b.hook({ name: 'off', enabled: false })
  const texts = new Set<string>()
  for (const wrong of [
    '/api/webhooks/global/nothing--wbh_0',
    '/api/webhooks/global/nothing',
    `/api/webhooks/global/ci-done--${webhookId}`,
    `/api/webhooks/workspaces/${b.workspace}/other--${webhookId}`,
    `/api/webhooks/workspaces/${b.workspace}/${webhookId}`,
    `/api/webhooks/workspaces/ws_other/ci-done--${webhookId}`,
    off.webhook_endpoint,
  ]) {
    const reply = await b.send(wrong, '{}')
    assert.is(reply.status, 404, wrong)
    texts.add(reply.text.replace(/"(?:request_id|id)":"[^"]*"/g, ''))
  }
  assert.is(texts.size, 1, [...texts].join('\n'))
  assert.is((await b.send(path, '{}')).status, 200)
  await b.request('DELETE', `/api/automation/triggers/${id}`)
  assert.is((await b.send(path, '{}')).status, 404)
  await b.end()
})

test('a webhook with scheme standard accepts Standard Webhooks', async () => {
  const b = await open({ env: { CI_SECRET: `whsec_${Buffer.from(SECRET).toString('base64')}` } })
  const { webhook_endpoint: path } = await b.hook({ webhook_scheme: 'standard' })
  const seconds = Math.floor(b.clock.now() / 1000)
  const signature = hmac(Buffer.from(SECRET), `msg_1.${seconds}.{}`).digest('base64')
  const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': String(seconds) }
  const signed = { ...headers, 'webhook-signature': `v1,bm90aGluZw== v1,${signature}` }
  assert.is((await b.post(path, '{}', signed)).status, 200)
  assert.equal(coded(await b.post(path, '{}', signed)), [409, 'webhook_replayed'])
  assert.equal(coded(await b.post(path, '{}', { ...signed, 'webhook-id': 'msg_2' })), [
    401,
    'webhook_signature_invalid',
  ])
  assert.equal(coded(await b.send(path, '{}')), [400, 'webhook_headers_invalid'])
  await b.end()
})

test('a GitHub signature is accepted once within 30 days, and its event can be filtered', async () => {
  const b = await open()
  const more = { webhook_scheme: 'github', filter: { 'data.github_event': 'push' }, prompt: '{{ .Data.github_event }}' }
  const { webhook_endpoint: path, id } = await b.hook(more)
  assert.is((await b.post(path, '{"a":1}', github('{"a":1}'))).body.result.matched, 1)
  assert.is((await b.post(path, '{"a":2}', { ...github('{"a":2}'), 'x-github-event': 'ping' })).body.result.matched, 0)
  const renamed = { ...github('{"a":1}'), 'x-github-delivery': 'another' }
  assert.equal(coded(await b.post(path, '{"a":1}', renamed)), [409, 'webhook_replayed'])
  await b.clock.advance(29 * DAY)
  assert.equal(coded(await b.post(path, '{"a":1}', renamed)), [409, 'webhook_replayed'])
  assert.is((await b.runsOf(id)).length, 1)
  await b.end()
})

test('a body is available as payload, and the members of a JSON object as data', async () => {
  const b = await open()
  const prompt = '[{{ .Data.payload }}] [{{ .Data.a }}] [{{ .Data.endpoint_slug }}]'
  const hook = await b.hook({ name: 'all', prompt, fire_limit: { max: 100, window: '1h' } })
  const path = `/api/webhooks/workspaces/${b.workspace}/ci-done--${hook.webhook_id}`
  const bodies: readonly (readonly [string | Buffer, string, string?])[] = [
    ['build 7 is done', 'build 7 is done', ''],
    ['[1,{"a":2}]', '[1,{"a":2}]', ''],
    ['"a text"', '"a text"', ''],
    ['null', 'null', ''],
    ['', '', ''],
    [Buffer.from([0x61, 0xff, 0xfe, 0x62]), 'a\ufffd\ufffdb', ''],
    ['{"a":7}', '{"a":7}', '7'],
    ['{"a":7,"payload":"mine"}', 'mine', '7'],
  ]
  const filtered = await b.hook({ name: 'filtered', filter: { 'data.payload': 'build 7 is done' } })
  const wanted: string[] = []
  for (const [body, payload, a = ''] of bodies)
    for (const type of ['application/json', 'text/plain; charset=utf-8', 'application/x-www-form-urlencoded']) {
      const reply = await b.post(path, body, { ...own(body, b.clock.now()), 'content-type': type })
      if (reply.status !== 200) await b.end()
      assert.is(reply.status, 200, `${payload} as ${type}: ${reply.text}`)
      wanted.push(`[${payload}] [${a}] [ci-done]`)
      await b.until(async () => b.sessions.prompts.length === wanted.length, 'it ran')
      await b.clock.advance(60_000)
    }
  assert.equal(
    b.sessions.prompts.map(({ text }) => text),
    wanted,
  )
  const of = `/api/webhooks/workspaces/${b.workspace}/ci-done--${filtered.webhook_id}`
  const counts: number[] = []
  for (const body of ['build 7 is done', 'build 8 is done'])
    counts.push((await b.post(of, body, own(body, b.clock.now()))).body.result.matched)
  assert.equal(counts, [1, 0], 'a filter compares the payload as it came')
  await b.end()
})

test('the rate limit applies before the signature is checked, also for unknown endpoints', async () => {
  const b = await open()
  const { webhook_endpoint: path } = await b.hook()
  for (const [where, first] of [
    [path, 401],
    ['/api/webhooks/global/nothing--wbh_0', 404],
  ] as const) {
    const seen = []
    for (let n = 0; n < 61; n++) seen.push((await b.post(where, '{}', own('{}', b.clock.now(), 'wrong'))).status)
    assert.equal(seen, [...Array(60).fill(first), 429], where)
  }
  await b.clock.advance(1000)
  assert.is((await b.send(path, '{}')).status, 200)
  await b.end()
})

test('a delivery refused by a limit may be sent again', async () => {
  const b = await open()
  const { webhook_endpoint: path, id } = await b.hook({ fire_limit: { max: 1, window: '2m' } })
  assert.is((await b.send(path, '{}', { 'x-service-webhook-delivery-id': 'a' })).status, 200)
  const second = { ...own('{"n":2}', b.clock.now()), 'x-service-webhook-delivery-id': 'b' }
  assert.equal(coded(await b.post(path, '{"n":2}', second)), [409, 'fire_limit'])
  await b.clock.advance(121_000)
  assert.is((await b.post(path, '{"n":2}', second)).status, 200)
  assert.is((await b.runsOf(id)).length, 2)
  await b.end()
})

test('a secret passed with a trigger is stored in the vault, never shown, and deleted with the trigger', async () => {
  const b = await open()
  const {
    id,
    webhook_endpoint: path,
    ...hook
  } = await b.hook({
    webhook_secret_ref: undefined,
    webhook_secret_value: SECRET,
  })
  assert.equal([hook.webhook_secret_present, hook.webhook_secret_ref], [true, `vault:automation/triggers/${id}`])
  const shown = async () => (await b.request('GET', `/api/automation/triggers/${id}`)).body
  assert.not.match(JSON.stringify(await shown()), SECRET)
  const { webhook_secret_hash: hash } = (await shown()).trigger
  assert.match(hash, /^sha256:[0-9a-f]{64}$/)
  assert.is((await b.send(path, '{}')).status, 200)
  const short = await b.request('PATCH', `/api/automation/triggers/${id}`, { webhook_secret_value: 'short' })
  assert.equal([short.body.code, short.body.details.next], ['vault_value_short', 'pass a longer webhook_secret_value'])
  const other = await b.request('PATCH', `/api/automation/triggers/${id}`, { agent_name: 'other' })
  assert.is(other.body.trigger.agent_name, 'other', JSON.stringify(other.body))
  await b.request('PATCH', `/api/automation/triggers/${id}`, { agent_name: hook.agent_name })
  await b.request('PATCH', `/api/automation/triggers/${id}`, { webhook_secret_value: 'a new secret value' })
  assert.is.not((await shown()).trigger.webhook_secret_hash, hash)
  const again = own('{"n":2}', b.clock.now())
  assert.equal(coded(await b.post(path, '{"n":2}', again)), [401, 'webhook_signature_invalid'])
  assert.is((await b.post(path, '{"n":2}', own('{"n":2}', b.clock.now(), 'a new secret value'))).status, 200)
  await b.request('DELETE', `/api/automation/triggers/${id}`)
  await b.until(
    async () => (await b.request('GET', '/api/vault/secrets')).body.secrets.length === 0,
    'the secret is gone',
  )
  await b.end()
})

test('a webhook without its secret refuses deliveries, and a webhook_id is unique', async () => {
  const b = await open()
  const { webhook_endpoint: path } = await b.hook({
    webhook_secret_ref: 'env:NOT_THERE',
    webhook_id: 'wbh_4c1ee2b97a0f4d6c9b3e5a8d7f60c2e1',
  })
  assert.equal(coded(await b.send(path, '{}')), [400, 'webhook_secret_missing'])
  const taken = await b.request('POST', '/api/automation/triggers', {
    ...{
      name: 'x',
      agent_name: 'report',
      event: 'webhook',
      scope: 'global',
      prompt: 'x',
      webhook_id: 'wbh_4c1ee2b97a0f4d6c9b3e5a8d7f60c2e1',
    },
    webhook_secret_ref: 'env:CI_SECRET',
  })
  assert.equal([taken.status, taken.body.code], [409, 'webhook_id_taken'])
  await b.end()
})

test('a change of a webhook applies to the next delivery', async () => {
  const b = await open()
  const hook = await b.hook()
  const [at, url] = [hook.webhook_endpoint, `/api/automation/triggers/${hook.id}`]
  let n = 0
  const send = async (path = at) => {
    const answer = await b.send(path, JSON.stringify({ n: ++n, kind: 'push' }))
    return answer.status === 200 ? answer.body.result.matched : answer.status
  }
  const patch = async (body: object) => assert.is((await b.request('PATCH', url, body)).status, 200)
  assert.is(await send(), 1)
  await patch({ filter: { 'data.kind': 'release' } })
  assert.is(await send(), 0)
  await patch({ filter: { 'data.kind': 'push' } })
  assert.is(await send(), 1)
  await patch({ enabled: false })
  assert.is(await send(), 404)
  await patch({ enabled: true })
  assert.is(await send(), 1)
  await patch({ endpoint_slug: 'other' })
  assert.is(await send(), 404)
  assert.is(await send(at.replace('ci-done', 'other')), 1)
  assert.is((await b.request('DELETE', url)).status, 204)
  assert.is(await send(at.replace('ci-done', 'other')), 404)
  await b.end()
})

test.run()
