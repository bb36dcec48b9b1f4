import { createHmac, generateKeyPairSync, randomUUID, verify } from 'node:crypto'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { openGithub } from '../../../packages/bridge-github/src/bridge.js'
import { manifest } from '../../../packages/bridge-github/src/manifest.js'
import { bodyOf, mentions } from '../../../packages/bridge-github/src/text.js'
import { isHmac, RpcError } from '../../../packages/bridge-kit/src/index.js'
import { freePort } from '../../harness/free-port.js'
import { type Answer, HttpEndpoint, type Received } from '../../harness/http-endpoint.js'
import { managed, ScriptedDaemon } from '../bridge-kit/scripted-daemon.js'

const SECRET = 'a secret of the webhook'
const running = new Set<() => Promise<unknown>>()
test.after.each(async () => {
  for (const stop of running) await stop()
  running.clear()
})

/** Issue comments of `acme/app`, as the API keeps them. */
class FakeGithub {
  readonly comments: { id: number; body: string; user: { login: string }; created: number }[] = []
  endpoint!: HttpEndpoint
  /** Answers in place of the API. */
  instead: (request: Received) => Answer | undefined = () => undefined

  static async start(): Promise<FakeGithub> {
    const fake = new FakeGithub()
    fake.endpoint = await HttpEndpoint.start(request => fake.instead(request) ?? fake.#answer(request))
    running.add(() => fake.endpoint.close())
    return fake
  }

  asked(method: string, path: RegExp): Received[] {
    return this.endpoint.received.filter(one => one.method === method && path.test(one.path))
  }

  make(body: string, login = 'svc-bot') {
    const comment = { id: 100 + this.comments.length, body, user: { login }, created: Date.now() }
    this.comments.push(comment)
    return comment
  }

  #answer({ method, path, body }: Received): Answer {
    const url = new URL(path, 'http://x')
    const one = this.comments.find(({ id }) => url.pathname.endsWith(`/comments/${id}`))
    if (url.pathname === '/user') return { body: { login: 'svc-bot' } }
    if (url.pathname === '/app') return { body: { slug: 'svc-app' } }
    if (url.pathname === '/repos/acme/app/installation') return { body: { id: 7 } }
    if (url.pathname === '/app/installations/7/access_tokens')
      return { status: 201, body: { token: 'ghs_1', expires_at: new Date(Date.now() + 3_600_000).toISOString() } }
    if (method === 'POST' && /^\/repos\/acme\/app\/(issues\/5\/comments|pulls\/6\/comments\/9\/replies)$/.test(path))
      return { status: 201, body: this.make(JSON.parse(body).body) }
    if (method === 'PATCH' && one) {
      one.body = JSON.parse(body).body
      return { body: one }
    }
    if (method === 'DELETE' && one) {
      this.comments.splice(this.comments.indexOf(one), 1)
      return { status: 204 }
    }
    if (method === 'GET' && url.pathname === '/repos/acme/app/issues/5/comments') {
      const since = Date.parse(url.searchParams.get('since') ?? '') || 0
      const [size, page] = ['per_page', 'page'].map(name => Number(url.searchParams.get(name))) as [number, number]
      return { body: this.comments.filter(({ created }) => created >= since).slice(size * (page - 1), size * page) }
    }
    return { status: 404, body: { message: 'Not Found' } }
  }
}

async function start(more: object = {}, secrets: object = { token: 'ghp_1' }, expected = 'ready', fake?: FakeGithub) {
  const github = fake ?? (await FakeGithub.start())
  const port = await freePort()
  const daemon = ScriptedDaemon.inProcess({ ...manifest, open: openGithub })
  running.add(() => daemon.shutdown())
  const config = { listen_addr: `127.0.0.1:${port}`, path: '/hooks/github', api_url: github.endpoint.url, ...more }
  await daemon.initialize([managed('bri_1', config, { webhook_secret: SECRET, ...secrets })])
  await daemon.status(expected as 'ready')
  const send = async (kind: string, payload: unknown, guid: string = randomUUID(), secret = SECRET) => {
    const body = JSON.stringify(payload)
    const response = await fetch(`http://127.0.0.1:${port}/hooks/github`, {
      method: 'POST',
      body,
      headers: {
        'content-type': 'application/json',
        'x-github-event': kind,
        'x-github-delivery': guid,
        'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
      },
    })
    return { status: response.status, body: (await response.json().catch(() => undefined)) as Record<string, unknown> }
  }
  return { daemon, github, send }
}

const ann = { login: 'ann', id: 17, type: 'User' }
const repository = { full_name: 'acme/app' }
const issueComment = (body: string, more: object = {}) => ({
  action: 'created',
  issue: { number: 5, title: 'Slow' },
  comment: { id: 71, body, user: ann, created_at: '2026-11-28T10:00:00Z' },
  repository,
  ...more,
})

/** Attempts of GitHub, `[guid, hours ago, status, event]`, the newest first as it lists them. */
const attempts = (...of: readonly (readonly [string, number, number, string?])[]) =>
  of
    .map(([guid, hours, status_code, event = 'issue_comment'], n) => {
      const delivered_at = new Date(Date.now() - hours * 3_600_000).toISOString()
      return { id: 1000 + n, guid, delivered_at, status_code, event, redelivery: false }
    })
    .sort((a, b) => (a.delivered_at < b.delivered_at ? 1 : -1))

test('failed deliveries of GitHub are requested again: oldest first, of three days, unacknowledged', async () => {
  const deliveries = attempts(
    ['lost-late', 1, 502],
    ['lost', 5, 0],
    ['lost', 4, 503],
    ['redelivered', 3, 500],
    ['redelivered', 2, 200],
    ['fine', 2, 200],
    ['old', 80, 500],
    ['other', 1, 500, 'push'],
    ['just now', 0.001, 500],
    ...Array.from({ length: 5 }, (_, n) => ['hopeless', 10 + n, 500] as const),
  )
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' })
  const answer = (base: string) => (request: Received) => {
    const url = new URL(request.path, 'http://x')
    if (url.pathname === base && request.method === 'GET') {
      const from = Number(url.searchParams.get('cursor') ?? 0)
      const next = `<http://x${base}?per_page=100&cursor=${from + 6}>; rel="next"`
      return {
        body: deliveries.slice(from, from + 6),
        ...(from + 6 < deliveries.length ? { headers: { link: next } } : {}),
      }
    }
    if (url.pathname.startsWith(base) && url.pathname.endsWith('/attempts')) return { status: 202, body: {} }
    const hooks = [
      { id: 3, config: { url: 'https://other.example/x' } },
      { id: 4, config: { url: 'https://bridge.example/hooks' } },
    ]
    return url.pathname === '/repos/acme/app/hooks' ? { body: hooks } : undefined
  }
  const again = async (base: string, secrets: object, more: object = {}) => {
    const github = await FakeGithub.start()
    github.instead = answer(base)
    const { daemon } = await start(more, secrets, 'ready', github)
    const wanted = deliveries.filter(({ id }) => [1000, 1002].includes(id)).length
    const posted = () => github.asked('POST', /\/attempts$/)
    const until = performance.now() + 15_000
    while (posted().length < wanted && performance.now() < until) await new Promise(resolve => setTimeout(resolve, 10))
    const checks = await daemon.verify('bri_1')
    assert.is(checks.find(({ check }) => check === 'github.missed')?.status, 'pass')
    await daemon.shutdown()
    return posted().map(({ path }) => path)
  }
  const app = '/app/hook/deliveries'
  assert.equal(await again(app, { app_id: '12', private_key: pem }), [`${app}/1002/attempts`, `${app}/1000/attempts`])
  const hook = '/repos/acme/app/hooks/4/deliveries'
  const more = { repositories: ['acme/app'], public_url: 'https://bridge.example/hooks' }
  assert.equal(await again(hook, { token: 'ghp_1' }, more), [`${hook}/1002/attempts`, `${hook}/1000/attempts`])
})

test('verify names the next step when credentials cannot read failed deliveries', async () => {
  const missed = async (more: object) => {
    const { daemon, github } = await start(more)
    const until = performance.now() + 15_000
    const look = async () => (await daemon.verify('bri_1')).find(({ check }) => check === 'github.missed')
    while ((await look())?.status !== 'warn' && performance.now() < until)
      await new Promise(resolve => setTimeout(resolve, 20))
    assert.equal(github.asked('POST', /attempts/), [])
    return (await look())?.remediation ?? ''
  }
  assert.match(await missed({}), /Redeliver in the settings.*set provider_config\.repositories and public_url/)
  const known = { repositories: ['acme/app'], public_url: 'https://bridge.example/hooks' }
  assert.match(await missed(known), /Redeliver in the settings.*the token needs read and write access to webhooks/)
})

test('the signature matches the documentation', () => {
  const digest = '757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17'
  assert.ok(isHmac("It's a Secret to Everybody", Buffer.from('Hello, World!'), digest, 'hex'))
  assert.not(isHmac("It's a Secret to Everybody", Buffer.from('Hello, World!'), digest.slice(2), 'hex'))
  assert.not(isHmac("It's a Secret to Everybody", Buffer.from('Hello, World.'), digest, 'hex'))
})

test('a comment that mentions the bot is answered, and the answer grows by edits', async () => {
  const { daemon, github, send } = await start()
  assert.is((await send('issue_comment', issueComment('@svc-bot why is it slow?'), 'guid-1')).status, 200)
  assert.is((await send('issue_comment', issueComment('@svc-bot why is it slow?'), 'guid-1')).status, 200)
  const event = await daemon.heard('why is it slow?')
  assert.is(daemon.events.length, 1)
  assert.equal(event, {
    bridge_instance_id: 'bri_1',
    idempotency_key: 'guid-1',
    family: 'message',
    sender: { id: '17', username: 'ann', display_name: 'ann', authenticated: true },
    peer_id: 'ann',
    group_id: 'acme/app',
    thread_id: '5',
    message_id: '71',
    text: 'why is it slow?',
    addressed: true,
    received_at: Date.parse('2026-11-28T10:00:00Z'),
  })
  const target = { group_id: 'acme/app', thread_id: '5', peer_id: 'ann' }
  const begin = daemon.delivery('bri_1', target, 'Because', { event: 'start' })
  const begun = await daemon.deliver(begin)
  assert.equal(begun, { status: 'delivered', remote_message_id: '100' })
  const end = { ...begin, event: 'final', text: 'Because of @ann, not @eve.', remote_message_id: '100' } as const
  assert.equal(await daemon.deliver(end), { status: 'delivered', remote_message_id: '100' })
  assert.equal(
    github.comments.map(({ body }) => body),
    [`Because of @ann, not @\u200beve.\n\n<!-- svc:${begin.nonce} -->`],
  )
  const [post] = github.asked('POST', /comments/)
  assert.is(post?.headers.authorization, 'Bearer ghp_1')
  assert.equal(await daemon.deliver({ ...end, event: 'delete' }), { status: 'delivered', remote_message_id: '100' })
  assert.is((await daemon.deliver({ ...end, event: 'delete' })).status, 'delivered', 'it is gone already')
  assert.is(github.comments.length, 0)
})

test('issues and review comments are separate conversations; comments of the bot are no events', async () => {
  const { daemon, github, send } = await start({ repositories: ['Acme/App'] })
  await send('issues', {
    action: 'opened',
    issue: { id: 1, number: 5, title: 'Slow', body: 'hi @svc-bot', user: ann },
    repository,
  })
  const issue = await daemon.heard('Slow\n\nhi @svc-bot')
  assert.ok(issue.addressed)
  assert.is(issue.message_id, undefined)
  const comment = { id: 12, in_reply_to_id: 9, body: 'and here?', user: { ...ann, type: 'Bot' } }
  await send('pull_request_review_comment', { action: 'created', comment, pull_request: { number: 6 }, repository })
  const review = await daemon.heard('and here?')
  assert.not(review.addressed)
  assert.ok(review.sender.is_bot)
  assert.is(review.thread_id, '6/9')
  await daemon.say('bri_1', { group_id: 'acme/app', thread_id: '6/9' }, 'here too')
  assert.is(github.asked('POST', /^\/repos\/acme\/app\/pulls\/6\/comments\/9\/replies$/).length, 1)
  await send('issue_comment', issueComment('changed', { action: 'edited' }))
  assert.is((await daemon.heard('changed')).family, 'edit')
  const before = daemon.events.length
  const own = { id: 1, body: '@svc-bot', user: { login: 'SVC-bot', id: 3 } }
  for (const payload of [
    issueComment('x', { action: 'deleted' }),
    issueComment('x', { comment: own }),
    issueComment('x', { repository: { full_name: 'acme/other' } }),
    issueComment('x', { repository: { full_name: 'acme/../x' } }),
    issueComment('x', { comment: { id: '7', body: 'x', user: ann } }),
    issueComment('x', { issue: { number: -1 } }),
    null,
    [],
  ])
    assert.ok('ignored' in (await send('issue_comment', payload)).body)
  assert.ok('ignored' in (await send('push', {})).body)
  assert.is(daemon.events.length, before)
})

test('an event with a wrong signature is refused, and one that the daemon refuses is redelivered', async () => {
  const { daemon, send } = await start()
  assert.is((await send('issue_comment', issueComment('forged'), 'guid-1', 'other')).status, 401)
  assert.is((await send('issue_comment', issueComment('x'), '')).status, 400)
  daemon.ingest = () => {
    throw new RpcError(-32000, 'gone', { code: 'bridge_not_found' })
  }
  assert.is((await send('issue_comment', issueComment('later'), 'guid-2')).status, 503)
  daemon.ingest = ({ idempotency_key }) => ({ idempotency_key, outcome: 'prompted' })
  assert.is((await send('issue_comment', issueComment('later'), 'guid-2')).status, 200)
  assert.equal(
    daemon.events.map(({ text }) => text),
    ['later'],
  )
})

test('a lost answer is found by its marker among hundreds, a missing one is absent after a delay', async () => {
  const { daemon, github } = await start()
  const target = { group_id: 'acme/app', thread_id: '5' }
  github.instead = ({ method, body }) => {
    if (method !== 'POST') return undefined
    for (let i = 0; i < 150; i++) github.make(`other ${i}`, 'ann')
    github.make(JSON.parse(body).body)
    return { cut: true }
  }
  const lost = daemon.delivery('bri_1', target, 'did it arrive')
  const now = Date.now()
  assert.is((await daemon.deliver(lost)).status, 'unknown')
  assert.equal(await daemon.settle(lost, now), { outcome: 'delivered', remote_message_id: '250' })
  // A marker that another person copied is none.
  github.make('<!-- svc:stolen -->', 'eve')
  assert.equal(await daemon.settle({ ...lost, nonce: 'stolen' }, now - 180_000), { outcome: 'absent' })
  assert.equal(await daemon.settle({ ...lost, nonce: 'fresh' }, now - 60_000), { outcome: 'unknown' })
  github.instead = () => ({ status: 500 })
  assert.equal(await daemon.settle(lost, now), { outcome: 'unknown' })
})

test('rate limits are obeyed, and the instance is degraded until an answer is sent', async () => {
  const { daemon, github } = await start()
  let answer: Answer | undefined
  github.instead = () => answer
  const say = async (next: Answer | undefined, more = {}) => {
    answer = next
    return daemon.say('bri_1', { group_id: 'acme/app', thread_id: '5' }, 'x', more)
  }
  const secondary = await say({
    status: 403,
    headers: { 'retry-after': '60' },
    body: { message: 'You have exceeded a secondary rate limit' },
  })
  assert.ok(secondary.status === 'not_sent' && !secondary.permanent && secondary.retry_after_ms === 60_000)
  assert.is((await daemon.status('degraded')).reason, 'rate_limited')
  const reset = String(Math.floor(Date.now() / 1000) + 90)
  const primary = await say({ status: 403, headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': reset } })
  assert.ok(primary.status === 'not_sent' && (primary.retry_after_ms ?? 0) > 60_000)
  const bare = await say({ status: 429 })
  assert.ok(bare.status === 'not_sent' && bare.retry_after_ms === 60_000)
  const before = daemon.reports.length
  assert.is((await say(undefined)).status, 'delivered')
  await daemon.status('ready', before)
  for (const [status, kind] of [
    [403, 'permission_denied'],
    [404, 'unknown_destination'],
    [410, 'unknown_destination'],
    [422, 'unsupported_capability'],
  ] as const) {
    const result = await say({ status, body: { message: 'no' } })
    assert.ok(result.status === 'not_sent' && result.permanent && result.kind === kind, String(status))
  }
  assert.is((await say({ status: 502 })).status, 'unknown')
  const edit = await say({ status: 502 }, { remote_message_id: '100' })
  assert.ok(edit.status === 'not_sent' && !edit.permanent, 'an edit may be made twice')
  const token = await say({ status: 401 })
  assert.ok(token.status === 'not_sent' && token.permanent && token.kind === 'missing_token')
  assert.is((await daemon.status('auth_required')).reason, 'auth_failed')
})

test('an address with a path traversal is refused before it is used', async () => {
  const { daemon, github } = await start()
  const before = github.endpoint.received.length
  for (const target of [
    { group_id: 'acme/app/../../user', thread_id: '5' },
    { group_id: 'acme', thread_id: '5' },
    { group_id: 'acme/..', thread_id: '5' },
    { group_id: 'acme/app', thread_id: '5/comments' },
    { group_id: 'acme/app', thread_id: '5?x' },
    { group_id: 'acme/app' },
    {},
  ]) {
    const result = await daemon.say('bri_1', target, 'x')
    assert.ok(result.status === 'not_sent' && result.kind === 'unknown_destination', JSON.stringify(target))
  }
  const target = { group_id: 'acme/app', thread_id: '5' }
  const edit = await daemon.say('bri_1', target, 'x', { remote_message_id: '1/../../x' })
  assert.ok(edit.status === 'not_sent' && edit.kind === 'unknown_destination')
  assert.is(github.endpoint.received.length, before)
})

test('an app signs in with its key and uses an installation token', async () => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const pem = privateKey.export({ type: 'pkcs1', format: 'pem' }).toString()
  const { daemon, github, send } = await start({}, { app_id: '42', private_key: pem })
  await daemon.say('bri_1', { group_id: 'acme/app', thread_id: '5' }, 'one')
  await daemon.say('bri_1', { group_id: 'acme/app', thread_id: '5' }, 'two')
  const [post] = github.asked('POST', /issues/)
  assert.is(post?.headers.authorization, 'Bearer ghs_1')
  const tokens = github.asked('POST', /access_tokens/)
  assert.is(tokens.length, 1, 'one token serves until it ends')
  const [head, claims, signature] = (tokens[0]?.headers.authorization ?? '').replace('Bearer ', '').split('.')
  assert.ok(
    verify('RSA-SHA256', Buffer.from(`${head}.${claims}`), publicKey, Buffer.from(signature ?? '', 'base64url')),
  )
  const { iss, iat, exp } = JSON.parse(Buffer.from(claims ?? '', 'base64url').toString())
  assert.is(iss, '42')
  assert.ok(exp - iat <= 600)
  await send('issue_comment', issueComment('@svc-app hello'))
  assert.ok((await daemon.heard('hello')).addressed)
  await send(
    'issue_comment',
    issueComment('mine', { comment: { id: 1, body: 'mine', user: { login: 'svc-app[bot]', id: 9 } } }),
  )
  assert.is(daemon.events.length, 1)
})

test('an unreachable GitHub is retried; a refused token needs the operator', async () => {
  const { daemon } = await start({ api_url: 'http://127.0.0.1:1' }, { token: 'ghp_1' }, 'degraded')
  assert.is(daemon.reports.at(-1)?.reason, 'provider_timeout')
  const wrong = await start({}, { private_key: 'x', app_id: '1' }, 'auth_required')
  assert.match(wrong.daemon.reports.at(-1)?.message ?? '', /private_key/)
  const none = await start({}, {}, 'auth_required')
  assert.match(none.daemon.reports.at(-1)?.message ?? '', /token/)
  await start({ api_url: 'http://api.example.org' }, { token: 'x' }, 'error')
})

for (const text of ['@bot hi', 'hi @Bot!', '(@bot)', 'x\n@bot'])
  test(`the bot is mentioned in ${JSON.stringify(text)}`, () => assert.ok(mentions(text, 'bot')))

for (const text of ['`@bot`', '```\n@bot\n```', '> @bot', 'a@bot', '@bots', '@bot/team', '@bot-x', 'bot'])
  test(`the bot is not mentioned in ${JSON.stringify(text)}`, () => assert.not(mentions(text, 'bot')))

test('an answer notifies only the asker', () => {
  const body = (text: string) => bodyOf(text, 'n1', 'ann').replace('\n\n<!-- svc:n1 -->', '')
  assert.is(body('@ann @acme/all @eve'), '@ann @\u200bacme/all @\u200beve')
  assert.is(
    body('`@types/node` and\n```sh\nnpm i @types/node\n```\n@eve'),
    '`@types/node` and\n```sh\nnpm i @types/node\n```\n@\u200beve',
  )
  assert.is(body('```\nnever closed @eve'), '```\nnever closed @eve')
  assert.is(body('<!-- svc:other -->'), '<!-- other -->')
})

test.run()
