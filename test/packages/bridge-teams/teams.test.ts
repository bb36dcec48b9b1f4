import { generateKeyPairSync } from 'node:crypto'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { RpcError, signJwt } from '../../../packages/bridge-kit/src/index.js'
import { openTeams } from '../../../packages/bridge-teams/src/bridge.js'
import { connectorOf } from '../../../packages/bridge-teams/src/config.js'
import { whereOf } from '../../../packages/bridge-teams/src/files.js'
import { manifest } from '../../../packages/bridge-teams/src/manifest.js'
import { heard, quiet } from '../../../packages/bridge-teams/src/text.js'
import { freePort } from '../../harness/free-port.js'
import { type Answer, HttpEndpoint, type Received } from '../../harness/http-endpoint.js'
import { managed, ScriptedDaemon } from '../bridge-kit/scripted-daemon.js'

const APP = '11111111-2222-3333-4444-555555555555'
const TENANT = 'aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee'
const ANN = '99999999-8888-7777-6666-555555555555'
const CHANNEL = '19:channel@thread.tacv2'
const GROUP = '19:group@thread.v2'

const pair = () => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return {
    jwk: publicKey.export({ format: 'jwk' }) as object,
    pem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}
const signer = pair()
const stranger = pair()

const running = new Set<() => Promise<unknown>>()
test.after.each(async () => {
  for (const stop of running) await stop()
  running.clear()
})

/** The login, the keys and the Bot Connector of Microsoft, as their documentation describes them. */
class FakeMicrosoft {
  endpoint!: HttpEndpoint
  /** Keys in place of the one that signs. */
  keys: readonly object[] = [{ ...signer.jwk, kid: 'k1', use: 'sig', endorsements: ['msteams', 'webchat'] }]
  tokens = 0
  lasts = 3600
  readonly messages = new Map<string, { conversation: string; text: string }>()
  /** Answers in place of the API. */
  instead: (request: Received) => Answer | undefined = () => undefined

  static async start(): Promise<FakeMicrosoft> {
    const fake = new FakeMicrosoft()
    fake.endpoint = await HttpEndpoint.start(request => fake.instead(request) ?? fake.#answer(request))
    running.add(() => fake.endpoint.close())
    return fake
  }

  asked(method: string, path: RegExp): Received[] {
    return this.endpoint.received.filter(one => one.method === method && path.test(one.path))
  }

  #answer({ method, path, body, headers }: Received): Answer {
    if (path === '/openid')
      return { body: { issuer: 'https://api.botframework.com', jwks_uri: `${this.endpoint.url}/keys` } }
    if (path === '/keys') return { body: { keys: this.keys } }
    if (/^\/[^/]+\/oauth2\/v2\.0\/token$/.test(path)) {
      const form = new URLSearchParams(body)
      if (form.get('client_secret') !== 'a~password' || form.get('client_id') !== APP)
        return { status: 401, body: { error: 'invalid_client', error_codes: [7000215] } }
      return { body: { token_type: 'Bearer', expires_in: this.lasts, access_token: `token-${++this.tokens}` } }
    }
    if (headers.authorization !== `Bearer token-${this.tokens}`) return { status: 401, body: {} }
    if (path === '/v3/conversations') {
      const { channelData, activity } = JSON.parse(body)
      const id = this.#make(`${channelData.channel.id};messageid=${1000 + this.messages.size}`, activity.text)
      return { status: 201, body: { id: `${channelData.channel.id};messageid=${id}`, activityId: id } }
    }
    const [, conversation = '', id] = /^\/v3\/conversations\/([^/]+)\/activities(?:\/([^/]+))?$/.exec(path) ?? []
    const found = this.messages.get(decodeURIComponent(id ?? ''))
    if (method === 'POST' && conversation !== '')
      return { status: 201, body: { id: this.#make(decodeURIComponent(conversation), JSON.parse(body).text) } }
    if (found?.conversation !== decodeURIComponent(conversation))
      return { status: 404, body: { error: { code: 'NotFound' } } }
    if (method === 'PUT') found.text = JSON.parse(body).text
    if (method === 'DELETE') this.messages.delete(decodeURIComponent(id ?? ''))
    return { body: { id } }
  }

  #make(conversation: string, text: string): string {
    const id = String(1000 + this.messages.size)
    this.messages.set(id, { conversation, text })
    return id
  }
}

interface Started {
  readonly more?: object
  readonly secrets?: object
  readonly expected?: string
  readonly values?: Map<string, string>
  readonly microsoft?: FakeMicrosoft
}

async function start({ more = {}, secrets = {}, expected = 'ready', values, microsoft }: Started = {}) {
  const fake = microsoft ?? (await FakeMicrosoft.start())
  const { url } = fake.endpoint
  const port = await freePort()
  const daemon = ScriptedDaemon.inProcess({ ...manifest, open: openTeams })
  if (values) daemon.values = values
  running.add(() => daemon.shutdown())
  const config = {
    listen_addr: `127.0.0.1:${port}`,
    path: '/api/messages',
    tenant_id: TENANT,
    login_url: url,
    openid_url: `${url}/openid`,
    service_url: url,
    ...more,
  }
  await daemon.initialize([managed('bri_1', config, { app_id: APP, app_password: 'a~password', ...secrets })])
  await daemon.status(expected as 'ready')
  const post = async (body: string, token: string | undefined) => {
    const response = await fetch(`http://127.0.0.1:${port}/api/messages`, {
      method: 'POST',
      body,
      headers: {
        'content-type': 'application/json',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
    })
    return { status: response.status, body: (await response.json().catch(() => ({}))) as Record<string, unknown> }
  }
  const message = (text: string, extra: object = {}) => activityOf(url, text, extra)
  const token = (claims: object = {}, key = signer.pem, head: object = {}) => tokenOf(url, claims, key, head)
  const send = (activity: object, signed = token()) => post(JSON.stringify(activity), signed)
  return { daemon, fake, url, post, send, message, token }
}

function tokenOf(url: string, claims: object, key: string, head: object): string {
  const now = Math.floor(Date.now() / 1000)
  const usual = { iss: 'https://api.botframework.com', aud: APP, nbf: now - 10, exp: now + 3600, serviceurl: url }
  return signJwt({ ...usual, ...claims }, key, { kid: 'k1', ...head })
}

let ids = 0
function activityOf(serviceUrl: string, text: string, extra: object): Record<string, unknown> {
  return {
    type: 'message',
    id: `17000000${++ids}`,
    channelId: 'msteams',
    serviceUrl,
    timestamp: '2026-11-28T10:00:00.000Z',
    from: { id: '29:ann', name: 'Ann', aadObjectId: ANN },
    recipient: { id: `28:${APP}`, name: 'Helper' },
    conversation: { conversationType: 'personal', id: 'a:1ann', tenantId: TENANT },
    channelData: { tenant: { id: TENANT } },
    text,
    ...extra,
  }
}

const mention = { type: 'mention', text: '<at>Helper</at>', mentioned: { id: `28:${APP}`, name: 'Helper' } }
const inChannel = {
  conversation: { conversationType: 'channel', id: `${CHANNEL};messageid=500`, isGroup: true, tenantId: TENANT },
}
const inGroup = { conversation: { conversationType: 'groupChat', id: GROUP, isGroup: true, tenantId: TENANT } }

test('a personal message is answered, and the answer grows by updates', async () => {
  const { daemon, fake, send, message } = await start()
  const question = message('why is it slow?', { id: '1700' })
  assert.equal(await send(question), { status: 200, body: {} })
  assert.is((await send(question)).status, 200, 'a repetition')
  assert.is(daemon.events.length, 1)
  assert.equal(daemon.events[0], {
    bridge_instance_id: 'bri_1',
    idempotency_key: 'a:1ann|1700',
    family: 'message',
    sender: { id: ANN, display_name: 'Ann', authenticated: true },
    peer_id: ANN,
    message_id: '1700',
    text: 'why is it slow?',
    addressed: true,
    received_at: Date.parse('2026-11-28T10:00:00Z'),
  })
  const begin = daemon.delivery('bri_1', { peer_id: ANN }, 'Because', { event: 'start', reply_to_message_id: '1700' })
  assert.equal(await daemon.deliver(begin), { status: 'delivered', remote_message_id: '1000' })
  const [post] = fake.asked('POST', /activities/)
  assert.is(post?.path, '/v3/conversations/a%3A1ann/activities/1700')
  assert.is(post?.headers.authorization, 'Bearer token-1')
  assert.equal(JSON.parse(post?.body ?? ''), {
    type: 'message',
    textFormat: 'markdown',
    text: 'Because',
    replyToId: '1700',
  })
  const end = { ...begin, event: 'final', text: 'Because of <at>everyone</at>.', remote_message_id: '1000' } as const
  assert.equal(await daemon.deliver(end), { status: 'delivered', remote_message_id: '1000' })
  assert.is(fake.messages.get('1000')?.text, 'Because of <\u200bat>everyone<\u200b/at>.')
  assert.is((await daemon.deliver({ ...end, event: 'delete' })).status, 'delivered')
  assert.is((await daemon.deliver({ ...end, event: 'delete' })).status, 'delivered', 'it is gone already')
  assert.is(fake.messages.size, 0)
  assert.is(fake.tokens, 1, 'one token serves until it ends')
})

test('channels have threads, group chats have none, and a mention is addressed', async () => {
  const { daemon, fake, send, message } = await start()
  await send(message('<at>Helper</at>&nbsp;hello <at>Ben</at>', { ...inChannel, entities: [mention] }))
  const event = await daemon.heard('hello @Ben')
  assert.equal([event.group_id, event.thread_id, event.peer_id, event.addressed], [CHANNEL, '500', ANN, true])
  await send(message('among us', inGroup))
  const overheard = await daemon.heard('among us')
  assert.equal([overheard.group_id, overheard.thread_id, overheard.addressed], [GROUP, undefined, false])
  await daemon.say('bri_1', { group_id: CHANNEL, thread_id: '500', peer_id: ANN }, 'in the thread')
  assert.is(fake.messages.get('1000')?.conversation, `${CHANNEL};messageid=500`)
  await daemon.say('bri_1', { group_id: GROUP }, 'in the group')
  assert.is(fake.messages.get('1001')?.conversation, GROUP)
  const post = await daemon.say('bri_1', { group_id: CHANNEL }, 'a new post', { event: 'start' })
  assert.equal(post, { status: 'delivered', remote_message_id: '1002' })
  await daemon.say('bri_1', { group_id: CHANNEL }, 'a better post', { remote_message_id: '1002' })
  assert.equal(fake.messages.get('1002'), { conversation: `${CHANNEL};messageid=1002`, text: 'a better post' })
  assert.equal((await daemon.targets('bri_1')).map(({ group_id, target_type }) => [group_id, target_type]).sort(), [
    [CHANNEL, 'channel'],
    [GROUP, 'group'],
  ])
})

test('edits and reactions are separate events; own and empty activities are ignored', async () => {
  const { daemon, send, message } = await start()
  const first = message('first')
  await send(first)
  for (const timestamp of ['2026-11-28T10:01:00Z', '2026-11-28T10:01:00Z', '2026-11-28T10:02:00Z'])
    await send({ ...first, type: 'messageUpdate', text: 'second', timestamp })
  await send(message('', { type: 'messageReaction', replyToId: '1000', reactionsAdded: [{ type: 'like' }] }))
  assert.equal(
    daemon.events.map(({ family, text, action_id }) => [family, text, action_id]),
    [
      ['message', 'first', undefined],
      ['edit', 'second', undefined],
      ['edit', 'second', undefined],
      ['reaction', ':like:', 'like'],
    ],
  )
  const before = daemon.events.length
  for (const more of [
    { from: { id: `28:${APP}`, name: 'Helper' } },
    { type: 'typing' },
    { type: 'messageDelete' },
    { type: 'conversationUpdate', membersAdded: [{ id: `28:${APP}` }] },
    { type: 'messageReaction', reactionsRemoved: [{ type: 'like' }], replyToId: '1000' },
    { text: '  ' },
    { text: ['x'] },
    { id: undefined },
    { id: { toString: 1 } },
    { conversation: { tenantId: TENANT, id: 'a b' } },
    { from: undefined },
  ])
    assert.ok('ignored' in (await send(message('x', more))).body, JSON.stringify(more))
  assert.equal(await send(message('', { type: 'invoke', name: 'adaptiveCard/action' })), { status: 200, body: {} })
  assert.is(daemon.events.length, before)
})

test('a user without an account is not authenticated, and another bot is a bot', async () => {
  const { daemon, send, message } = await start()
  await send(message('guest', { from: { id: '29:guest', name: 'Ann' } }))
  assert.equal((await daemon.heard('guest')).sender, { id: '29:guest', display_name: 'Ann', authenticated: false })
  await send(message('robot', { from: { id: '28:other', name: 'Other' } }))
  assert.ok((await daemon.heard('robot')).sender.is_bot)
})

test('files are delivered with their message, only from the hosts of Teams', async () => {
  const attacker = await HttpEndpoint.start(() => ({ body: 'secret' }))
  running.add(() => attacker.close())
  const { daemon, fake, url, send, message } = await start()
  fake.instead = ({ path }) =>
    path === '/v3/attachments/1' ? { headers: { 'content-type': 'image/png; x=y' }, body: 'picture' } : undefined
  const picture = { contentType: 'image/*', contentUrl: `${url}/v3/attachments/1`, name: '../shot.png' }
  const html = { contentType: 'text/html', content: '<p>' }
  await send(message('look', { attachments: [picture, html, null] }))
  const data = Buffer.from('"picture"').toString('base64')
  assert.equal((await daemon.heard('look')).attachments, [{ name: '.._shot.png', mime_type: 'image/png', data }])
  assert.is(fake.asked('GET', /attachments/)[0]?.headers.authorization, 'Bearer token-1')
  const missing = async (attachment: object, why: RegExp, more: object = {}) => {
    await send(message('', { attachments: [attachment], ...more }))
    const { text, attachments } = daemon.events.at(-1) ?? {}
    assert.match(text ?? '', why)
    assert.is(attachments, undefined)
  }
  const download = { contentType: 'application/vnd.microsoft.teams.file.download.info', name: 'x.txt' }
  await missing({ ...picture, contentUrl: attacker.url }, /not on a file server of Teams/)
  await missing({ ...download, content: { downloadUrl: attacker.url } }, /not on a file server of Teams/)
  await missing({ ...download, content: null }, /not on a file server of Teams/)
  await missing({ ...picture, contentUrl: `${url}/v3/attachments/2` }, /did not deliver it/)
  await missing(picture, /not meant for the bot/, inGroup)
  assert.is(attacker.received.length, 0)
  const shared = 'https://acme-my.sharepoint.com/personal/x?tempauth=1'
  assert.equal(whereOf(shared, url), { url: shared, isOwn: false })
  for (const bad of [
    'http://acme.sharepoint.com/',
    'https://sharepoint.com.evil.example/',
    'https://evilsharepoint.com/',
    'https://u@acme.sharepoint.com/',
    'https://acme.sharepoint.com:444/',
    'x',
    7,
  ])
    assert.is(whereOf(bad, url).url, undefined, String(bad))
})

test('only a Bot Connector token for this bot, channel, address and tenant is accepted', async () => {
  const { daemon, fake, url, post, send, message, token } = await start()
  const hour = 3600
  const now = Math.floor(Date.now() / 1000)
  const status = async (signed: string | undefined, more: object = {}) =>
    (await post(JSON.stringify(message('forged', more)), signed)).status
  assert.is(await status(undefined), 401)
  for (const signed of [
    'x',
    token({}, stranger.pem),
    token({ iss: 'https://sts.windows.net/x/' }),
    token({ aud: '22222222-2222-3333-4444-555555555555' }),
    token({ exp: now - 301 }),
    token({ nbf: now + hour }),
    token({}, signer.pem, { kid: 'unknown' }),
    token({}, signer.pem, { alg: 'none' }),
  ])
    assert.is(await status(signed), 401, signed)
  assert.is(await status(token({ exp: now - 240 })), 200, 'clocks may differ by five minutes')
  const before = daemon.events.length
  assert.is(await status(token({ serviceurl: 'https://smba.trafficmanager.net/emea/' })), 403)
  assert.is(await status(token({ serviceurl: undefined })), 403)
  assert.is(await status(token(), { channelId: 'webchat' }), 403)
  for (const foreign of [
    { conversation: { id: 'a:1', tenantId: ANN } },
    { channelData: { tenant: { id: ANN } } },
    { conversation: { id: 'a:1' }, channelData: {} },
    { conversation: { id: 'a:1', tenantId: TENANT }, channelData: { tenant: { id: 7 } } },
  ])
    assert.is(await status(token(), foreign), 403, JSON.stringify(foreign))
  assert.is((await post('null', token())).status, 403)
  assert.is((await post('{', token())).status, 403)
  assert.is(daemon.events.length, before)
  assert.is(fake.asked('GET', /keys/).length, 1, 'unknown keys cause no flood of requests')
  assert.is((await post(`"${'x'.repeat(1024 * 1024)}"`, token())).status, 413)
  fake.keys = [{ ...signer.jwk, kid: 'k1', endorsements: ['webchat'] }]
  const other = await start({ microsoft: fake })
  assert.is((await other.send(other.message('unendorsed'), token())).status, 403)
  assert.is((await send(message('fine', { serviceUrl: url }))).status, 200)
})

test('a foreign serviceUrl never gets the token of the bot, not even from stored conversations', async () => {
  const attacker = await HttpEndpoint.start(() => ({ body: { id: '1' } }))
  running.add(() => attacker.close())
  const { daemon, send, message, token } = await start()
  const signed = token({ serviceurl: attacker.url })
  assert.is((await send(message('hi', { serviceUrl: attacker.url }), signed)).status, 403)
  const place = { kind: 'personal', conversation: 'a:1ann', service: attacker.url, peer_id: ANN }
  for (let group = 0; group < 16; group++)
    daemon.values.set(`bri_1/places/${group}`, JSON.stringify([[`peer:${ANN}`, place]]))
  const result = await daemon.say('bri_1', { peer_id: ANN }, 'secret')
  assert.ok(result.status === 'not_sent' && result.kind === 'unknown_destination')
  assert.is(attacker.received.length, 0)
  for (const good of [
    'https://smba.trafficmanager.net/emea/',
    'https://api.botframework.com',
    'https://x.teams.microsoft.com/y',
  ])
    assert.ok(connectorOf(good, undefined), good)
  for (const bad of [
    'http://smba.trafficmanager.net/emea/',
    'https://smba.trafficmanager.net:8443/',
    'https://smba.trafficmanager.net.evil.example/',
    'https://evil.example/smba.trafficmanager.net',
    'https://user@smba.trafficmanager.net/',
    'https://smba.trafficmanager.net/?x=https://evil.example',
    'https://xtrafficmanager.net/',
    'https://evilbotframework.com/',
    'https://other.trafficmanager.net/',
    'smba.trafficmanager.net',
    7,
  ])
    assert.is(connectorOf(bad, undefined), undefined, String(bad))
})

test('a message is acknowledged after the daemon has it, and conversations survive a restart', async () => {
  const { daemon, fake, send, message } = await start()
  daemon.ingest = () => {
    throw new RpcError(-32000, 'gone', { code: 'bridge_not_found' })
  }
  const activity = message('later')
  assert.is((await send(activity)).status, 503)
  daemon.ingest = ({ idempotency_key }) => ({ idempotency_key, outcome: 'prompted' })
  assert.is((await send(activity)).status, 200)
  await send(message('x', { ...inChannel, entities: [mention] }))
  const puts = daemon.values.size
  assert.ok(puts > 0)
  const again = await start({ values: daemon.values, microsoft: fake })
  assert.is((await again.daemon.say('bri_1', { peer_id: ANN }, 'an answer')).status, 'delivered')
  assert.is((await again.daemon.say('bri_1', { group_id: CHANNEL, thread_id: '500' }, 'another')).status, 'delivered')
  assert.equal(
    [...fake.messages.values()].map(({ conversation }) => conversation),
    ['a:1ann', `${CHANNEL};messageid=500`],
  )
})

test('rate limits are obeyed, and failures say whether a message was sent', async () => {
  const { daemon, fake, send, message } = await start()
  await send(message('hi'))
  let answer: Answer | undefined
  fake.instead = ({ path }) => (path.startsWith('/v3/') ? answer : undefined)
  const say = async (next: Answer | undefined, more = {}) => {
    answer = next
    return daemon.say('bri_1', { peer_id: ANN }, 'x', more)
  }
  const limited = await say({ status: 429, headers: { 'retry-after': '7' } })
  assert.ok(limited.status === 'not_sent' && !limited.permanent && limited.retry_after_ms === 7000)
  assert.is((await daemon.status('degraded')).reason, 'rate_limited')
  const before = daemon.reports.length
  assert.is((await say(undefined)).status, 'delivered')
  await daemon.status('ready', before)
  for (const status of [412, 502, 503, 504]) {
    const result = await say({ status })
    assert.ok(result.status === 'not_sent' && !result.permanent, String(status))
  }
  assert.is((await say({ status: 500 })).status, 'unknown')
  assert.is((await say({ cut: true })).status, 'unknown')
  const edit = await say({ status: 500 }, { remote_message_id: '1000' })
  assert.ok(edit.status === 'not_sent' && !edit.permanent, 'a change may be made twice')
  for (const [status, kind] of [
    [400, 'unsupported_capability'],
    [403, 'permission_denied'],
    [404, 'unknown_destination'],
    [413, 'unsupported_capability'],
  ] as const) {
    const result = await say({ status, body: { error: { code: 'BotNotInConversationRoster', message: 'no' } } })
    assert.ok(result.status === 'not_sent' && result.permanent && result.kind === kind, String(status))
  }
  const long = await daemon.say('bri_1', { peer_id: ANN }, '語'.repeat(10_000))
  assert.ok(long.status === 'not_sent' && long.permanent && long.kind === 'unsupported_capability')
  for (const [target, more] of [
    [{ peer_id: 'ben' }, {}],
    [{ group_id: '19:other@thread.v2' }, {}],
    [{ peer_id: ANN, thread_id: '5/../x' }, {}],
    [{ peer_id: ANN }, { remote_message_id: 'a b' }],
  ] as const) {
    const result = await daemon.say('bri_1', target, 'x', more)
    assert.ok(result.status === 'not_sent' && result.kind === 'unknown_destination', JSON.stringify(target))
  }
})

test('a revoked token is replaced once, and an expiring one before its end', async () => {
  const { daemon, fake, send, message } = await start({ secrets: { app_tenant_id: TENANT } })
  assert.is(fake.asked('POST', new RegExp(`^/${TENANT}/oauth2`)).length, 1)
  const form = new URLSearchParams(fake.asked('POST', /oauth2/)[0]?.body)
  assert.is(form.get('scope'), 'https://api.botframework.com/.default')
  await send(message('hi'))
  fake.tokens++
  assert.is((await daemon.say('bri_1', { peer_id: ANN }, 'one')).status, 'delivered')
  assert.is(fake.asked('POST', /oauth2/).length, 2)
  fake.instead = ({ path }) => (path.startsWith('/v3/') ? { status: 401 } : undefined)
  const refused = await daemon.say('bri_1', { peer_id: ANN }, 'two')
  assert.ok(refused.status === 'not_sent' && refused.permanent && refused.kind === 'missing_token')
  assert.is((await daemon.status('auth_required')).reason, 'auth_failed')
  const brief = await FakeMicrosoft.start()
  brief.lasts = 200
  const other = await start({ microsoft: brief })
  await other.send(other.message('hi'))
  await other.daemon.say('bri_1', { peer_id: ANN }, 'one')
  assert.is(brief.tokens, 2)
})

test('an invalid target or configuration is reported before anything is sent', async () => {
  const wrong = await start({ secrets: { app_password: 'wrong' }, expected: 'auth_required' })
  assert.match(wrong.daemon.reports.at(-1)?.message ?? '', /invalid_client 7000215.*app_password/)
  assert.not.match(JSON.stringify(wrong.daemon.reports), /a~password/)
  await start({ secrets: { app_id: 'x' }, expected: 'auth_required' })
  await start({ more: { login_url: 'http://127.0.0.1:1' }, expected: 'degraded' })
  for (const more of [
    { tenant_id: 'x' },
    { service_url: 'http://connector.example.org' },
    { login_url: 'ftp://127.0.0.1' },
    { openid_url: 'https://x.example/?y' },
    { listen_addr: '0.0.0.0:1' },
  ])
    await start({ more, expected: 'error' })
  const { daemon, fake, send, message } = await start({ more: { public_url: 'https://bots.example.org/api/messages' } })
  const checks = async () =>
    Object.fromEntries((await daemon.verify('bri_1')).map(({ check, status }) => [check, status]))
  assert.equal(await checks(), { 'teams.login': 'pass', 'teams.keys': 'pass', 'teams.endpoint': 'warn' })
  assert.is(daemon.reports.at(-1)?.webhook_public_url, 'https://bots.example.org/api/messages')
  await send(message('hi'))
  fake.instead = ({ path }) => (path === '/openid' ? { status: 500 } : undefined)
  assert.equal(await checks(), { 'teams.login': 'pass', 'teams.keys': 'fail', 'teams.endpoint': 'pass' })
})

test('a message waits until the Bot Connector keys are loaded', async () => {
  const fake = await FakeMicrosoft.start()
  fake.instead = ({ path }) => (path === '/keys' ? { status: 500 } : undefined)
  const { send, message } = await start({ microsoft: fake })
  assert.is((await send(message('hi'))).status, 503)
})

test('incoming mentions lose their markup, and outgoing ones their effect', () => {
  const bot = '28:bot'
  const names = (text: string, name = 'Helper', id = bot) => [{ type: 'mention', text, mentioned: { id, name } }]
  assert.equal(heard('<at>Helper</at> hi', names('<at>Helper</at>'), bot), { text: 'hi', named: true })
  assert.equal(heard('a <at>Helper</at>&nbsp;b', names('<at>Helper</at>&nbsp;'), bot), { text: 'a b', named: true })
  assert.equal(heard('<at>$&</at>', names('<at>$&</at>', '$&', '29:x'), bot), { text: '@$&', named: false })
  assert.equal(heard('<at id="0">Ann B</at> x', 'none', bot), { text: '@Ann B x', named: false })
  assert.equal(heard('x', [null, 7, { type: 'mention' }, { type: 'mention', mentioned: { id: 7 } }], bot), {
    text: 'x',
    named: false,
  })
  assert.is(
    quiet('<at>Ann</at> <AT id="1">x</AT > < at> a<attic> 1 <at'),
    '<\u200bat>Ann<\u200b/at> <\u200bAT id="1">x<\u200b/AT > <\u200b at> a<attic> 1 <\u200bat',
  )
})

test.run()
