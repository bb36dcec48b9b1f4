import { verify } from 'node:crypto'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { openGchat } from '../../../packages/bridge-gchat/src/bridge.js'
import { manifest } from '../../../packages/bridge-gchat/src/manifest.js'
import { quiet } from '../../../packages/bridge-gchat/src/text.js'
import { RpcError } from '../../../packages/bridge-kit/src/index.js'
import { freePort } from '../../harness/free-port.js'
import type { Answer } from '../../harness/http-endpoint.js'
import { managed, ScriptedDaemon } from '../bridge-kit/scripted-daemon.js'
import {
  account,
  chat,
  chatError,
  DIRECT,
  FakeChat,
  ofProject,
  ofUrl,
  PROJECT,
  SPACE,
  URL_AUDIENCE,
} from './fake-chat.js'

const running = new Set<() => Promise<unknown>>()
test.after.each(async () => {
  for (const stop of running) await stop()
  running.clear()
})

async function start(more: object = {}, secrets: object = {}, expected = 'ready') {
  const api = await FakeChat.start()
  running.add(() => api.endpoint.close())
  const port = await freePort()
  const daemon = ScriptedDaemon.inProcess({ ...manifest, open: openGchat })
  running.add(() => daemon.shutdown())
  const config = {
    listen_addr: `127.0.0.1:${port}`,
    path: '/hooks/gchat',
    public_url: URL_AUDIENCE,
    api_url: api.endpoint.url,
    certs_url: api.endpoint.url,
    ...more,
  }
  const bound = { credentials_json: api.credentials, project_number: PROJECT, ...secrets }
  const present = Object.fromEntries(Object.entries(bound).filter(([, value]) => value !== undefined))
  await daemon.initialize([managed('bri_1', config, present as Record<string, string>)])
  await daemon.status(expected as 'ready')
  const send = async (payload: unknown, token: string | undefined = ofProject()) => {
    const response = await fetch(`http://127.0.0.1:${port}/hooks/gchat`, {
      method: 'POST',
      body: JSON.stringify(payload),
      headers: { 'content-type': 'application/json', ...(token === '' ? {} : { authorization: `Bearer ${token}` }) },
    })
    return { status: response.status, body: (await response.json().catch(() => undefined)) as Record<string, unknown> }
  }
  return { daemon, api, send }
}

const ann = { name: 'users/17', displayName: 'Ann', email: 'ann@example.org', type: 'HUMAN', domainId: 'd1' }
const room = {
  name: SPACE,
  type: 'ROOM',
  spaceType: 'SPACE',
  displayName: 'Ops',
  spaceThreadingState: 'THREADED_MESSAGES',
}
const direct = { name: DIRECT, type: 'DM', spaceType: 'DIRECT_MESSAGE', singleUserBotDm: true }
let count = 0
const message = (text: string, more: object = {}) => ({
  name: `${SPACE}/messages/in${++count}.in${count}`,
  sender: ann,
  createTime: '2026-11-28T10:00:00Z',
  text: `@Bot ${text}`,
  argumentText: ` ${text}`,
  thread: { name: `${SPACE}/threads/TTT` },
  space: room,
  ...more,
})
const messageOf = (text: string, more: object = {}) => ({
  type: 'MESSAGE',
  eventTime: '2026-11-28T10:00:00Z',
  user: ann,
  space: room,
  message: message(text, more),
})

test('a message in a space is answered in its thread, and the answer grows by edits', async () => {
  const { daemon, api, send } = await start()
  const event = messageOf('why is it slow?')
  assert.equal(await send(event), { status: 200, body: {} })
  assert.equal(await send(event), { status: 200, body: {} })
  assert.equal(await daemon.heard('why is it slow?'), {
    bridge_instance_id: 'bri_1',
    idempotency_key: event.message.name,
    family: 'message',
    sender: { id: 'users/17', username: 'ann@example.org', display_name: 'Ann', authenticated: true },
    peer_id: 'users/17',
    group_id: SPACE,
    thread_id: 'TTT',
    message_id: event.message.name,
    text: 'why is it slow?',
    addressed: true,
    received_at: Date.parse('2026-11-28T10:00:00Z'),
  })
  assert.is(daemon.events.length, 1)
  const begin = daemon.delivery('bri_1', { group_id: SPACE, thread_id: 'TTT' }, 'Because', { event: 'start' })
  const begun = await daemon.deliver(begin)
  assert.equal(begun, { status: 'delivered', remote_message_id: `${SPACE}/messages/0.0` })
  const [post] = api.asked('POST', /\/messages\?/)
  assert.match(post?.path ?? '', /messageReplyOption=REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD/)
  assert.equal(JSON.parse(post?.body ?? ''), {
    text: 'Because',
    markupSyntax: 'MARKUP_SYNTAX_MARKDOWN',
    thread: { name: `${SPACE}/threads/TTT` },
  })
  const id = `${SPACE}/messages/0.0`
  const end = { ...begin, event: 'final', text: 'Because of <users/all>.', remote_message_id: id } as const
  assert.equal(await daemon.deliver(end), { status: 'delivered', remote_message_id: id })
  assert.is(api.messages.get(id)?.text, 'Because of ‹users/all>.')
  assert.is((await daemon.deliver({ ...end, event: 'delete' })).status, 'delivered')
  assert.is((await daemon.deliver({ ...end, event: 'delete' })).status, 'delivered', 'it is gone already')
  assert.is(api.messages.size, 0)
})

test('direct messages, commands, clicks and the add-on format are events', async () => {
  const { daemon, api, send } = await start()
  const inDirect = { name: `${DIRECT}/messages/a.a`, space: direct, thread: { name: `${DIRECT}/threads/x` } }
  await send({ ...messageOf('hello', inDirect), space: direct })
  const hello = await daemon.heard('hello')
  assert.equal([hello.peer_id, hello.group_id, hello.thread_id], [DIRECT, undefined, undefined])
  await daemon.say('bri_1', { peer_id: DIRECT }, 'hi')
  await daemon.say('bri_1', { peer_id: 'users/17' }, 'hi again')
  assert.is(api.asked('POST', new RegExp(`/v1/${DIRECT}/messages\\?messageId=client-[0-9a-f]+$`)).length, 2)
  assert.is(api.asked('GET', /findDirectMessage/).length, 0, 'the direct message is known by then')

  const slash = { text: '@Bot /cancel', argumentText: '', slashCommand: { commandId: '1' } }
  await send({ type: 'MESSAGE', space: room, user: ann, message: message('', slash) })
  assert.is((await daemon.heard('/cancel')).family, 'command')

  const click = { type: 'CARD_CLICKED', eventTime: 't1', user: ann, space: room, message: message('card') }
  await send({ ...click, action: { actionMethodName: 'allow:BCDFG' } })
  await send({ ...click, action: { actionMethodName: 'allow:BCDFG' } })
  await send({ ...click, common: { invokedFunction: 'deny:BCDFG' } })
  assert.equal(
    daemon.events.slice(2).map(({ family, action_id }) => [family, action_id]),
    [
      ['action', 'allow:BCDFG'],
      ['action', 'deny:BCDFG'],
    ],
  )

  const addOn = (payload: object, common: object = {}) => ({
    commonEventObject: { hostApp: 'CHAT', ...common },
    authorizationEventObject: { systemIdToken: 'x' },
    chat: { user: ann, eventTime: '2026-11-28T10:00:00Z', ...payload },
  })
  const token = ofUrl({ email: `service-${PROJECT}@gcp-sa-gsuiteaddons.iam.gserviceaccount.com` })
  await send(addOn({ messagePayload: { space: room, message: message('from an add-on') } }), token)
  assert.is((await daemon.heard('from an add-on')).thread_id, 'TTT')
  const renew = message('', { text: '/new', argumentText: '' })
  await send(
    addOn({ appCommandPayload: { space: room, message: renew, appCommandMetadata: { appCommandId: 2 } } }),
    token,
  )
  assert.is((await daemon.heard('/new')).family, 'command')
  await send(addOn({ buttonClickedPayload: { space: room } }, { invokedFunction: 'allow:XXXXX' }), token)
  assert.is(daemon.events.at(-1)?.action_id, 'allow:XXXXX')
  const before = daemon.events.length
  await send(addOn({ addedToSpacePayload: { space: { name: 'spaces/NEW', spaceType: 'SPACE', displayName: 'New' } } }))
  assert.ok((await daemon.targets('bri_1')).some(({ group_id }) => group_id === 'spaces/NEW'))
  await send(addOn({ removedFromSpacePayload: { space: { name: 'spaces/NEW' } } }))
  assert.equal(
    await daemon.targets('bri_1'),
    [
      { group_id: SPACE, display_name: 'Ops', target_type: 'group' },
      { peer_id: DIRECT, display_name: 'Ann', target_type: 'user' },
    ].reverse(),
  )
  for (const payload of [
    null,
    [],
    {},
    { chat: null },
    { chat: { widgetUpdatedPayload: {} } },
    { type: 'WIDGET_UPDATED', space: room },
    { type: 'MESSAGE', space: { name: '../x' }, message: message('x') },
    { type: 'MESSAGE', space: room, message: message('x', { name: 'spaces/AAAA/messages/../x' }) },
    { type: 'MESSAGE', space: room, user: ann, message: message('x', { sender: { name: 'ann' } }) },
    { type: 'CARD_CLICKED', space: room, user: ann },
    { type: 'ADDED_TO_SPACE', space: room, user: ann },
  ])
    assert.equal(await send(payload), { status: 200, body: {} })
  assert.is(daemon.events.length, before)
  await send({ ...messageOf('added by a mention'), type: 'ADDED_TO_SPACE' })
  await daemon.heard('added by a mention')
})

test('a token that is forged, expired or for another project is refused', async () => {
  const { daemon, send } = await start()
  const check = async (token: string) => (await send(messageOf('forged'), token)).status
  const now = Math.floor(Date.now() / 1000)
  assert.is(await check(''), 401)
  for (const token of [
    'x',
    ofProject({}, account.privatePem),
    ofProject({}, chat.privatePem, 'c2'),
    ofProject({ aud: '999' }),
    ofProject({ iss: 'eve@system.gserviceaccount.com' }),
    ofProject({ exp: now - 400 }),
    ofProject({ nbf: now + 400 }),
    // An app of another project may be pointed at this address.
    ofUrl(),
    ofUrl({ email: 'service-999@gcp-sa-gsuiteaddons.iam.gserviceaccount.com' }),
    ofUrl({ email: `service-${PROJECT}@gcp-sa-gsuiteaddons.iam.gserviceaccount.com`, aud: 'https://other.example' }),
  ])
    assert.is(await check(token), 401)
  assert.is(daemon.events.length, 0)
  const hook = await daemon.request('bridges/webhook/register', { bridge_instance_id: 'bri_1' })
  assert.match((hook as { remediation: string }).remediation, /refused: unexpected "aud" claim/)
  assert.is(await check(ofProject({ exp: now - 200 })), 200, 'clocks may differ by five minutes')
})

test('the audience is the endpoint URL when no project number is set', async () => {
  const { daemon, send, api } = await start({}, { project_number: undefined })
  assert.is((await send(messageOf('one'), ofUrl())).status, 200)
  await daemon.heard('one')
  assert.is((await send(messageOf('two'), ofUrl({ email: 'eve@example.org' }))).status, 401)
  assert.is((await send(messageOf('two'), ofUrl({ email_verified: false }))).status, 401)
  assert.is((await send(messageOf('two'), ofUrl({ aud: 'https://other.example' }))).status, 401)
  assert.is((await send(messageOf('two'), ofProject())).status, 401)
  assert.is(api.asked('GET', /certs/).length, 1, 'the keys are cached')
  await start({ public_url: undefined }, { project_number: undefined }, 'error')
})

test('an event is redelivered while the keys of Google are unavailable', async () => {
  const { daemon, send, api } = await start()
  api.instead = ({ path }) => (path.startsWith('/service_accounts') ? { status: 500 } : undefined)
  assert.is((await send(messageOf('later'))).status, 503)
  assert.is(daemon.events.length, 0)
})

test('an event is confirmed when it is durable; long ones are accepted and oversized ones refused', async () => {
  const { daemon, send } = await start()
  daemon.ingest = () => {
    throw new RpcError(-32000, 'gone', { code: 'bridge_not_found' })
  }
  const event = messageOf('later')
  assert.is((await send(event)).status, 503)
  daemon.ingest = ({ idempotency_key }) => ({ idempotency_key, outcome: 'prompted' })
  assert.is((await send(event)).status, 200)
  const long = 'x'.repeat(1024 * 1024 - 10)
  assert.is((await send(messageOf('', { argumentText: long }))).status, 200)
  assert.is(daemon.events.at(-1)?.text?.length, long.length)
  const huge = await send(messageOf('', { argumentText: 'x'.repeat(3 * 1024 * 1024) })).catch(() => undefined)
  assert.ok(huge === undefined || huge.status === 413)
  assert.is(daemon.events.length, 2)
})

test('files are fetched from the API, and unavailable ones are named', async () => {
  const { daemon, send, api } = await start()
  const file = (resource: string | undefined, contentName: string) => ({
    contentName,
    contentType: 'text/plain',
    ...(resource === undefined
      ? { driveDataRef: { driveFileId: 'd' }, source: 'DRIVE_FILE' }
      : { attachmentDataRef: { resourceName: resource } }),
  })
  const attachment = [
    file('ClxTUE/A=', 'a.txt'),
    file(undefined, 'drive'),
    file('x/../../spaces', 'up'),
    file('bad', 'b'),
  ]
  api.instead = ({ path }) => (path.startsWith('/v1/media/bad') ? { status: 404 } : undefined)
  await send(messageOf('look', { attachment }))
  const [event] = daemon.events
  assert.match(event?.text ?? '', /^look\n\[The file drive .*\]\n\[The file up .*\]\n\[The file b .*\]$/)
  const data = Buffer.from(JSON.stringify('bytes of /v1/media/ClxTUE/A%3D')).toString('base64')
  assert.equal(event?.attachments, [{ name: 'a.txt', mime_type: 'text/plain', data }])
  assert.is(api.asked('GET', /media/).length, 2)
})

test('a lost message is found by its own id and is not duplicated', async () => {
  const { daemon, api } = await start()
  const target = { group_id: SPACE }
  api.instead = ({ method, path, body }) => {
    if (method !== 'POST' || !path.startsWith('/v1/')) return undefined
    api.make(SPACE, new URL(path, 'http://x').searchParams.get('messageId') ?? '', JSON.parse(body))
    return { cut: true }
  }
  const lost = daemon.delivery('bri_1', target, 'did it arrive')
  assert.is((await daemon.deliver(lost)).status, 'unknown')
  const found = { outcome: 'delivered', remote_message_id: `${SPACE}/messages/0.0` }
  assert.equal(await daemon.settle(lost, Date.now()), found)
  assert.equal(await daemon.settle({ ...lost, nonce: 'other' }, Date.now()), { outcome: 'absent' })
  api.instead = () => undefined
  const again = await daemon.deliver({ ...lost, text: 'it did' })
  assert.equal(again, { status: 'delivered', remote_message_id: `${SPACE}/messages/0.0` })
  assert.equal(
    [...api.messages.values()].map(({ text }) => text),
    ['it did'],
  )
  api.instead = ({ path }) => (path.startsWith('/v1/') ? { status: 503 } : undefined)
  assert.ok(
    await daemon.settle(lost, Date.now()).then(
      ({ outcome }) => outcome === 'unknown',
      () => true,
    ),
  )
})

test('parts of a notification share a thread', async () => {
  const { daemon, api } = await start()
  const one = daemon.delivery('bri_1', { group_id: SPACE }, 'one')
  await daemon.deliver(one)
  await daemon.deliver({ ...one, part: 1, nonce: 'n2', text: 'two' })
  await daemon.say('bri_1', { group_id: SPACE }, 'another')
  const threads = [...api.messages.values()].map(({ thread }) => (thread as { threadKey: string }).threadKey)
  assert.is(threads.length, 3)
  assert.is(threads[0], threads[1])
  assert.is.not(threads[0], threads[2])
})

test('quota errors back off exponentially; refusals are mapped', async () => {
  const { daemon, api } = await start()
  let answer: Answer | undefined
  api.instead = ({ path }) => (path.startsWith('/v1/') ? answer : undefined)
  const say = async (next: Answer | undefined, more = {}) => {
    answer = next
    return daemon.say('bri_1', { group_id: SPACE }, 'x', more)
  }
  const waits: number[] = []
  for (let i = 0; i < 6; i++) {
    const result = await say(chatError(429, 'RESOURCE_EXHAUSTED'))
    assert.ok(result.status === 'not_sent' && !result.permanent)
    waits.push(result.status === 'not_sent' ? (result.retry_after_ms ?? 0) : 0)
  }
  assert.ok((waits[0] ?? 0) <= 5000 && (waits[0] ?? 0) >= 2500 && (waits[5] ?? 0) >= 30_000, waits.join())
  assert.is((await daemon.status('degraded')).reason, 'rate_limited')
  const reply = await say({ ...chatError(429, 'RESOURCE_EXHAUSTED'), headers: { 'retry-after': '7' } })
  assert.ok(reply.status === 'not_sent' && reply.retry_after_ms === 7000)
  const before = daemon.reports.length
  assert.is((await say(undefined)).status, 'delivered')
  await daemon.status('ready', before)
  for (const [status, kind] of [
    [400, 'unsupported_capability'],
    [403, 'permission_denied'],
    [404, 'unknown_destination'],
  ] as const) {
    const result = await say(chatError(status, 'X'))
    assert.ok(result.status === 'not_sent' && result.permanent && result.kind === kind, String(status))
  }
  assert.is((await say({ status: 502 })).status, 'unknown')
  const edit = await say({ status: 502 }, { remote_message_id: `${SPACE}/messages/0.0` })
  assert.ok(edit.status === 'not_sent' && !edit.permanent, 'an edit may be made twice')
  const requests = api.asked('POST', /^\/v1/).length
  for (const target of [
    {},
    { group_id: 'AAAA' },
    { group_id: 'spaces/../x' },
    { group_id: SPACE, thread_id: 'x/y' },
    { peer_id: 'ann' },
  ]) {
    const result = await daemon.say('bri_1', target, 'x')
    assert.ok(result.status === 'not_sent' && result.kind === 'unknown_destination', JSON.stringify(target))
  }
  for (const id of ['1', 'spaces/BBBB/messages/1', `${SPACE}/messages/../x`]) {
    const result = await say(undefined, { remote_message_id: id })
    assert.ok(result.status === 'not_sent' && result.kind === 'unknown_destination', id)
  }
  assert.is(api.asked('POST', /^\/v1/).length, requests)
  const stranger = await daemon.say('bri_1', { peer_id: 'users/99' }, 'x')
  assert.ok(stranger.status === 'not_sent' && stranger.kind === 'unknown_destination')
})

test('the service account signs in with its key, and a token that expired early is replaced', async () => {
  const { daemon, api } = await start()
  await daemon.say('bri_1', { group_id: SPACE }, 'one')
  assert.is(api.tokens, 1, 'one token serves until it ends')
  const [login] = api.asked('POST', /^\/token$/)
  const form = new URLSearchParams(login?.body)
  assert.is(form.get('grant_type'), 'urn:ietf:params:oauth:grant-type:jwt-bearer')
  const [head = '', body = '', signature = ''] = (form.get('assertion') ?? '').split('.')
  assert.is(JSON.parse(Buffer.from(head, 'base64url').toString()).kid, 'k1')
  assert.ok(
    verify('RSA-SHA256', Buffer.from(`${head}.${body}`), account.publicKey, Buffer.from(signature, 'base64url')),
  )
  const claims = JSON.parse(Buffer.from(body, 'base64url').toString())
  assert.is(claims.iss, 'bot@project.iam.gserviceaccount.com')
  assert.is(claims.scope, 'https://www.googleapis.com/auth/chat.bot')
  assert.is(claims.aud, `${api.endpoint.url}/token`)
  assert.is(claims.exp - claims.iat, 3600)
  let refusals = 1
  api.instead = ({ path }) =>
    path.startsWith('/v1/') && refusals-- > 0 ? chatError(401, 'UNAUTHENTICATED') : undefined
  assert.is((await daemon.say('bri_1', { group_id: SPACE }, 'two')).status, 'delivered')
  assert.is(api.tokens, 2)
  api.instead = ({ path }) => (path.startsWith('/v1/') ? chatError(401, 'UNAUTHENTICATED') : undefined)
  const refused = await daemon.say('bri_1', { group_id: SPACE }, 'three')
  assert.ok(refused.status === 'not_sent' && refused.permanent && refused.kind === 'missing_token')
  assert.is((await daemon.status('auth_required')).reason, 'auth_failed')
})

test('an unreachable Google Chat is retried; invalid credentials are named', async () => {
  await start({ api_url: 'http://127.0.0.1:1' }, {}, 'degraded')
  for (const credentials of ['x', '{}', '{"type":"service_account","client_email":"a","private_key":"x"}']) {
    const { daemon } = await start({}, { credentials_json: credentials }, 'auth_required')
    assert.match(daemon.reports.at(-1)?.message ?? '', /credentials_json/)
  }
  await start({ certs_url: 'http://keys.example.org' }, {}, 'error')
  await start({}, { project_number: 'my-project' }, 'error')
})

test('an answer mentions no user and not all', () => {
  assert.is(quiet('<users/all> <users/123> < users/all>'), '‹users/all> ‹users/123> ‹ users/all>')
  assert.is(quiet('&lt;users/all&gt; &#60;users/1 &#x3C;USERS/all'), '‹users/all&gt; ‹users/1 ‹USERS/all')
  assert.is(quiet('a < b and <b>users/all</b>'), 'a < b and <b>users/all</b>')
})

test.run()
