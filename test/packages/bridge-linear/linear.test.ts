import { createHmac, randomUUID } from 'node:crypto'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { RpcError } from '../../../packages/bridge-kit/src/index.js'
import { openLinear } from '../../../packages/bridge-linear/src/bridge.js'
import { commentId, isUuid } from '../../../packages/bridge-linear/src/ids.js'
import { manifest } from '../../../packages/bridge-linear/src/manifest.js'
import { freePort } from '../../harness/free-port.js'
import { type Answer, HttpEndpoint, type Received } from '../../harness/http-endpoint.js'
import { managed, ScriptedDaemon } from '../bridge-kit/scripted-daemon.js'

const SECRET = 'lin_wh_secret'
const BOT = randomUUID()
const ANN = randomUUID()
const ISSUE = randomUUID()
const running = new Set<() => Promise<unknown>>()
test.after.each(async () => {
  for (const stop of running) await stop()
  running.clear()
})

const refused = (message: string, code = 'INPUT_ERROR', status = 200): Answer => ({
  status,
  body: { data: null, errors: [{ message, extensions: { code } }] },
})

/** Comments of one issue, as the API keeps them. */
class FakeLinear {
  readonly comments = new Map<string, { body: string; issueId: string; parentId?: string }>()
  endpoint!: HttpEndpoint
  /** Answers in place of the API. */
  instead: (request: Received) => Answer | undefined = () => undefined

  static async start(): Promise<FakeLinear> {
    const fake = new FakeLinear()
    fake.endpoint = await HttpEndpoint.start(request => fake.instead(request) ?? fake.answer(request))
    running.add(() => fake.endpoint.close())
    return fake
  }

  answer({ path, body, headers }: Received): Answer {
    if (path === '/oauth/token') {
      const basic = `Basic ${Buffer.from('client:sesame').toString('base64')}`
      if (headers.authorization !== basic) return { status: 401, body: { error: 'invalid_client' } }
      return { body: { access_token: 'app_token', token_type: 'Bearer', expires_in: 2_591_999 } }
    }
    if (headers.authorization !== 'lin_api_1' && headers.authorization !== 'Bearer app_token')
      return refused('Authentication required', 'AUTHENTICATION_ERROR', 400)
    const { query, variables } = JSON.parse(body)
    const { id = variables.input?.id, input } = variables
    const known = this.comments.get(id)
    if (query.includes('viewer'))
      return { body: { data: { viewer: { id: BOT, name: 'Svc Bot', displayName: 'svc' } } } }
    if (query.includes('commentCreate')) {
      if (known) return refused('Entity with this id already exists')
      if (input.issueId !== ISSUE && input.issueId !== 'ENG-12') return refused('Entity not found: Issue')
      const { id: _, ...comment } = input
      this.comments.set(id, comment)
      return { body: { data: { commentCreate: { success: true, comment: { id } } } } }
    }
    if (!known) return refused('Entity not found: Comment')
    if (query.includes('commentUpdate')) known.body = input.body
    if (query.includes('commentDelete')) this.comments.delete(id)
    return { body: { data: { comment: { id }, commentUpdate: { success: true }, commentDelete: { success: true } } } }
  }
}

async function start(more: object = {}, secrets: object = { api_key: 'lin_api_1' }, expected = 'ready') {
  const linear = await FakeLinear.start()
  const port = await freePort()
  const daemon = ScriptedDaemon.inProcess({ ...manifest, open: openLinear })
  running.add(() => daemon.shutdown())
  const config = { listen_addr: `127.0.0.1:${port}`, path: '/hooks/linear', api_url: linear.endpoint.url, ...more }
  await daemon.initialize([managed('bri_1', config, { webhook_secret: SECRET, ...secrets })])
  await daemon.status(expected as 'ready')
  const send = async (payload: object | null, secret = SECRET) => {
    const body = JSON.stringify(payload)
    const response = await fetch(`http://127.0.0.1:${port}/hooks/linear`, {
      method: 'POST',
      body,
      headers: {
        'content-type': 'application/json; charset=utf-8',
        'linear-delivery': randomUUID(),
        'linear-event': 'Comment',
        'linear-signature': createHmac('sha256', secret).update(body).digest('hex'),
      },
    })
    return { status: response.status, body: (await response.json().catch(() => undefined)) as Record<string, unknown> }
  }
  return { daemon, linear, send }
}

/** A webhook as the documentation shows it. */
const comment = (data: object, more: object = {}) => ({
  action: 'create',
  type: 'Comment',
  actor: { id: ANN, type: 'user', name: 'Ann', email: 'ann@example.test' },
  createdAt: '2026-11-28T10:00:00.000Z',
  data: {
    id: randomUUID(),
    createdAt: '2026-11-28T10:00:00.000Z',
    updatedAt: '2026-11-28T10:00:00.000Z',
    body: 'hello',
    issueId: ISSUE,
    userId: ANN,
    user: { id: ANN, name: 'Ann', email: 'ann@example.test' },
    issue: { id: ISSUE, title: 'Slow' },
    ...data,
  },
  url: 'https://linear.app/acme/issue/ENG-12/slow#comment-1',
  organizationId: randomUUID(),
  webhookTimestamp: Date.now(),
  webhookId: randomUUID(),
  ...more,
})

test('a comment that mentions the bot is answered in its thread, and the answer grows by edits', async () => {
  const { daemon, linear, send } = await start()
  const id = randomUUID()
  const question = comment({ id, body: '@svc why is it slow?' })
  assert.is((await send(question)).status, 200)
  assert.is((await send({ ...question, webhookId: randomUUID(), webhookTimestamp: Date.now() })).status, 200)
  const event = await daemon.heard('why is it slow?')
  assert.is(daemon.events.length, 1)
  assert.equal(event, {
    bridge_instance_id: 'bri_1',
    idempotency_key: `${id}:create`,
    family: 'message',
    sender: { id: ANN, username: 'ann@example.test', display_name: 'Ann', authenticated: true },
    peer_id: ANN,
    group_id: ISSUE,
    thread_id: id,
    message_id: id,
    text: 'why is it slow?',
    addressed: true,
    received_at: Date.parse('2026-11-28T10:00:00Z'),
  })
  const begin = daemon.delivery('bri_1', { group_id: ISSUE, thread_id: id }, 'Because', { event: 'start' })
  const made = commentId(begin.nonce)
  assert.equal(await daemon.deliver(begin), { status: 'delivered', remote_message_id: made })
  const text = 'Because https://linear.app/acme/profiles/eve'
  const end = { ...begin, event: 'final', text, remote_message_id: made } as const
  assert.equal(await daemon.deliver(end), { status: 'delivered', remote_message_id: made })
  assert.equal(linear.comments.get(made), {
    body: 'Because https://linear.app/acme/\u200bprofiles/eve',
    issueId: ISSUE,
    parentId: id,
  })
  assert.is((await daemon.deliver({ ...end, event: 'delete' })).status, 'delivered')
  assert.is((await daemon.deliver({ ...end, event: 'delete' })).status, 'delivered', 'it is gone already')
  assert.is(linear.comments.size, 0)
})

test('replies belong to the thread of their root, edits are separate events, other actions are ignored', async () => {
  const { daemon, send } = await start()
  const [root, id] = [randomUUID(), randomUUID()]
  await send(comment({ id, parentId: root, body: 'see [@svc](https://linear.app/acme/profiles/svc) there' }))
  const reply = await daemon.heard('see [@svc](https://linear.app/acme/profiles/svc) there')
  assert.is(reply.thread_id, root)
  assert.ok(reply.addressed)
  await send(comment({ id, parentId: root, body: 'changed' }, { action: 'update' }))
  const edit = await daemon.heard('changed')
  assert.is(edit.family, 'edit')
  assert.is.not(edit.idempotency_key, reply.idempotency_key)
  assert.not(edit.addressed)
  await send(comment({ body: '@svc-other and a@svc' }))
  assert.not((await daemon.heard('@svc-other and a@svc')).addressed)
  const before = daemon.events.length
  for (const payload of [
    comment({ userId: BOT }),
    comment({ userId: null }),
    comment({ id: '7' }),
    comment({ issueId: null }),
    comment({ body: null }),
    comment({}, { action: 'remove' }),
    comment({}, { type: 'Issue' }),
    comment({}, { data: null }),
  ])
    assert.ok('ignored' in (await send(payload)).body)
  assert.is(daemon.events.length, before)
})

test('a forged or old webhook is refused, and one that the daemon refuses is redelivered', async () => {
  const { daemon, send } = await start()
  assert.is((await send(comment({}), 'other')).status, 401)
  assert.is((await send(comment({}, { webhookTimestamp: Date.now() - 9 * 3_600_000 }))).status, 401)
  assert.is((await send(comment({}, { webhookTimestamp: undefined }))).status, 401)
  assert.is((await send(null)).status, 401)
  // The last repetition comes six hours later.
  assert.is((await send(comment({ body: 'late' }, { webhookTimestamp: Date.now() - 7 * 3_600_000 }))).status, 200)
  daemon.ingest = () => {
    throw new RpcError(-32000, 'gone', { code: 'bridge_not_found' })
  }
  const again = comment({ body: 'again' })
  assert.is((await send(again)).status, 503)
  daemon.ingest = ({ idempotency_key }) => ({ idempotency_key, outcome: 'prompted' })
  assert.is((await send(again)).status, 200)
  assert.equal(
    daemon.events.map(({ text }) => text),
    ['late', 'again'],
  )
})

test('a retry creates no second comment, and settling is exact', async () => {
  const { daemon, linear } = await start()
  const lost = daemon.delivery('bri_1', { group_id: 'ENG-12' }, 'did it arrive')
  const id = commentId(lost.nonce)
  assert.ok(isUuid(id))
  assert.match(id, /^.{14}4.{4}[89ab]/)
  const now = Date.now()
  assert.equal(await daemon.settle(lost, now), { outcome: 'absent' })
  linear.instead = request => {
    linear.instead = () => undefined
    linear.answer(request)
    return { cut: true }
  }
  assert.is((await daemon.deliver(lost)).status, 'unknown')
  assert.equal(await daemon.settle(lost, now), { outcome: 'delivered', remote_message_id: id })
  assert.equal(await daemon.deliver({ ...lost, text: 'once' }), { status: 'delivered', remote_message_id: id })
  assert.equal([...linear.comments.entries()], [[id, { body: 'once', issueId: 'ENG-12' }]])
  linear.instead = () => ({ status: 500 })
  const outcome = await daemon.settle(lost, now).catch(error => error)
  assert.instance(outcome, Error, 'a failure is no answer')
})

test('rate limits are obeyed, and the instance is degraded until an answer is sent', async () => {
  const { daemon, linear } = await start()
  let answer: Answer | undefined
  linear.instead = () => answer
  const say = async (next: Answer | undefined, target: object = { group_id: ISSUE }) => {
    answer = next
    return daemon.say('bri_1', target, 'x')
  }
  for (const reset of [Date.now() + 90_000, Math.floor(Date.now() / 1000) + 90]) {
    const headers = { 'x-ratelimit-requests-reset': String(reset) }
    const limited = await say({ ...refused('Rate limit exceeded', 'RATELIMITED', 400), headers })
    assert.ok(limited.status === 'not_sent' && !limited.permanent, String(reset))
    assert.ok((limited.retry_after_ms ?? 0) > 60_000 && (limited.retry_after_ms ?? 0) <= 90_000, String(reset))
  }
  assert.is((await daemon.status('degraded')).reason, 'rate_limited')
  const bare = await say({ status: 429 })
  assert.ok(bare.status === 'not_sent' && bare.retry_after_ms === 60_000)
  const before = daemon.reports.length
  assert.is((await say(undefined)).status, 'delivered')
  await daemon.status('ready', before)
  const elsewhere = await say(undefined, { group_id: randomUUID() })
  assert.ok(elsewhere.status === 'not_sent' && elsewhere.permanent && elsewhere.kind === 'unknown_destination')
  assert.is((await say({ status: 502 })).status, 'unknown')
  const token = await say(refused('no', 'AUTHENTICATION_ERROR', 401))
  assert.ok(token.status === 'not_sent' && token.permanent && token.kind === 'missing_token')
  assert.is((await daemon.status('auth_required')).reason, 'auth_failed')
})

test('an address that is not an issue is refused before anything is sent', async () => {
  const { daemon, linear } = await start()
  const before = linear.endpoint.received.length
  for (const target of [
    {},
    { group_id: 'ENG' },
    { group_id: 'eng-12"' },
    { group_id: ISSUE, thread_id: 'x' },
    { peer_id: ANN },
  ]) {
    const result = await daemon.say('bri_1', target, 'x')
    assert.ok(result.status === 'not_sent' && result.kind === 'unknown_destination', JSON.stringify(target))
  }
  assert.is(linear.endpoint.received.length, before)
})

test('an OAuth application logs in once; refused credentials need the operator', async () => {
  const { daemon, linear } = await start({ targets: ['ENG-12'] }, { client_id: 'client', client_secret: 'sesame' })
  assert.is((await daemon.say('bri_1', { group_id: 'ENG-12' }, 'hello')).status, 'delivered')
  assert.is(linear.endpoint.received.filter(({ path }) => path === '/oauth/token').length, 1)
  assert.equal(await daemon.targets('bri_1'), [{ group_id: 'ENG-12', display_name: 'ENG-12', target_type: 'thread' }])
  const wrong = await start({}, { client_id: 'client', client_secret: 'other' }, 'auth_required')
  assert.not.match(JSON.stringify(wrong.daemon.reports), /other/)
  const none = await start({}, {}, 'auth_required')
  assert.match(none.daemon.reports.at(-1)?.message ?? '', /api_key/)
  await start({ api_url: 'http://127.0.0.1:1' }, { api_key: 'x' }, 'degraded')
  await start({ api_url: 'http://api.example.org' }, { api_key: 'x' }, 'error')
})

test.run()
