import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { RpcError, realTiming } from '../../../packages/bridge-kit/src/index.js'
import { openTelegram } from '../../../packages/bridge-telegram/src/bridge.js'
import { manifest } from '../../../packages/bridge-telegram/src/manifest.js'
import { builtBridge } from '../bridge-kit/built.js'
import { managed, ScriptedDaemon } from '../bridge-kit/scripted-daemon.js'
import { BotApi, TOKEN } from './bot-api.js'

const ID = 'bri_1'
/** Waits of the adapter pass quickly. */
const timing = { ...realTiming, sleep: (ms: number, signal?: AbortSignal) => realTiming.sleep(ms / 50, signal) }
const group = { id: -100500, type: 'supergroup', title: 'Ops', is_forum: true }

let api: BotApi
let daemon: ScriptedDaemon

const config = (more: object = {}) =>
  managed(ID, { api_root: api.root, poll_seconds: 2, ...more }, { bot_token: TOKEN })
const start = async (instance = config()) => {
  daemon = ScriptedDaemon.inProcess({ ...manifest, open: (one, host) => openTelegram(one, host, timing) }, timing)
  await daemon.initialize([instance])
}

test.before.each(async () => {
  api = await BotApi.start()
})
test.after.each(async () => {
  await daemon?.shutdown()
  await api.stop()
})

test('a private chat delivers the sender and gets a growing answer', async () => {
  await start()
  await daemon.status('ready')
  await api.write('how many files?')
  const event = await daemon.heard('how many files?')
  assert.ok(event.addressed)
  assert.equal(event.sender, { id: '42', username: 'ann', display_name: 'Ann', authenticated: true })
  assert.is(event.peer_id, '42')
  assert.is(event.group_id, undefined)
  const first = await daemon.say(ID, { peer_id: '42' }, 'I count', { event: 'start' })
  assert.is(first.status, 'delivered')
  const { remote_message_id: id = '' } = first as { remote_message_id?: string }
  assert.equal(await daemon.say(ID, { peer_id: '42' }, 'I count **seven**', { remote_message_id: id }), first)
  assert.is(api.texts.get(Number(id)), 'I count seven')
  const edit = api.calls.find(({ method }) => method === 'editMessageText')
  assert.equal(edit?.body.entities, [{ type: 'bold', offset: 8, length: 5 }])
  assert.equal(await daemon.say(ID, { peer_id: '42' }, 'I count **seven**', { remote_message_id: id }), first)
})

test('the adapter works with the emulator', async () => {
  await start(config({ api_root: api.bare }))
  await daemon.status('ready')
  await api.write('hello')
  await daemon.heard('hello')
  assert.is((await daemon.say(ID, { peer_id: '42' }, 'hello, Ann')).status, 'delivered')
})

test('an update is confirmed when the daemon has it', async () => {
  await start()
  await daemon.status('ready')
  let refusals = 0
  daemon.ingest = ({ idempotency_key }) => {
    if (refusals++ < 3) throw new RpcError(-32000, 'draining', { code: 'bridge_not_accepting', retry_after_ms: 50 })
    return { idempotency_key, outcome: 'prompted' }
  }
  await api.write('one')
  await api.write('two')
  await daemon.heard('two')
  await daemon.heard('one')
  const offsets = () => api.calls.filter(({ method }) => method === 'getUpdates').map(({ body }) => body.offset)
  assert.equal(new Set(offsets()), new Set([undefined]), 'nothing is confirmed before')
  await api.write('three')
  await daemon.heard('three')
  assert.ok(offsets().some(offset => offset !== undefined))
  assert.is(daemon.events.length, 3)
})

test('an update that the daemon refuses is kept by Telegram, and a permanently refused one blocks no other', async () => {
  await start()
  await daemon.status('ready')
  let failures = 0
  daemon.ingest = ({ idempotency_key, text }) => {
    if (text === 'bad') throw new RpcError(-32000, 'no event', { code: 'bridge_event_invalid' })
    if (text === 'unlucky' && failures++ < 10) throw new RpcError(-32000, 'disk full', { code: 'store_failed' })
    return { idempotency_key, outcome: 'prompted' }
  }
  await api.write('bad')
  await api.write('unlucky')
  await daemon.heard('unlucky')
  await api.write('next')
  await daemon.heard('next')
  assert.is(daemon.events.filter(({ text }) => text === 'unlucky').length, 1)
})

test('a second poller gives an error with the next step', async () => {
  api.refuse = ({ method }) =>
    method === 'getUpdates'
      ? { error_code: 409, description: 'Conflict: terminated by other getUpdates request' }
      : undefined
  await start()
  const { message = '' } = await daemon.status('error')
  assert.match(message, /another program asks for the updates of this bot.*stop it.*\/revoke/)
})

test('two instances with one token stop competing', async () => {
  daemon = ScriptedDaemon.inProcess({ ...manifest, open: (one, host) => openTelegram(one, host, timing) }, timing)
  const second = { ...config(), instance: { ...config().instance, id: 'bri_2' } }
  await daemon.initialize([config(), second])
  const { message = '' } = await daemon.status('error')
  assert.match(message, 'another program asks for the updates')
})

test('a webhook of another program is removed only with the setting', async () => {
  api.webhook = 'https://example.test/hook'
  await start()
  const { reason, message = '' } = await daemon.status('error')
  assert.is(reason, 'webhook_invalid')
  assert.match(message, /replace_webhook/)
  assert.is(api.webhook, 'https://example.test/hook')
  await daemon.set([config({ replace_webhook: true })])
  await daemon.status('ready')
  assert.is(api.webhook, '')
})

test('a refused, malformed or missing token is reported', async () => {
  api.refuse = () => ({ error_code: 401, description: 'Unauthorized' })
  await start()
  const { message = '' } = await daemon.status('auth_required')
  assert.match(message, '/token to @BotFather')
  for (const secrets of [{ bot_token: 'x/../y' }, {}]) {
    const from = daemon.reports.length
    await daemon.set([managed(ID, { api_root: api.root }, secrets as Record<string, string>)])
    await daemon.status('auth_required', from)
  }
  assert.not.ok(JSON.stringify(daemon.reports).includes(TOKEN))
})

test('an unreachable Telegram degrades the instance, which recovers; no report shows the token', async () => {
  await start()
  await daemon.status('ready')
  api.refuse = ({ method }) => (method === 'getUpdates' ? { error_code: 502, description: 'Bad Gateway' } : undefined)
  await api.write('wake up')
  await daemon.status('degraded')
  const from = daemon.reports.length
  api.refuse = () => undefined
  await daemon.status('ready', from)
  await daemon.heard('wake up')
  assert.not.ok(JSON.stringify(daemon.reports).includes(TOKEN))
})

test('markup refused by Telegram is sent as plain text', async () => {
  await start()
  await daemon.status('ready')
  api.refuse = ({ body }) =>
    ((body.entities ?? []) as { type: string }[]).some(({ type }) => type === 'bold')
      ? { error_code: 400, description: "Bad Request: can't parse entities: strange" }
      : undefined
  const { status } = await daemon.say(ID, { peer_id: '42' }, 'a **bold** word for @bob_the_builder')
  assert.is(status, 'delivered')
  const { text, entities } = api.sent.at(-1) ?? {}
  assert.is(text, 'a **bold** word for @bob_the_builder')
  assert.equal(entities, [{ type: 'code', offset: 20, length: 16 }], 'a person is not mentioned by an agent')
})

test('a message has at most 4,096 UTF-16 units; a longer one is refused before it is sent', async () => {
  await start()
  await daemon.status('ready')
  assert.is((await daemon.say(ID, { peer_id: '42' }, '😀'.repeat(2048))).status, 'delivered')
  const result = await daemon.say(ID, { peer_id: '42' }, `${'😀'.repeat(2048)}!`)
  assert.is(result.status, 'not_sent')
  assert.is(api.sent.length, 1)
})

test('the answer of Telegram decides whether a message is retried', async () => {
  await start()
  await daemon.status('ready')
  const answers: readonly (readonly [code: number, description: string, expected: object])[] = [
    [429, 'Too Many Requests', { permanent: false, kind: 'transient_delivery_failure', retry_after_ms: 7000 }],
    [403, 'Forbidden: bot was blocked by the user', { permanent: true, kind: 'permission_denied' }],
    [400, 'Bad Request: chat not found', { permanent: true, kind: 'unknown_destination' }],
    [400, 'Bad Request: TOPIC_CLOSED', { permanent: true, kind: 'unknown_destination' }],
    [400, 'Bad Request: not enough rights to send text messages', { permanent: true, kind: 'permission_denied' }],
    [401, 'Unauthorized', { permanent: true, kind: 'missing_token' }],
  ]
  for (const [error_code, description, expected] of answers) {
    api.refuse = ({ method }) =>
      method === 'sendMessage' ? { error_code, description, parameters: { retry_after: 7 } } : undefined
    const result = await daemon.say(ID, { peer_id: '42' }, 'x')
    const { message, status, ...rest } = result as { message: string; status: string }
    assert.is(status, 'not_sent', description)
    assert.match(message, description)
    assert.equal(rest, expected, description)
  }
  api.refuse = ({ method }) =>
    method.endsWith('Message') || method === 'editMessageText'
      ? { error_code: 500, description: 'Internal' }
      : undefined
  assert.is((await daemon.say(ID, { peer_id: '42' }, 'x')).status, 'unknown', 'it may have been sent')
  const edit = await daemon.say(ID, { peer_id: '42' }, 'x', { remote_message_id: '5' })
  assert.is(edit.status, 'not_sent', 'an edit is repeated without harm')
  const strange = await daemon.say(ID, { peer_id: 'x/y' }, 'x')
  assert.is((strange as { kind: string }).kind, 'unknown_destination')
})

test('a network failure is reported as not sent or as unknown', async () => {
  await start()
  await daemon.status('ready')
  assert.is((await daemon.say(ID, { peer_id: '42' }, 'x')).status, 'delivered')
  await api.stop()
  const down = (await daemon.say(ID, { peer_id: '42' }, 'x')) as { status: string; message: string }
  assert.is(down.status, 'not_sent')
  assert.not.ok(down.message.includes('AAtest'), down.message)
  api = await BotApi.start()
})

test('group messages that mention the bot, reply to it or are its commands are addressed', async () => {
  await start()
  await daemon.status('ready')
  const bob = { id: 7, first_name: 'Bob', is_bot: false }
  const say = (text: string, more: object = {}) => api.write(text, { chat: group, from: bob, ...more })
  await say('good morning')
  await say('@TestNameBot how are you', { entities: [{ type: 'mention', offset: 0, length: 12 }] })
  await say('I asked @TestNameBotty', { entities: [{ type: 'mention', offset: 8, length: 14 }] })
  await say('and you?', { reply_to_message: { message_id: 3, from: { id: 666, is_bot: true }, chat: group } })
  await say('/cancel@testnamebot', { entities: [{ type: 'bot_command', offset: 0, length: 19 }] })
  await say('/cancel@otherbot', { entities: [{ type: 'bot_command', offset: 0, length: 16 }] })
  const [morning, named, other, reply, command, foreign] = [
    await daemon.heard('good morning'),
    await daemon.heard('how are you'),
    await daemon.heard('I asked @TestNameBotty'),
    await daemon.heard('and you?'),
    await daemon.heard('/cancel'),
    await daemon.heard('/cancel@otherbot'),
  ]
  assert.equal(
    [morning, named, other, reply, command, foreign].map(event => event.addressed),
    [false, true, false, true, true, false],
  )
  assert.equal([command.family, foreign.family], ['command', 'message'])
  assert.is(named.group_id, '-100500')
  assert.is(named.peer_id, '7')
  assert.is(reply.reply_to_message_id, '3')
})

test('an anonymous group administrator is no user, and forwarded channel posts are not addressed', async () => {
  await start()
  await daemon.status('ready')
  await api.write('as the group', { chat: group, sender_chat: group, from: { id: 1087968824, is_bot: true } })
  await api.write('news', {
    chat: group,
    sender_chat: { id: -1007, type: 'channel', title: 'News' },
    is_automatic_forward: true,
  })
  assert.not((await daemon.heard('as the group')).sender.authenticated)
  assert.ok((await daemon.heard('news')).automatic)
})

test('forum topics have events, answers and targets', async () => {
  await start()
  await daemon.status('ready')
  const first = {
    message_id: 9,
    chat: group,
    from: { id: 666, is_bot: true },
    forum_topic_created: { name: 'Deploys' },
  }
  const topic = { chat: group, is_topic_message: true, message_thread_id: 9, reply_to_message: first }
  await api.write('in the topic', topic)
  const event = await daemon.heard('in the topic')
  assert.is(event.thread_id, '9')
  assert.not(event.addressed, 'the first message of a topic is no question to the bot')
  await daemon.say(ID, { group_id: '-100500', thread_id: '9' }, 'here')
  assert.is(api.sent.at(-1)?.message_thread_id, 9)
  await daemon.say(ID, { group_id: '-100500', thread_id: '9' }, '', { event: 'typing' })
  const { body: sign } = api.calls.find(({ method }) => method === 'sendChatAction') ?? {}
  assert.equal([sign?.action, sign?.message_thread_id], ['typing', 9])
  assert.is(api.sent.length, 1, 'a sign that somebody writes is no message')
  const targets = await daemon.targets(ID)
  assert.equal(
    targets.map(({ target_type: type, display_name: name, thread_id: thread }) => [type, name, thread]),
    [
      ['group', 'Ops', undefined],
      ['thread', 'Deploys', '9'],
    ],
  )
})

test('a group upgraded to a supergroup is followed', async () => {
  await start()
  await daemon.status('ready')
  api.refuse = ({ method, body }) =>
    method === 'sendMessage' && body.chat_id === '-5'
      ? {
          error_code: 400,
          description: 'Bad Request: group chat was upgraded to a supergroup chat',
          parameters: { migrate_to_chat_id: -100777 },
        }
      : undefined
  assert.is((await daemon.say(ID, { group_id: '-5' }, 'hello')).status, 'delivered')
  assert.is(api.sent.at(-1)?.chat_id, '-100777')
})

test('edited messages, buttons and channel posts are events', async () => {
  await start()
  await daemon.status('ready')
  const chat = { id: 42, type: 'private', first_name: 'Ann' }
  const from = { id: 42, first_name: 'Ann', is_bot: false }
  api.update({ edited_message: { message_id: 4, date: 1, chat, from, text: 'I meant eight' } })
  api.update({ callback_query: { id: 'q', from, data: 'allow:BCDFG', message: { message_id: 4, chat } } })
  assert.is((await daemon.heard('I meant eight')).family, 'edit')
  const pressed = await daemon.until(() => daemon.events.find(event => event.family === 'action'), 'the button')
  assert.is(pressed.action_id, 'allow:BCDFG')
  assert.ok(pressed.sender.authenticated)
})

test('files are delivered as bytes, and oversized ones as text', async () => {
  await start()
  await daemon.status('ready')
  api.files.set('doc-1', Buffer.from('a,b\n1,2\n'))
  const document = { file_id: 'doc-1', file_name: '../table.csv', mime_type: 'text/csv', file_size: 8 }
  await api.write('', { text: undefined, caption: 'what is in it?', document })
  const event = await daemon.heard('what is in it?')
  assert.equal(event.attachments, [
    { name: '.._table.csv', mime_type: 'text/csv', data: Buffer.from('a,b\n1,2\n').toString('base64') },
  ])
  api.files.set('doc-2', Buffer.alloc(9 * 1024 * 1024))
  await api.write('', { text: undefined, caption: 'and this?', document: { file_id: 'doc-2', file_name: 'big.bin' } })
  const big = await daemon.until(() => daemon.events.find(({ text = '' }) => text.startsWith('and this?')), 'the file')
  assert.is(big.text, 'and this?\n[The file big.bin is not attached: it is larger than 8 MiB.]')
  assert.is(big.attachments, undefined)
})

test('verify names missing permissions', async () => {
  api.me = { can_read_all_group_messages: false }
  api.chats.set('@ops_room', group)
  await start(config({ group: { reply: 'all' }, chats: ['@ops_room', '-4'] }))
  await daemon.status('ready')
  const checks = await daemon.verify(ID)
  assert.equal(
    checks.map(({ check, status }) => `${check} ${status}`),
    [
      'telegram.token pass',
      'telegram.updates pass',
      'telegram.privacy fail',
      'telegram.chat @ops_room pass',
      'telegram.chat -4 fail',
    ],
  )
  assert.match(checks[2]?.remediation ?? '', '/setprivacy')
})

test('the built file passes a message and an answer', async () => {
  daemon = ScriptedDaemon.ofProgram(builtBridge('telegram'))
  await daemon.initialize([config()])
  await daemon.status('ready')
  await api.write('hello')
  await daemon.heard('hello')
  assert.is((await daemon.say(ID, { peer_id: '42' }, 'hello, **Ann**')).status, 'delivered')
  assert.is(api.sent[0]?.text, 'hello, Ann')
})

test.run()
