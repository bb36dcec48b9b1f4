import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { openDiscord } from '../../../packages/bridge-discord/src/bridge.js'
import { manifest } from '../../../packages/bridge-discord/src/manifest.js'
import { RpcError, realTiming } from '../../../packages/bridge-kit/src/index.js'
import { builtBridge } from '../bridge-kit/built.js'
import { managed, ScriptedDaemon } from '../bridge-kit/scripted-daemon.js'
import { FakeDiscord, GUILD, ME, TOKEN } from './fake-discord.js'

const ID = 'bri_1'
/** The pause between two looks for a message passes quickly. */
const timing = {
  ...realTiming,
  sleep: (ms: number, signal?: AbortSignal) => realTiming.sleep(ms === 4000 ? 50 : ms, signal),
}
const bot = { id: ME, username: 'svc', bot: true }

let discord: FakeDiscord
let daemon: ScriptedDaemon

const config = (more: object = {}) => managed(ID, { api_url: discord.apiUrl, ...more }, { bot_token: TOKEN })
const start = async (...instances: ReturnType<typeof managed>[]) => {
  daemon = ScriptedDaemon.inProcess({ ...manifest, open: (one, host) => openDiscord(one, host, timing) })
  await daemon.initialize(instances.length === 0 ? [config()] : instances)
}
const ready = async (...instances: ReturnType<typeof managed>[]) => {
  await start(...instances)
  await daemon.status('ready')
}

test.before.each(async () => {
  discord = await FakeDiscord.start()
})
test.after.each(async () => {
  await daemon?.shutdown()
  await discord.stop()
})

test('a mention in a channel is answered, and the answer grows by edits', async () => {
  await ready()
  const question = discord.write(`<@${ME}> how many files does <@43> have?`, {
    mentions: [bot, { id: '43', username: 'bob', global_name: null }],
  })
  const event = await daemon.heard('how many files does @bob have?')
  assert.ok(event.addressed)
  assert.equal(event.sender, { id: '42', username: 'ann', display_name: 'Ann', authenticated: true })
  assert.equal([event.group_id, event.peer_id, event.thread_id], ['10', '42', undefined])
  const more = { event: 'start', reply_to_message_id: String(question.id) } as const
  const first = await daemon.say(ID, { group_id: '10' }, 'I count', more)
  assert.is(first.status, 'delivered')
  const { remote_message_id: id = '' } = first as { remote_message_id?: string }
  assert.equal(await daemon.say(ID, { group_id: '10' }, 'I count **seven**', { remote_message_id: id }), first)
  assert.equal(
    discord.messages.map(({ content }) => content),
    ['I count **seven**'],
  )
  const [post] = discord.called('POST', /messages$/)
  assert.equal(post?.message_reference, { message_id: question.id, fail_if_not_exists: false })
  await daemon.say(ID, { group_id: '10' }, 'a second part', { ...more, part: 1 })
  assert.is(discord.called('POST', /messages$/).at(-1)?.message_reference, undefined, 'only the first part points back')
})

test('an agent cannot mention anyone', async () => {
  await ready()
  const sent = await daemon.say(ID, { group_id: '10' }, '@everyone @here <@42> <@&7>')
  const { remote_message_id: id = '' } = sent as { remote_message_id?: string }
  await daemon.say(ID, { group_id: '10' }, '@everyone again', { remote_message_id: id })
  const bodies = [...discord.called('POST', /messages$/), ...discord.called('PATCH', /messages/)]
  assert.equal(
    bodies.map(body => body.allowed_mentions),
    [
      { parse: [], replied_user: false },
      { parse: [], replied_user: false },
    ],
  )
})

test('direct messages and replies to the bot are addressed; threads belong to their channel', async () => {
  await ready()
  discord.write('hello', { guild_id: undefined, channel_id: '555' })
  discord.write('good morning')
  discord.write('and you?', { referenced_message: { author: bot }, message_reference: { message_id: '7' }, type: 19 })
  discord.write('in a thread', { channel_id: '20' })
  discord.write('in an unknown thread', { channel_id: '21' })
  discord.write('by a webhook', { webhook_id: '8', author: { id: '8', username: 'ann' } })
  discord.write('ann pinned a message', { type: 6 })
  const [direct, morning, reply, thread, other, webhook] = [
    await daemon.heard('hello'),
    await daemon.heard('good morning'),
    await daemon.heard('and you?'),
    await daemon.heard('in a thread'),
    await daemon.heard('in an unknown thread'),
    await daemon.heard('by a webhook'),
  ]
  assert.equal(
    [direct, morning, reply].map(({ addressed }) => addressed),
    [true, false, true],
  )
  assert.equal([direct.peer_id, direct.group_id], ['42', undefined])
  assert.equal([thread.group_id, thread.thread_id], ['10', '20'])
  assert.equal([other.group_id, other.thread_id], ['10', '21'])
  assert.equal([webhook.sender.authenticated, webhook.sender.is_bot], [false, true])
  await daemon.say(ID, { group_id: '10', thread_id: '20' }, 'here')
  await daemon.say(ID, { peer_id: '42' }, 'hello, Ann')
  await daemon.say(ID, { peer_id: '43' }, 'hello, Bob')
  assert.equal(
    discord.messages.map(({ channel_id: channel }) => channel),
    ['20', '555', '543'],
  )
  assert.is(daemon.events.length, 6)
})

test('a resumed session repeats events, and each is delivered once', async () => {
  await ready()
  discord.write('one')
  await daemon.heard('one')
  discord.drop(4000)
  await daemon.status('degraded')
  discord.write('two')
  await daemon.heard('two')
  await daemon.until(() => (daemon.reports.at(-1)?.status === 'ready' ? true : undefined), 'ready again')
  assert.is(discord.resumes, 1)
  assert.equal(
    daemon.events.map(({ text }) => text),
    ['one', 'two'],
  )
})

/** A process that was killed; what it kept is there for the next one. */
const restart = async (meanwhile: () => void) => {
  const { values } = daemon
  await daemon.shutdown()
  meanwhile()
  daemon = ScriptedDaemon.inProcess({ ...manifest, open: (one, host) => openDiscord(one, host, timing) })
  for (const [key, value] of values) daemon.values.set(key, value)
  await daemon.initialize([config()])
}
const kept = () => JSON.parse(daemon.values.get(`${ID}/positions`) ?? '{}') as Record<string, string>
const texts = () => daemon.events.map(({ text }) => text)

test('messages of a downtime are fetched once, oldest first; a room without news is not requested', async () => {
  await ready()
  discord.write('one')
  discord.write('direct one', { guild_id: undefined, channel_id: '555' })
  const last = discord.write('in a thread', { channel_id: '20' })
  await daemon.heard('in a thread')
  await daemon.until(
    () => (kept()[`${GUILD}/20`] === last.id && Object.keys(kept()).length === 3 ? true : undefined),
    'positions',
  )
  await restart(() => {
    discord.calls.length = 0
    for (let n = 1; n <= 150; n++) discord.write(`missed ${n}`, {}, false)
    discord.write('direct two', { guild_id: undefined, channel_id: '555' }, false)
  })
  await daemon.status('ready')
  discord.write('live')
  await daemon.heard('live')
  await daemon.heard('direct two')
  const inRoom = daemon.events.filter(({ group_id: group }) => group === '10')
  assert.equal(
    inRoom.map(({ text }) => text),
    [...Array.from({ length: 150 }, (_, n) => `missed ${n + 1}`), 'live'],
  )
  assert.equal([inRoom[0]?.sender.id, inRoom[0]?.sender.authenticated], ['42', true])
  const direct = daemon.events.find(({ text }) => text === 'direct two')
  assert.equal([direct?.group_id, direct?.addressed], [undefined, true])
  assert.is(discord.called('GET', /\/channels\/20\/messages/).length, 0)
  const { length } = daemon.events
  const { id } = discord.write('the last one')
  await daemon.until(() => (kept()[`${GUILD}/10`] === id ? true : undefined), 'the last position')
  await restart(() => {})
  await daemon.status('ready')
  discord.write('after all')
  await daemon.heard('after all')
  assert.equal(texts(), ['after all'], 'nothing comes again')
  assert.is(length, 152)
})

test('a message without an acknowledgment is fetched by the next process, also behind an acknowledged one', async () => {
  await ready()
  const first = discord.write('first')
  await daemon.heard('first')
  await daemon.until(() => (kept()[`${GUILD}/10`] === first.id ? true : undefined), 'a position')
  daemon.ingest = ({ text, idempotency_key }) => {
    if (text === 'refused') throw new RpcError(-32000, 'draining', { code: 'bridge_not_accepting', retry_after_ms: 50 })
    return { idempotency_key, outcome: 'prompted' }
  }
  discord.write('refused', { author: { id: '43', username: 'bob' } })
  await daemon.until(() => daemon.refused[0], 'a refusal')
  discord.write('taken')
  await daemon.heard('taken')
  discord.write('in a thread', { channel_id: '20' })
  await daemon.until(() => kept()[`${GUILD}/20`], 'positions that were kept after that')
  assert.is(kept()[`${GUILD}/10`], first.id)
  await restart(() => {})
  await daemon.heard('refused')
})

test('an inaccessible room and a room of a new server deliver no old messages', async () => {
  discord.write('before it came', {}, false)
  await ready()
  discord.write('hello')
  await daemon.heard('hello')
  assert.equal(texts(), ['hello'])
  await daemon.until(() => kept()[`${GUILD}/10`], 'a position')
  await restart(() => {
    discord.write('unseen', {}, false)
    discord.answer = ({ method, path }) =>
      method === 'GET' && path === '/channels/10/messages'
        ? { status: 403, body: { code: 50001, message: 'Missing Access' } }
        : undefined
  })
  await daemon.status('ready')
  discord.write('elsewhere', { channel_id: '20' })
  await daemon.heard('elsewhere')
  await daemon.until(
    () => (`${GUILD}/20` in kept() && !(`${GUILD}/10` in kept()) ? true : undefined),
    'it is forgotten',
  )
  assert.equal(texts(), ['elsewhere'])
})

test('two instances have separate sessions', async () => {
  const second = { ...config(), instance: { ...config().instance, id: 'bri_2' } }
  await ready(config(), second)
  await daemon.until(
    () => daemon.reports.find(one => one.bridge_instance_id === 'bri_2' && one.status === 'ready'),
    'both',
  )
  assert.is(discord.identified.length, 2)
  assert.is(discord.resumes, 0)
})

test('an event that the daemon refuses for now is kept until it accepts it', async () => {
  await ready()
  let refusals = 0
  daemon.ingest = ({ idempotency_key }) => {
    if (refusals++ < 3) throw new RpcError(-32000, 'draining', { code: 'bridge_not_accepting', retry_after_ms: 30 })
    return { idempotency_key, outcome: 'prompted' }
  }
  discord.write('are you there?')
  await daemon.heard('are you there?')
  assert.is(daemon.events.length, 1)
})

test('without the message content intent the bridge is degraded with the reason', async () => {
  discord.allowsContent = false
  await start()
  const { message = '', reason } = await daemon.status('degraded')
  assert.is(reason, 'tenant_config_invalid')
  assert.match(message, 'Message Content Intent is off')
  discord.write('', { guild_id: undefined, channel_id: '555', content: 'a direct message has its text' })
  await daemon.heard('a direct message has its text')
  const from = daemon.reports.length
  await daemon.set([config({ message_content: false })])
  await daemon.status('ready', from)
})

test('a message without text reports the missing intent', async () => {
  await ready()
  discord.write('', { embeds: [{}] })
  discord.write('', { author: { id: '5', username: 'ci', bot: true } })
  discord.write('')
  const { message = '' } = await daemon.status('degraded')
  assert.match(message, 'a message came without its text')
  assert.equal(daemon.events, [])
})

test('a refused, malformed or missing token is reported', async () => {
  const all = [{ bot_token: `x${TOKEN}` }, { bot_token: 'short' }, {}] as Record<string, string>[]
  await start(managed(ID, { api_url: discord.apiUrl }, all[0]))
  assert.match((await daemon.status('auth_required')).message ?? '', 'Reset Token')
  for (const secrets of all.slice(1)) {
    const from = daemon.reports.length
    await daemon.set([managed(ID, { api_url: discord.apiUrl }, secrets)])
    await daemon.status('auth_required', from)
  }
  assert.not.ok(JSON.stringify(daemon.reports).includes(TOKEN))
})

test('a token reset is noticed while the bridge runs', async () => {
  await ready()
  discord.drop(4004)
  assert.is((await daemon.status('auth_required')).reason, 'auth_failed')
})

test('the answer of Discord decides whether a message is retried', async () => {
  await ready()
  const json = (code: number, message = 'no') => ({ code, message })
  const slow = {
    'retry-after': '7',
    'x-ratelimit-limit': '5',
    'x-ratelimit-remaining': '0',
    'x-ratelimit-reset-after': '7',
    'x-ratelimit-bucket': 'b',
  }
  const answers: readonly (readonly [answer: object, expected: object])[] = [
    [
      { status: 403, body: json(50001) },
      { permanent: true, kind: 'permission_denied' },
    ],
    [
      { status: 404, body: json(10003) },
      { permanent: true, kind: 'unknown_destination' },
    ],
    [
      { status: 400, body: json(50035) },
      { permanent: true, kind: 'unsupported_capability' },
    ],
  ]
  for (const [n, [answer, expected]] of answers.entries()) {
    discord.answer = ({ method, path }) =>
      method === 'POST' && path.endsWith('messages') ? (answer as never) : undefined
    const result = await daemon.say(ID, { group_id: `3${n}` }, 'x')
    const { status, message, ...rest } = result as { status: string; message: string }
    assert.is(status, 'not_sent', message)
    assert.equal(rest, expected, message)
  }
  discord.answer = ({ method }) =>
    method === 'POST'
      ? { status: 429, headers: slow, body: { message: 'slow', retry_after: 7, global: false } }
      : undefined
  const limited = (await daemon.say(ID, { group_id: '40' }, 'x')) as { status: string; retry_after_ms: number }
  assert.is(limited.status, 'not_sent')
  assert.ok(limited.retry_after_ms >= 6000 && limited.retry_after_ms < 8000, String(limited.retry_after_ms))
  discord.answer = () => ({ status: 502, body: {} })
  assert.is((await daemon.say(ID, { group_id: '41' }, 'x')).status, 'unknown', 'it may have been sent')
  const edit = await daemon.say(ID, { group_id: '42' }, 'x', { remote_message_id: '5' })
  assert.is(edit.status, 'not_sent', 'an edit is repeated without harm')
  assert.is(((await daemon.say(ID, { group_id: '../x' }, 'x')) as { kind: string }).kind, 'unknown_destination')
})

test('a message has at most 2,000 code points; a longer one is refused before it is sent', async () => {
  await ready()
  assert.is((await daemon.say(ID, { group_id: '10' }, '😀'.repeat(2000))).status, 'delivered')
  assert.is((await daemon.say(ID, { group_id: '10' }, '😀'.repeat(2001))).status, 'not_sent')
  assert.is(discord.called('POST', /messages$/).length, 1)
})

test('a message with a lost reply is found in the gateway or the list; a retry creates no duplicate', async () => {
  await ready()
  const since = Date.now() - 60_000
  for (const [echoes, listsNonces] of [
    [true, true],
    [false, true],
    [false, false],
  ] as const) {
    Object.assign(discord, { echoes, listsNonces })
    const delivery = daemon.delivery(ID, { group_id: '10' }, `said once ${echoes} ${listsNonces}`)
    assert.is((await daemon.deliver(delivery)).status, 'delivered')
    const id = discord.messages.at(-1)?.id
    assert.equal(await daemon.settle(delivery, since), { outcome: 'delivered', remote_message_id: id })
    assert.equal(await daemon.deliver(delivery), { status: 'delivered', remote_message_id: id })
  }
  assert.is(discord.messages.length, 3)
  const never = daemon.delivery(ID, { group_id: '10' }, 'said never')
  assert.equal(await daemon.settle(never, since), { outcome: 'absent' })
  discord.answer = ({ method }) =>
    method === 'GET' ? { status: 403, body: { code: 50001, message: 'no' } } : undefined
  assert.equal(await daemon.settle(never, since), { outcome: 'unknown' })
})

test('files are delivered as bytes; files of other services are not fetched', async () => {
  await ready()
  discord.files.set('a', Buffer.from('a,b\n'))
  const file = (filename: string, more: object = {}) => ({
    id: '1',
    filename,
    size: 4,
    content_type: 'text/csv',
    url: `${discord.origin}/files/${filename}`,
    ...more,
  })
  discord.write('what is in it?', {
    attachments: [file('a'), file('b', { url: 'http://169.254.169.254/b' }), file('c', { size: 9_000_000 })],
  })
  const event = await daemon.until(() => daemon.events[0], 'the event')
  assert.equal(event.attachments, [{ name: 'a', mime_type: 'text/csv', data: Buffer.from('a,b\n').toString('base64') }])
  assert.is(
    event.text,
    'what is in it?\n[The file b is not attached: it is stored by another service.]\n[The file c is not attached: it is larger than 8 MiB.]',
  )
})

test('edits, deletions and targets work', async () => {
  await ready()
  const message = discord.write('seven')
  await daemon.heard('seven')
  discord.dispatch('MESSAGE_UPDATE', { ...message, embeds: [{}] })
  discord.dispatch('MESSAGE_UPDATE', { ...message, content: 'eight', edited_timestamp: '2023-11-14T22:14:00+00:00' })
  assert.is((await daemon.heard('eight')).family, 'edit')
  assert.is(daemon.events.length, 2, 'a preview of a link is no edit')
  const sent = await daemon.say(ID, { group_id: '10' }, 'gone soon')
  const gone = {
    event: 'delete',
    remote_message_id: (sent as { remote_message_id: string }).remote_message_id,
  } as const
  assert.is((await daemon.say(ID, { group_id: '10' }, '', gone)).status, 'delivered')
  assert.is((await daemon.say(ID, { group_id: '10' }, '', gone)).status, 'delivered', 'it is gone already')
  const count = discord.messages.length
  assert.is((await daemon.say(ID, { group_id: '10' }, '', { event: 'typing' })).status, 'delivered')
  assert.ok(discord.calls.some(({ method, path }) => method === 'POST' && path === '/channels/10/typing'))
  assert.is(discord.messages.length, count, 'a sign that somebody writes is no message')
  assert.equal(
    (await daemon.targets(ID)).map(({ display_name: name, target_type: type, qualifier }) => [name, type, qualifier]),
    [
      ['#ops', 'channel', 'Example'],
      ['deploys', 'thread', 'Example #ops'],
    ],
  )
})

test('verify names missing permissions', async () => {
  await ready()
  const checks = async () => (await daemon.verify(ID)).map(({ check, status }) => `${check} ${status}`)
  const all = ['discord.token', 'discord.message_content', 'discord.gateway', 'discord.servers']
  assert.equal(
    await checks(),
    all.map(name => `${name} pass`),
  )
  discord.allowsContent = false
  discord.dispatch('GUILD_DELETE', { id: GUILD })
  discord.write('after it')
  await daemon.heard('after it')
  assert.equal(await checks(), [
    'discord.token pass',
    'discord.message_content fail',
    'discord.gateway pass',
    'discord.servers warn',
  ])
})

test('the built file passes a message and an answer', async () => {
  daemon = ScriptedDaemon.ofProgram(builtBridge('discord'))
  await daemon.initialize([config()])
  await daemon.status('ready')
  discord.write('hello', { guild_id: undefined, channel_id: '555' })
  await daemon.heard('hello')
  assert.is((await daemon.say(ID, { peer_id: '42' }, 'hello, Ann')).status, 'delivered')
  assert.is(discord.messages[0]?.content, 'hello, Ann')
})

test.run()
