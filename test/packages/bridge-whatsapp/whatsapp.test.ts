import { createHmac } from 'node:crypto'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type Delivery, RpcError } from '../../../packages/bridge-kit/src/index.js'
import { openWhatsapp } from '../../../packages/bridge-whatsapp/src/bridge.js'
import { manifest } from '../../../packages/bridge-whatsapp/src/manifest.js'
import { marked } from '../../../packages/bridge-whatsapp/src/text.js'
import { freePort } from '../../harness/free-port.js'
import { type Answer, HttpEndpoint, type Received } from '../../harness/http-endpoint.js'
import { managed, ScriptedDaemon } from '../bridge-kit/scripted-daemon.js'

const NUMBER = '106540352242922'
const ANN = '16505551234'
const SECRETS = { access_token: 'EAAtoken', app_secret: 'a secret of the app'.replace(/ /g, '-'), verify_token: 'mine' }
const running = new Set<() => Promise<unknown>>()
test.after.each(async () => {
  for (const stop of running) await stop()
  running.clear()
})

/** The Graph API with one business number. */
class FakeGraph {
  endpoint!: HttpEndpoint
  readonly sent: Record<string, unknown>[] = []
  /** Answers in place of the API. */
  instead: (request: Received) => Answer | Promise<Answer> | undefined = () => undefined
  files: Readonly<Record<string, { readonly size: number; readonly url?: string }>> = {}

  static async start(): Promise<FakeGraph> {
    const fake = new FakeGraph()
    fake.endpoint = await HttpEndpoint.start(request => fake.instead(request) ?? fake.#answer(request))
    running.add(() => fake.endpoint.close())
    return fake
  }

  asked(method: string, path: RegExp): Received[] {
    return this.endpoint.received.filter(one => one.method === method && path.test(one.path))
  }

  #answer({ method, path, headers, body }: Received): Answer {
    if (headers.authorization !== 'Bearer EAAtoken') return graphError(190, 'Invalid OAuth access token', 401)
    const { pathname } = new URL(path, 'http://x')
    if (pathname === `/v24.0/${NUMBER}`) return { body: { display_phone_number: '+1 555-078-3881', id: NUMBER } }
    if (method === 'POST' && pathname === `/v24.0/${NUMBER}/messages`) {
      this.sent.push(JSON.parse(body))
      return { body: { messaging_product: 'whatsapp', messages: [{ id: `wamid.out${this.sent.length}` }] } }
    }
    const id = pathname.replace('/v24.0/', '')
    const file = this.files[id]
    if (file) return { body: { id, url: `${file.url ?? this.endpoint.url}/files/${id}`, file_size: file.size } }
    if (pathname.startsWith('/files/')) return { body: `bytes of ${pathname}` }
    return graphError(100, `Unsupported request ${path}`)
  }
}

const graphError = (code: number, details = 'why', status = 400): Answer => ({
  status,
  body: { error: { message: `(#${code}) title`, code, error_data: { messaging_product: 'whatsapp', details } } },
})

async function start(more: object = {}, secrets: object = SECRETS, expected = 'ready') {
  const graph = await FakeGraph.start()
  const port = await freePort()
  const daemon = ScriptedDaemon.inProcess({ ...manifest, open: openWhatsapp })
  running.add(() => daemon.shutdown())
  const url = `http://127.0.0.1:${port}/hooks/whatsapp`
  const config = {
    listen_addr: `127.0.0.1:${port}`,
    path: '/hooks/whatsapp',
    phone_number_id: NUMBER,
    api_url: graph.endpoint.url,
    ...more,
  }
  await daemon.initialize([managed('bri_1', config, secrets as Record<string, string>)])
  await daemon.status(expected as 'ready')
  const send = async (payload: unknown, secret: string = SECRETS.app_secret) => {
    const body = JSON.stringify(payload)
    const signature = createHmac('sha256', secret).update(body).digest('hex')
    const response = await fetch(url, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json', 'x-hub-signature-256': `sha256=${signature}` },
    })
    return { status: response.status, body: (await response.json().catch(() => undefined)) as Record<string, unknown> }
  }
  return { daemon, graph, send, url }
}

const change = (value: object, number: string = NUMBER) => ({
  field: 'messages',
  value: {
    messaging_product: 'whatsapp',
    metadata: { display_phone_number: '15550783881', phone_number_id: number },
    ...value,
  },
})
const webhook = (...changes: object[]) => ({
  object: 'whatsapp_business_account',
  entry: changes.map(one => ({ id: '102290129340398', changes: [one] })),
})
const contacts = [{ profile: { name: 'Ann' }, wa_id: ANN }]
let count = 0
const message = (type: string, content: object, more: object = {}) => ({
  from: ANN,
  id: `wamid.in${++count}`,
  timestamp: '1764324000',
  type,
  [type]: content,
  ...more,
})
const textMessage = (text: string, more: object = {}) => message('text', { body: text }, more)
const statuses = (id: string, status: string, error?: object) =>
  webhook(change({ statuses: [{ id, status, recipient_id: ANN, ...(error ? { errors: [error] } : {}) }] }))

test('the address is confirmed only with the verify token', async () => {
  const { url } = await start()
  const ask = async (token: string, mode = 'subscribe') => {
    const query = new URLSearchParams({ 'hub.mode': mode, 'hub.challenge': '1158201444', 'hub.verify_token': token })
    const response = await fetch(`${url}?${query}`)
    return [response.status, await response.text()]
  }
  assert.equal(await ask('mine'), [200, '1158201444'])
  assert.is((await ask('other'))[0], 403)
  assert.is((await ask('mine', 'unsubscribe'))[0], 403)
  assert.is((await fetch(url)).status, 403)
  assert.is((await fetch(url, { method: 'DELETE' })).status, 405)
})

test('a repeated message is one event, and the answer is a reply in WhatsApp markup', async () => {
  const { daemon, graph, send } = await start()
  const text = textMessage('what failed?', { context: { id: 'wamid.before', from: '15550783881' } })
  const update = webhook(change({ contacts, messages: [text] }))
  assert.is((await send(update)).status, 200)
  assert.is((await send(update)).status, 200)
  assert.equal(await daemon.heard('what failed?'), {
    bridge_instance_id: 'bri_1',
    idempotency_key: text.id,
    family: 'message',
    sender: { id: ANN, display_name: 'Ann', authenticated: true },
    peer_id: ANN,
    message_id: text.id,
    reply_to_message_id: 'wamid.before',
    text: 'what failed?',
    addressed: true,
    received_at: 1_764_324_000_000,
  })
  assert.is(daemon.events.length, 1)
  const result = await daemon.say('bri_1', { peer_id: ANN }, '**Nothing** failed, see [log](https://a.example/x).', {
    reply_to_message_id: text.id,
  })
  assert.equal(result, { status: 'delivered', remote_message_id: 'wamid.out1' })
  assert.equal(graph.sent, [
    {
      messaging_product: 'whatsapp',
      recipient_type: 'individual',
      to: ANN,
      context: { message_id: text.id },
      type: 'text',
      text: { preview_url: false, body: '*Nothing* failed, see log (https://a.example/x).' },
    },
  ])
})

test('several entries and kinds of messages in one request are events', async () => {
  const { daemon, send } = await start()
  const many = webhook(
    change({ contacts, messages: [textMessage('one'), message('button', { payload: 'p', text: 'Yes' })] }),
    change({ contacts, messages: [message('reaction', { message_id: 'wamid.x', emoji: '👍' })] }),
    change({
      contacts,
      messages: [
        message('interactive', { type: 'list_reply', list_reply: { id: 'l1', title: 'Second' } }),
        message('interactive', { type: 'button_reply', button_reply: { id: 'allow:BCDFG', title: 'Allow' } }),
        message('location', { latitude: 48.2, longitude: 16.37, name: 'Office' }),
        message('order', {}),
        message('unsupported', {}),
        message('constructor', {}),
        { ...textMessage('no id'), id: 7 },
        { ...textMessage('no sender'), from: '../../x' },
        null,
      ],
    }),
    { field: 'account_update', value: {} },
  )
  const { status, body } = await send(many)
  assert.is(status, 200)
  assert.is(body.taken, 6)
  assert.is((body.ignored as string[]).length, 6)
  assert.equal(
    daemon.events.map(({ family, text, action_id }) => [family, text, action_id]),
    [
      ['message', 'one', undefined],
      ['message', 'Yes', undefined],
      ['reaction', '👍', undefined],
      ['message', 'Second', undefined],
      ['action', 'Allow', 'allow:BCDFG'],
      ['message', '[Location: Office, 48.2, 16.37]', undefined],
    ],
  )
  assert.is(daemon.events[2]?.reply_to_message_id, 'wamid.x')
  for (const payload of [null, [], 'x', { entry: 'x' }, { entry: [{ changes: [7] }] }, webhook({ field: 'messages' })])
    assert.is((await send(payload)).status, 200)
  assert.is(daemon.events.length, 6)
})

test('users without a number and groups are supported', async () => {
  const { daemon, graph, send } = await start()
  const id = 'US.13491208655302741918'
  const hidden = { ...textMessage('hidden'), from: undefined, from_user_id: id }
  await send(
    webhook(change({ contacts: [{ profile: { name: 'Bo', username: 'bo' }, user_id: id }], messages: [hidden] })),
  )
  const event = await daemon.heard('hidden')
  assert.equal(event.sender, { id, username: 'bo', display_name: 'Bo', authenticated: true })
  assert.is(event.peer_id, id)
  await daemon.say('bri_1', { peer_id: id }, 'hello')
  assert.is(graph.sent[0]?.recipient, id)
  assert.is(graph.sent[0]?.to, undefined)
  const group = { group_id: 'Y2FwaV9ncm91cDox' }
  await send(
    webhook(change({ contacts, messages: [textMessage('among us', group), textMessage('@15550783881 you?', group)] })),
  )
  assert.not((await daemon.heard('among us')).addressed)
  assert.ok((await daemon.heard('you?')).addressed)
  await daemon.say('bri_1', group, 'hello all')
  assert.is(graph.sent[1]?.recipient_type, 'group')
  assert.is(graph.sent[1]?.to, group.group_id)
})

test('a wrong signature, another number and an oversized request are refused', async () => {
  const { daemon, send, url } = await start()
  assert.is((await send(webhook(change({ messages: [textMessage('forged')] })), 'other')).status, 401)
  const { status, body } = await send(webhook(change({ messages: [textMessage('not ours')] }, '999')))
  assert.is(status, 200)
  assert.equal(body.others, ['999'])
  const check = await daemon.request('bridges/webhook/register', { bridge_instance_id: 'bri_1' })
  assert.match((check as { remediation: string }).remediation, /phone number ID 999/)
  const headers = { 'x-hub-signature-256': `sha256=${'0'.repeat(64)}` }
  const huge = await fetch(url, { method: 'POST', body: 'x'.repeat(5 * 1024 * 1024), headers }).catch(() => undefined)
  assert.ok(huge === undefined || huge.status === 413)
  const long = 'x'.repeat(1024 * 1024)
  assert.is((await send(webhook(change({ messages: [textMessage(long)] })))).status, 200)
  assert.equal(
    daemon.events.map(({ text }) => text?.length),
    [long.length],
  )
})

test('a request is confirmed when each message is durable, and a repetition delivers only the rest', async () => {
  const { daemon, send } = await start()
  const two = webhook(change({ messages: [textMessage('first'), { ...textMessage('second'), from: '16505550000' }] }))
  const accept = daemon.ingest
  daemon.ingest = event => {
    if (event.text === 'second') throw new RpcError(-32000, 'gone', { code: 'bridge_not_found' })
    return accept(event)
  }
  assert.is((await send(two)).status, 503)
  daemon.ingest = accept
  assert.is((await send(two)).status, 200)
  assert.equal(
    daemon.events.map(({ text }) => text),
    ['first', 'second'],
  )
})

test('a file is fetched only from Meta, bounded, and keeps the order', async () => {
  const { daemon, graph, send } = await start()
  graph.files = {
    '11': { size: 20 },
    '12': { size: 9 * 1024 * 1024 },
    '13': { size: 20, url: 'https://evil.example' },
    '14': { size: 20 },
  }
  let release = () => {}
  const held = new Promise<void>(resolve => {
    release = resolve
  })
  graph.instead = ({ path }) => (path === '/files/11' ? held.then(() => ({ body: 'slow' })) : undefined)
  const file = message('document', { id: '11', filename: '../etc/pass wd', mime_type: 'text/plain', caption: 'look' })
  const first = send(webhook(change({ messages: [file] })))
  while (graph.asked('GET', /^\/files\/11/).length === 0) await new Promise(resolve => setImmediate(resolve))
  const second = send(webhook(change({ messages: [textMessage('behind it')] })))
  const again = send(webhook(change({ messages: [file] })))
  release()
  for (const { status } of await Promise.all([first, second, again])) assert.is(status, 200)
  assert.equal(
    daemon.events.map(({ text, attachments }) => [text, attachments]),
    [
      [
        'look',
        [
          {
            name: '.._etc_pass wd',
            mime_type: 'text/plain',
            data: Buffer.from(JSON.stringify('slow')).toString('base64'),
          },
        ],
      ],
      ['behind it', undefined],
    ],
  )
  assert.is(graph.asked('GET', /^\/files\/11/).length, 1)
  for (const id of ['12', '13', '15']) await send(webhook(change({ messages: [message('image', { id })] })))
  for (const [at, why] of [/larger than 8 MiB/, /not one of Meta/, /did not deliver it/].entries())
    assert.match(daemon.events[at + 2]?.text ?? '', why)
  await send(webhook(change({ messages: [message('sticker', { id: '14' }), message('audio', { id: '../me' })] })))
  assert.is(daemon.events[5]?.attachments?.[0]?.mime_type, 'image/webp')
  assert.is(daemon.events.length, 6)
})

test('a delayed refusal of WhatsApp is reported as failed, with the next step', async () => {
  const { daemon, send } = await start()
  const sent = await daemon.say('bri_1', { peer_id: ANN }, 'late')
  assert.equal(sent, { status: 'delivered', remote_message_id: 'wamid.out1' })
  const error = { code: 131047, title: 'Re-engagement message', error_data: { details: 'more than 24 hours' } }
  const failed = statuses('wamid.out1', 'failed', error)
  daemon.reportDelivery = () => {
    throw new RpcError(-32000, 'gone', { code: 'bridge_not_found' })
  }
  assert.is((await send(failed)).status, 503, 'the report is not durable')
  daemon.reportDelivery = () => 'recorded'
  assert.is((await send(failed)).status, 200)
  const [report] = daemon.deliveryReports
  assert.is(report?.remote_message_id, 'wamid.out1')
  assert.match(report?.reason ?? '', /131047.*24 hours.*template/)
  for (const status of ['sent', 'delivered', 'read', 'other']) await send(statuses('wamid.out1', status))
  await send(webhook(change({ statuses: [{ id: 7, status: 'failed' }, null, 'x'] })))
  assert.is(daemon.deliveryReports.length, 1)
  await send(statuses('wamid.out1', 'failed'))
  assert.is(daemon.deliveryReports.length, 2, 'an error may be missing')
})

test('errors map to limits, refused credentials, refused messages or unknown results', async () => {
  const { daemon, graph } = await start()
  let answer: Answer | undefined
  graph.instead = () => answer
  const say = async (next: Answer | undefined, more: Partial<Delivery> = {}) => {
    answer = next
    return daemon.say('bri_1', { peer_id: ANN }, 'x', more)
  }
  for (const code of [131056, 130429, 80007, 4]) {
    const limited = await say(graphError(code))
    assert.ok(limited.status === 'not_sent' && !limited.permanent && (limited.retry_after_ms ?? 0) >= 5000, `${code}`)
  }
  const reply = await say({ ...graphError(130429, '', 429), headers: { 'retry-after': '7' } })
  assert.ok(reply.status === 'not_sent' && reply.retry_after_ms === 7000)
  const before = daemon.reports.length
  assert.is((await say(undefined)).status, 'delivered')
  await daemon.status('ready', before)
  for (const [code, kind] of [
    [131047, 'permission_denied'],
    [131026, 'unknown_destination'],
    [131030, 'permission_denied'],
    [200, 'permission_denied'],
    [100, 'unsupported_capability'],
    [131051, 'unsupported_capability'],
  ] as const) {
    const result = await say(graphError(code))
    assert.ok(result.status === 'not_sent' && result.permanent && result.kind === kind, String(code))
  }
  const down = await say(graphError(131000, 'Something went wrong', 500))
  assert.ok(down.status === 'not_sent' && !down.permanent)
  assert.is((await say({ status: 502 })).status, 'unknown')
  assert.is((await say({ cut: true })).status, 'unknown')
  assert.is((await say({ body: {} })).status, 'unknown')
  const posts = graph.endpoint.received.length
  const edit = await say(undefined, { remote_message_id: 'wamid.1' })
  assert.ok(edit.status === 'not_sent' && edit.kind === 'unsupported_capability')
  for (const target of [{}, { peer_id: '+1 650' }, { peer_id: '1/../me' }, { group_id: 'a b' }]) {
    const result = await daemon.say('bri_1', target, 'x')
    assert.ok(result.status === 'not_sent' && result.kind === 'unknown_destination', JSON.stringify(target))
  }
  assert.is(graph.endpoint.received.length, posts)
  const token = await say(graphError(190, 'Session has expired', 401))
  assert.ok(token.status === 'not_sent' && token.permanent && token.kind === 'missing_token')
  assert.is((await daemon.status('auth_required')).reason, 'auth_failed')
})

test('an unreachable WhatsApp is retried; invalid settings and credentials are named', async () => {
  await start({ api_url: 'http://127.0.0.1:1' }, SECRETS, 'degraded')
  const expired = await start({}, { ...SECRETS, access_token: 'old' }, 'auth_required')
  assert.is((await expired.daemon.verify('bri_1'))[0]?.status, 'fail')
  for (const [slot, expected] of [
    ['access_token', 'auth_required'],
    ['app_secret', 'auth_required'],
    ['verify_token', 'auth_required'],
  ] as const) {
    const { daemon } = await start({}, { ...SECRETS, [slot]: '' }, expected)
    assert.match(daemon.reports.at(-1)?.message ?? '', new RegExp(slot))
  }
  await start({ phone_number_id: '1/me' }, SECRETS, 'error')
  await start({ api_url: 'http://graph.example.org' }, SECRETS, 'error')
  await start({ api_version: 'v24.0/me' }, SECRETS, 'error')
})

test('Markdown becomes WhatsApp markup without mentions', () => {
  assert.is(marked('# Title\n**b** _i_ ~~s~~ `c`'), '*Title*\n*b* _i_ ~s~ `c`')
  assert.is(marked('x\n```ts\nlet **a**\n```\ny'), 'x\n```\nlet **a**\n```\ny')
  assert.is(
    marked('hi @16505551234, @+1650, @all and @Everyone, ann@example.org'),
    'hi ＠16505551234, ＠+1650, ＠all and ＠Everyone, ann@example.org',
  )
  assert.is(marked('[https://a.example](https://a.example)'), 'https://a.example')
  const links = '[a](https://a.example/) '.repeat(160)
  assert.ok(marked(links).length <= 4096)
})

test.run()
