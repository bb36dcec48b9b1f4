import { createHmac } from 'node:crypto'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { runTestTrigger } from '../../../../plugins/work/automation/commands.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import type { Reply } from '../../../harness/kernel.js'
import { type Answer, ask } from '../../../kernel/http/doors.js'
import { type Bench, bench } from './bench.js'
import { completed } from './fake-sessions.js'

interface World extends Bench {
  hook(scheme: string, more?: Record<string, unknown>): Promise<Reply>
  runsOf(id: string): Promise<Reply[]>
  post(to: Reply, body: string, headers: Readonly<Record<string, string>>): Promise<Answer>
}

async function open(secret: string, at = Date.UTC(2030, 0, 1)): Promise<World> {
  const b = await bench({
    config: { http: { port: 0 } },
    listen: ['tcp'],
    env: { HOOK_SECRET: secret },
    answer: () => completed,
    clock: new VirtualClock(at),
  })
  const tcp = b.kernel.host.listeners().find(({ door }) => door === 'tcp')
  const where = { host: '127.0.0.1', port: tcp?.door === 'tcp' ? tcp.port : 0 }
  return {
    ...b,
    hook: async (scheme, more = {}) => {
      const reply = await b.request('POST', '/api/automation/triggers', {
        ...{ name: `${scheme}-${b.kernel.host.listeners().length}`, agent_name: 'report', event: 'webhook' },
        ...{ scope: 'workspace', workspace_id: b.workspace, prompt: 'Delivery.', endpoint_slug: 'it' },
        ...{ webhook_scheme: scheme, webhook_secret_ref: 'env:HOOK_SECRET', ...more },
      })
      assert.is(reply.status, 201, JSON.stringify(reply.body))
      return reply.body.trigger
    },
    runsOf: async id => (await b.request('GET', `/api/automation/triggers/${id}/runs`)).body.runs,
    post: (to, body, headers) =>
      ask(where, to.webhook_endpoint, {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/json', ...headers },
      }),
  }
}

const hex = (secret: string, text: string) => createHmac('sha256', secret).update(text).digest('hex')
const coded = ({ status, body }: Answer) => [status, body.code ?? body.result.matched]

const slackBody =
  'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c'
const standardVector = {
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  body: '{"test": 2432232314}',
  at: 1614265330,
  id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
}
const familyOf = (prefix: string) => ({
  [`${prefix}-id`]: standardVector.id,
  [`${prefix}-timestamp`]: String(standardVector.at),
  [`${prefix}-signature`]: standardVector.signature,
})

/** Published by the senders, or made by their official libraries; `prompt` is what the first delivery starts an agent with. */
const vectors = [
  // The vector of the Standard Webhooks specification and of Svix, under both families of headers.
  { scheme: 'standard', ...standardVector, headers: familyOf('webhook') },
  { scheme: 'standard', ...standardVector, headers: familyOf('svix') },
  // As some senders show the secret: with the version in front.
  { scheme: 'standard', ...standardVector, secret: `v1,${standardVector.secret}`, headers: familyOf('svix') },
  // A GitLab signing token.
  { scheme: 'gitlab', ...standardVector, headers: { ...familyOf('webhook'), 'x-gitlab-event': 'Push Hook' } },
  // "Validating webhook deliveries" in the documentation of GitHub.
  {
    scheme: 'github',
    secret: "It's a Secret to Everybody",
    body: 'Hello, World!',
    at: 1614265330,
    headers: {
      'x-hub-signature-256': 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
      'x-github-event': 'push',
    },
  },
  // "Verifying requests from Slack": a form.
  {
    scheme: 'slack',
    secret: '8f742231b10e8888abcd99yyyzzz85a5',
    body: slackBody,
    at: 1531420618,
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      'x-slack-request-timestamp': '1531420618',
      'x-slack-signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
    },
  },
  // `webhooks.generateTestHeaderString` of stripe 23.1.0. The secret is the key with its prefix.
  {
    scheme: 'stripe',
    secret: 'whsec_test_secret',
    body: '{"id":"evt_test_webhook","object":"event"}',
    at: 1614265330,
    headers: {
      'stripe-signature': 't=1614265330,v1=3c5817089d739023dd6190f70a3757e04f7a2fd8b5dab12c2e000f51970dccff,v0=00',
    },
  },
  // What `LinearWebhookClient.verify` of @linear/sdk 98.0.0 accepts.
  {
    scheme: 'linear',
    secret: 'linear_secret',
    body: '{"action":"create","type":"Issue","webhookTimestamp":1614265330000}',
    at: 1614265330,
    headers: {
      'linear-signature': 'c6b1c4afead1aa514e20ed12d3de7b5cb6534e2666a7d92e1ccae545e94db348',
      'linear-event': 'Issue',
    },
  },
  // The code of the documentation of Sentry, run on this body.
  {
    scheme: 'sentry',
    secret: 'sentry_client_secret',
    body: '{"action":"created","data":{"issue":{"id":"1"}}}',
    at: 1614265330,
    headers: {
      'sentry-hook-signature': '00f4a44fdf2f34114fa47357fdd747c1333d7a7e2beb046a38866b1a76afcb1e',
      'sentry-hook-resource': 'issue',
    },
  },
] as const

for (const { scheme, secret, body, at, headers } of vectors) {
  test(`a delivery signed as ${scheme} documents it is accepted once: ${Object.keys(headers).at(-1)}`, async () => {
    const b = await open(secret, at * 1000)
    const hook = await b.hook(scheme)
    assert.equal(coded(await b.post(hook, `${body} `, headers)), [401, 'webhook_signature_invalid'])
    assert.equal(coded(await b.post(hook, body, {})), [400, 'webhook_headers_invalid'])
    assert.equal(coded(await b.post(hook, body, headers)), [200, 1])
    assert.equal(coded(await b.post(hook, body, headers)), [409, 'webhook_replayed'])
    await b.end()
  })
  test(`a delivery of ${scheme} under another secret is refused: ${Object.keys(headers).at(-1)}`, async () => {
    const b = await open('whsec_b3RoZXIgc2VjcmV0IG9mIHRoaXMgdGVzdA==', at * 1000)
    assert.equal(coded(await b.post(await b.hook(scheme), body, headers)), [401, 'webhook_signature_invalid'])
    await b.end()
  })
}

for (const { scheme, secret, body, at, headers } of vectors) {
  if (scheme === 'github' || scheme === 'sentry') continue
  const tolerance = scheme === 'linear' ? 60 : 300
  for (const [late, expected] of [
    [tolerance - 1, [200, 1]],
    [tolerance + 1, [401, 'webhook_stale']],
    [-tolerance - 1, [401, 'webhook_stale']],
  ] as const)
    test(`a delivery of ${scheme} that is ${late} s late gives ${expected}: ${Object.keys(headers).at(-1)}`, async () => {
      const b = await open(secret, (at + late) * 1000)
      assert.equal(coded(await b.post(await b.hook(scheme), body, headers)), expected)
      await b.end()
    })
}

test('a GitLab token is accepted without a signature, and a present signature counts', async () => {
  const b = await open('a token of this test')
  const hook = await b.hook('gitlab', { prompt: '{{ .Data.gitlab_event }} {{ .Data.ref }}' })
  const headers = { 'x-gitlab-token': 'a token of this test', 'x-gitlab-event': 'Push Hook' }
  assert.equal(coded(await b.post(hook, '{"ref":"main"}', { ...headers, 'x-gitlab-token': 'other' })), [
    401,
    'webhook_signature_invalid',
  ])
  assert.equal(
    coded(await b.post(hook, '{"ref":"main"}', { ...headers, 'webhook-signature': 'v1,AAAA', 'webhook-id': 'a' })),
    [400, 'webhook_headers_invalid'],
  )
  assert.equal(coded(await b.post(hook, '{"ref":"main"}', headers)), [200, 1])
  await b.until(async () => b.sessions.prompts[0], 'the agent is prompted')
  assert.is(b.sessions.prompts[0]?.text, 'Push Hook main')
  assert.equal(coded(await b.post(hook, '{"ref":"main"}', { ...headers, 'idempotency-key': 'b' })), [
    409,
    'webhook_replayed',
  ])
  await b.end()
})

const SECRET = 'a secret of this test'
const github = (body: string, id: string, more: Readonly<Record<string, string>> = {}) => ({
  'x-hub-signature-256': `sha256=${hex(SECRET, body)}`,
  'x-github-event': 'repository_dispatch',
  'x-github-delivery': id,
  ...more,
})

test('a body-only signature is accepted under a new delivery id only with --allow-repeat', async () => {
  const b = await open(SECRET)
  const strict = await b.hook('github')
  assert.equal(coded(await b.post(strict, '{"a":1}', github('{"a":1}', 'd1'))), [200, 1])
  assert.equal(coded(await b.post(strict, '{"a":1}', github('{"a":1}', 'd2'))), [409, 'webhook_replayed'])
  const loose = await b.hook('github', { name: 'loose', endpoint_slug: 'loose', webhook_allow_repeat: true })
  assert.is(loose.webhook_allow_repeat, true)
  assert.equal(coded(await b.post(loose, '{"a":1}', github('{"a":1}', 'd1'))), [200, 1])
  assert.equal(coded(await b.post(loose, '{"a":1}', github('{"a":1}', 'd1'))), [409, 'webhook_replayed'])
  assert.equal(coded(await b.post(loose, '{"a":1}', github('{"a":1}', 'd2'))), [200, 1])
  const { 'x-github-delivery': _, ...nameless } = github('{"a":2}', '')
  assert.equal(coded(await b.post(loose, '{"a":2}', nameless)), [400, 'webhook_headers_invalid'])
  const patched = await b.request('PATCH', `/api/automation/triggers/${strict.id}`, { webhook_allow_repeat: true })
  assert.is(patched.body.trigger.webhook_allow_repeat, true)
  assert.equal(coded(await b.post(strict, '{"a":1}', github('{"a":1}', 'd3'))), [200, 1])
  const wrong = await b.request('PATCH', `/api/automation/triggers/${strict.id}`, { webhook_scheme: 'stripe' })
  assert.is(wrong.status, 400)
  assert.match(wrong.body.error, 'webhook_allow_repeat: not for scheme stripe')
  await b.end()
})

test('an unmatched delivery can be sent again after the filter is fixed', async () => {
  const b = await open(SECRET)
  const hook = await b.hook('github', { filter: { 'data.ref': 'refs/heads/mian' } })
  const body = '{"ref":"refs/heads/main"}'
  assert.equal(coded(await b.post(hook, body, github(body, 'd1'))), [200, 0])
  await b.request('PATCH', `/api/automation/triggers/${hook.id}`, { filter: { 'data.ref': 'refs/heads/main' } })
  assert.equal(coded(await b.post(hook, body, github(body, 'd1'))), [200, 1])
  assert.equal(coded(await b.post(hook, body, github(body, 'd1'))), [409, 'webhook_replayed'])
  await b.end()
})

test('a GitHub ping starts no agent unless the filter asks for it', async () => {
  const b = await open(SECRET)
  const body = '{"zen":"Keep it logically awesome.","hook_id":7}'
  const ping = github(body, 'd1', { 'x-github-event': 'ping' })
  assert.equal(coded(await b.post(await b.hook('github'), body, ping)), [200, 0])
  const pings = { name: 'pings', endpoint_slug: 'pings', filter: { 'data.github_event': 'ping' } }
  assert.equal(coded(await b.post(await b.hook('github', pings), body, ping)), [200, 1])
  await b.end()
})

test('the fields of a form are data, and a field payload with an object is spread', async () => {
  const b = await open(SECRET)
  const hook = await b.hook('github', {
    filter: { 'data.action': 'opened', 'data.issue.number': '7' },
    prompt: '{{ .Data.action }} {{ .Data.issue.title }} {{ .Data.other }}',
  })
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  const object = { action: 'opened', issue: { number: 7, title: 'Häßlich & gut' } }
  const body = `${new URLSearchParams({ payload: JSON.stringify(object), other: 'a b', __proto__x: '1' })}`
  assert.equal(coded(await b.post(hook, body, github(body, 'd1', form))), [200, 1])
  await b.until(async () => b.sessions.prompts[0], 'the agent is prompted')
  assert.is(b.sessions.prompts[0]?.text, 'opened Häßlich & gut a b')
  const plain = await b.hook('service', {
    name: 'plain',
    endpoint_slug: 'plain',
    filter: { 'data.command': '/deploy' },
  })
  const fields = 'command=%2Fdeploy&text=now+please&__proto__=x'
  const at = Math.floor(b.clock.now() / 1000)
  const own = {
    'x-service-webhook-timestamp': String(at),
    'x-service-webhook-signature': `sha256=${hex(SECRET, `${at}.${fields}`)}`,
  }
  assert.equal(coded(await b.post(plain, fields, { ...own, ...form })), [200, 1])
  await b.end()
})

test('Slack gets its challenge back, and a delivery repeated with another timestamp fires nothing', async () => {
  const b = await open(SECRET)
  const hook = await b.hook('slack')
  const signed = (body: string, seconds: number) => ({
    'x-slack-request-timestamp': String(seconds),
    'x-slack-signature': `v0=${hex(SECRET, `v0:${seconds}:${body}`)}`,
  })
  const now = Math.floor(b.clock.now() / 1000)
  const challenge = '{"type":"url_verification","challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"}'
  const reply = await b.post(hook, challenge, signed(challenge, now))
  assert.is(reply.body.challenge, '3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P')
  assert.equal(coded(reply), [200, 0])
  assert.equal(coded(await b.post(hook, challenge, { ...signed(challenge, now), 'x-slack-signature': 'v0=00' })), [
    401,
    'webhook_signature_invalid',
  ])
  const event = '{"type":"event_callback","event_id":"Ev08MFMKH6","event":{"type":"app_mention"}}'
  assert.equal(coded(await b.post(hook, event, signed(event, now))), [200, 1])
  assert.equal(coded(await b.post(hook, event, signed(event, now + 60))), [409, 'webhook_replayed'])
  await b.end()
})

test('a signed test delivery of every scheme is accepted once and does not contain its secret', async () => {
  const b = await open('whsec_YSBzZWNyZXQgb2YgdGhpcyB0ZXN0IA==')
  for (const scheme of ['service', 'standard', 'github', 'gitlab', 'stripe', 'slack', 'linear', 'sentry']) {
    const hook = await b.hook(scheme, { name: `test-${scheme}`, endpoint_slug: scheme })
    const reply = await b.request('POST', `/api/automation/triggers/${hook.id}/test`, {})
    assert.is(reply.status, 200, JSON.stringify(reply.body))
    assert.not.match(JSON.stringify(reply.body), 'YSBzZWNyZXQ')
    const { path, headers, body, expires_at: expires } = reply.body.delivery
    assert.is(path, hook.webhook_endpoint)
    assert.is(expires === null, ['github', 'sentry'].includes(scheme), scheme)
    assert.equal(await b.runsOf(hook.id), [], 'nothing was delivered')
    assert.equal(coded(await b.post(hook, body, headers)), [200, 1], scheme)
    assert.equal(coded(await b.post(hook, body, headers)), [409, 'webhook_replayed'], scheme)
  }
  const other = await b.request('POST', '/api/automation/triggers', {
    ...{ name: 'other', agent_name: 'report', event: 'session.stopped', scope: 'global', prompt: 'Look.' },
  })
  const refused = await b.request('POST', `/api/automation/triggers/${other.body.trigger.id}/test`, {})
  assert.equal([refused.status, refused.body.code], [400, 'trigger_not_webhook'])
  await b.end()
})

test('a Stripe delivery without an event id is a replay whatever signatures accompany the valid one', async () => {
  const b = await open(SECRET)
  const hook = await b.hook('stripe')
  const at = Math.floor(b.clock.now() / 1000)
  const valid = `v1=${hex(SECRET, `${at}.{}`)}`
  const signed = (signatures: string) => ({ 'stripe-signature': `t=${at},${signatures}` })
  assert.equal(coded(await b.post(hook, '{}', signed(valid))), [200, 1])
  for (const signatures of [`v1=00,${valid}`, `${valid},v1=00`, `v1=01,v1=02,${valid}`])
    assert.equal(coded(await b.post(hook, '{}', signed(signatures))), [409, 'webhook_replayed'], signatures)
  await b.end()
})

test('a Linear test delivery with a user body contains the present time or is refused', async () => {
  const b = await open(SECRET)
  const hook = await b.hook('linear', { prompt: '{{ .Data.action }}' })
  const test = (body: string) => b.request('POST', `/api/automation/triggers/${hook.id}/test`, { body })
  for (const given of ['{"action":"create"}', '{"webhookTimestamp":1,"action":"update"}']) {
    const { body, headers } = (await test(given)).body.delivery
    assert.equal(coded(await b.post(hook, body, headers)), [200, 1], given)
  }
  const refused = await test('not JSON')
  assert.equal([refused.status, refused.body.code], [400, 'webhook_headers_invalid'])
  assert.match(refused.body.error, /webhookTimestamp/)
  await b.end()
})

test('a refusal names its header, member and tolerance', async () => {
  const b = await open(SECRET)
  const at = Math.floor(b.clock.now() / 1000)
  const long = 'x'.repeat(300)
  const body = JSON.stringify({ id: long })
  const linear = JSON.stringify({ webhookTimestamp: (at - 100) * 1000 })
  for (const [scheme, text, headers, refusal] of [
    ['github', '{}', { 'x-hub-signature-256': long }, /X-Hub-Signature-256/],
    ['github', '{}', { 'x-hub-signature-256': long }, /256 characters/],
    ['stripe', body, { 'stripe-signature': `t=${at},v1=${hex(SECRET, `${at}.${body}`)}` }, /\bid\b.*256 characters/],
    ['linear', linear, { 'linear-signature': hex(SECRET, linear) }, /more than 1 minute$/],
    [
      'slack',
      '{}',
      { 'x-slack-request-timestamp': '1', 'x-slack-signature': `v0=${hex(SECRET, 'v0:1:{}')}` },
      /5 minutes$/,
    ],
  ] as const) {
    const name = `${scheme}-${refusal.source.replace(/\W/g, '')}`.toLowerCase()
    const reply = await b.post(await b.hook(scheme, { name, endpoint_slug: name }), text, headers)
    assert.match(reply.body.error, refusal, reply.text)
  }
  await b.end()
})

test('the curl command of a test delivery sends a body with a leading @ unchanged and reads no file', async () => {
  const b = await open(SECRET)
  const hook = await b.hook('github')
  const lines: string[] = []
  await runTestTrigger({
    args: { id: hook.id },
    options: { body: '@/etc/hostname' },
    client: {
      request: async (method: string, url: string, body?: unknown) => (await b.request(method, url, body)).body,
    },
    out: { json: false, line: (text: string) => lines.push(text), color: (_: string, text: string) => text },
  } as never)
  const text = lines.join('\n')
  assert.match(text, /--data-raw '?@\/etc\/hostname'? /)
  assert.not.match(text, SECRET)
  await b.end()
})

test.run()
