import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { RpcError, realTiming } from '../../../packages/bridge-kit/src/index.js'
import { openSlack } from '../../../packages/bridge-slack/src/bridge.js'
import { manifest } from '../../../packages/bridge-slack/src/manifest.js'
import { builtBridge } from '../bridge-kit/built.js'
import { managed, ScriptedDaemon } from '../bridge-kit/scripted-daemon.js'
import { APP_TOKEN, BOT, BOT_TOKEN, FakeSlack } from './fake-slack.js'

const ID = 'bri_1'
const LIMITS = { silenceMs: 1000, ackMs: 250 }
/** The pauses between two looks for a message, and between two messages of a channel, pass quickly. */
const QUICK = [4000, 1000]
/** Milliseconds of the pauses so far, and the time at which the clock stands still. */
const pauses: number[] = []
let stoppedAt: number | undefined
const timing = {
  ...realTiming,
  now: () => stoppedAt ?? realTiming.now(),
  sleep: (ms: number, signal?: AbortSignal) => {
    pauses.push(ms)
    return realTiming.sleep(QUICK.includes(ms) ? 50 : ms, signal)
  },
}
const secrets = { bot_token: BOT_TOKEN, app_token: APP_TOKEN }

let slack: FakeSlack
let daemon: ScriptedDaemon

const config = (more: object = {}) => managed(ID, { api_url: slack.apiUrl, ...more }, secrets)
const start = async (instance = config()) => {
  daemon = ScriptedDaemon.inProcess({ ...manifest, open: (one, host) => openSlack(one, host, timing, LIMITS) })
  await daemon.initialize([instance])
}
const ready = async (instance = config()) => {
  await start(instance)
  await daemon.status('ready')
}
/** Resolves when a condition holds. */
const holds = async (condition: () => boolean, what: string) => {
  const until = performance.now() + 15_000
  while (!condition()) {
    if (performance.now() > until) throw new Error(`waited for ${what}`)
    await realTiming.sleep(10)
  }
}

test.before.each(async () => {
  slack = await FakeSlack.start()
})
test.after.each(async () => {
  stoppedAt = undefined
  await daemon?.shutdown()
  await slack.stop()
})

test('a mention in a channel is one event with a growing answer in its thread', async () => {
  await ready()
  const text = `<@${BOT}> how many &lt;files&gt; in <#C1|ops>?`
  const ts = slack.write('C1', text)
  slack.event({ type: 'app_mention', channel: 'C1', user: 'U1ANN', text, ts, event_ts: ts })
  const event = await daemon.heard('how many <files> in #ops?')
  await holds(() => slack.acks.size === 2, 'both acknowledgements')
  assert.is(daemon.events.length, 1, 'the message and its mention are one event')
  assert.ok(event.addressed)
  assert.equal(event.sender, { id: 'U1ANN', authenticated: true, username: 'ann', display_name: 'ann' })
  assert.equal([event.group_id, event.peer_id, event.thread_id], ['C1', 'U1ANN', ts])
  const target = { group_id: 'C1', thread_id: ts }
  const first = await daemon.say(ID, target, 'I count', { event: 'start' })
  assert.is(first.status, 'delivered')
  const { remote_message_id: id = '' } = first as { remote_message_id?: string }
  assert.equal(await daemon.say(ID, target, 'I count **seven**', { remote_message_id: id }), first)
  assert.equal(
    slack.messages.map(({ text: now, thread_ts: thread }) => [now, thread]),
    [['I count *seven*', ts]],
  )
  const [post] = slack.called('chat.postMessage')
  assert.equal([post?.parse, post?.link_names, post?.unfurl_links], ['none', 'false', 'false'])
})

test('an agent cannot mention anyone', async () => {
  await ready()
  await daemon.say(
    ID,
    { group_id: 'C1' },
    '<!channel> <!here> <@U1ANN> <!subteam^S1> `<!everyone>` [x](https://a.test/?a|b)',
  )
  const { text = '' } = slack.messages[0] ?? {}
  assert.not.match(text, /<[!@#]/)
  assert.is(
    text,
    '&lt;!channel&gt; &lt;!here&gt; &lt;@U1ANN&gt; &lt;!subteam^S1&gt; `&lt;!everyone&gt;` <https://a.test/?a%7Cb|x>',
  )
})

test('direct messages, names and replies to the bot are addressed; its own messages are ignored', async () => {
  await ready()
  slack.write('D9', 'hello')
  slack.write('C1', 'good morning')
  slack.write('C1', 'and you?', { thread_ts: '1.1', parent_user_id: BOT })
  slack.write('C1', 'my own words', { user: BOT, bot_id: 'B0BOT' })
  slack.write('C1', 'a bot', { user: undefined, bot_id: 'B7', username: 'ci', subtype: 'bot_message' })
  slack.write('C1', 'ann has joined', { subtype: 'channel_join' })
  const [direct, morning, reply, bot] = [
    await daemon.heard('hello'),
    await daemon.heard('good morning'),
    await daemon.heard('and you?'),
    await daemon.heard('a bot'),
  ]
  assert.equal(
    [direct, morning, reply, bot].map(({ addressed }) => addressed),
    [true, false, true, false],
  )
  assert.equal([direct.peer_id, direct.group_id, direct.thread_id], ['U1ANN', undefined, undefined])
  assert.is(reply.thread_id, '1.1')
  assert.equal([bot.sender.is_bot, bot.sender.authenticated], [true, false])
  await holds(() => slack.acks.size === 6, 'all acknowledgements')
  assert.is(daemon.events.length, 4)
})

test('an envelope is acknowledged after the daemon has the event', async () => {
  await ready()
  let refusals = 0
  daemon.ingest = ({ idempotency_key }) => {
    if (refusals++ < 2) throw new RpcError(-32000, 'draining', { code: 'bridge_not_accepting', retry_after_ms: 400 })
    assert.is(slack.acks.size, 0)
    return { idempotency_key, outcome: 'prompted' }
  }
  slack.write('D9', 'are you there?')
  await daemon.heard('are you there?')
  await holds(() => slack.acks.size > 0, 'the acknowledgement')
  assert.is(daemon.events.length, 1, 'what Slack sent again meanwhile is the same event')
})

test('an event that is not durable at the end of the connection is redelivered on the next one', async () => {
  await ready()
  let isDown = true
  daemon.ingest = ({ idempotency_key }) => {
    if (isDown) throw new RpcError(-32000, 'draining', { code: 'bridge_not_accepting', retry_after_ms: 50 })
    return { idempotency_key, outcome: 'prompted' }
  }
  slack.write('D9', 'do not lose me')
  await realTiming.sleep(100)
  slack.drop()
  await daemon.status('degraded')
  isDown = false
  await daemon.heard('do not lose me')
  await holds(() => slack.acks.size > 0, 'the acknowledgement')
  assert.is(daemon.events.length, 1)
})

const kept = () => JSON.parse(daemon.values.get(`${ID}/positions`) ?? '{}') as Record<string, string>
/** A process that was killed; what it kept is there for the next one. */
const restart = async (meanwhile: () => void) => {
  const { values } = daemon
  await daemon.shutdown()
  meanwhile()
  daemon = ScriptedDaemon.inProcess({ ...manifest, open: (one, host) => openSlack(one, host, timing, LIMITS) })
  daemon.values = values
  await daemon.initialize([config()])
}
const textsOf = (channel: string | undefined) =>
  daemon.events.filter(({ group_id: group }) => group === channel).map(({ text }) => text)

test('messages of a downtime are fetched once from channels, threads and direct messages', async () => {
  await ready()
  const ts = slack.write('C1', `<@${BOT}> begin`)
  slack.write('D9', 'direct')
  await daemon.heard('begin')
  await daemon.until(() => (Object.keys(kept()).sort().join() === `C1,C1/${ts},D9` ? true : undefined), 'positions')
  await restart(() => {
    for (let n = 1; n <= 450; n++) slack.write('C1', `missed ${n}`, {}, false)
    slack.write('C1', 'and in the thread', { thread_ts: ts, parent_user_id: 'U1ANN' }, false)
    slack.write('D9', 'direct again', {}, false)
    slack.write('C2', 'elsewhere', {}, false)
    slack.write('C1', 'of the bot', { user: BOT, bot_id: 'B0BOT' }, false)
  })
  await daemon.heard('direct again')
  const thread = await daemon.heard('and in the thread')
  assert.equal([thread.thread_id, thread.reply_to_message_id], [ts, ts])
  await daemon.heard('missed 450')
  const live = slack.write('C1', 'live')
  await daemon.heard('live')
  assert.equal(
    textsOf('C1').filter(text => text !== 'and in the thread'),
    [...Array.from({ length: 450 }, (_, n) => `missed ${n + 1}`), 'live'],
  )
  assert.not(daemon.events.some(({ text }) => text === 'begin' || text === 'elsewhere' || text === 'of the bot'))
  const direct = daemon.events.find(({ text }) => text === 'direct again')
  assert.equal([direct?.addressed, direct?.sender.id, direct?.sender.authenticated], [true, 'U1ANN', true])
  await daemon.until(() => (kept().C1 === live ? true : undefined), 'the last position')
  await restart(() => {})
  await daemon.status('ready')
  slack.write('C1', 'after all')
  await daemon.heard('after all')
  assert.is(daemon.events.length, 1, 'nothing comes again')
})

test('an event that the daemon refuses for long is kept, and fetched after a restart', async () => {
  const refuse = ({ text, idempotency_key }: { text?: string; idempotency_key: string }) => {
    if (text !== 'late') return { idempotency_key, outcome: 'prompted' }
    throw new RpcError(-32000, 'broken', { code: 'internal_error', retry_after_ms: 1 })
  }
  await ready()
  slack.write('C1', 'first')
  await daemon.heard('first')
  daemon.ingest = refuse
  const late = slack.write('C1', 'late')
  await daemon.until(() => daemon.refused[9], 'more refusals than the library of adapters takes')
  daemon.ingest = ({ idempotency_key }) => ({ idempotency_key, outcome: 'prompted' })
  await daemon.heard('late')
  await daemon.until(() => (kept().C1 === late ? true : undefined), 'its position')

  daemon.ingest = refuse
  slack.write('C1', 'late', { user: 'U2BOB' })
  await daemon.until(() => daemon.refused[11], 'refusals')
  slack.write('C1', 'behind it')
  await daemon.heard('behind it')
  slack.write('D9', 'direct')
  await daemon.until(() => kept().D9, 'positions that were kept after that')
  assert.is(kept().C1, late, 'a position passes over nothing')
  slack.forgetEnvelopes()
  await restart(() => {})
  assert.is((await daemon.heard('late')).sender.id, 'U2BOB')
})

test('history without permission is not requested again', async () => {
  await ready()
  slack.write('C1', 'hello')
  await daemon.until(() => kept().C1, 'a position')
  await restart(() => {
    slack.write('C1', 'missed', {}, false)
    slack.answer = ({ method }) =>
      method === 'conversations.history' ? { body: { ok: false, error: 'not_in_channel' } } : undefined
  })
  await daemon.status('ready')
  await daemon.until(() => (Object.keys(kept()).length === 0 ? true : undefined), 'it is forgotten')
  slack.write('C1', 'invited again')
  await daemon.heard('invited again')
  assert.is(slack.called('conversations.history').length, 1)
})

test('an open unresponsive connection is replaced; only one is live', async () => {
  await ready()
  slack.goDeaf()
  const { message = '' } = await daemon.status('degraded')
  assert.match(message, /no frame from Slack for \d+ s although the connection was open/)
  await daemon.until(() => (daemon.reports.at(-1)?.status === 'ready' ? true : undefined), 'ready again')
  slack.write('D9', 'do you hear me?')
  await daemon.heard('do you hear me?')
  assert.is(slack.opened, 2)
  await holds(() => slack.live === 1, 'one connection')
  assert.is(slack.mostAtOnce, 1)
})

test('a connection moved by Slack is reopened at once without degradation', async () => {
  await ready()
  slack.frame({ type: 'disconnect', reason: 'refresh_requested', debug_info: {} })
  await holds(() => slack.opened === 2 && slack.live === 1, 'the next connection')
  slack.write('D9', 'still here?')
  await daemon.heard('still here?')
  assert.not(daemon.reports.some(({ status }) => status === 'degraded'))
  assert.is(slack.mostAtOnce, 1)
})

test('refused or missing tokens and disabled Socket Mode are reported', async () => {
  slack.answer = ({ method }) => (method === 'auth.test' ? { body: { ok: false, error: 'token_revoked' } } : undefined)
  await start()
  assert.match((await daemon.status('auth_required')).message ?? '', 'token_revoked')
  slack.answer = ({ method }) =>
    method === 'apps.connections.open' ? { body: { ok: false, error: 'invalid_auth' } } : undefined
  const again = async (instance: ReturnType<typeof managed>, status: 'auth_required' | 'error') => {
    const from = daemon.reports.length
    await daemon.set([instance])
    return (await daemon.status(status, from)).message ?? ''
  }
  assert.match(await again(config({ slash_command: '/a' }), 'auth_required'), 'app_token')
  assert.match(
    await again(managed(ID, { api_url: slack.apiUrl }, { bot_token: BOT_TOKEN }), 'auth_required'),
    /no secret is bound to app_token.*connections:write/,
  )
  slack.answer = () => undefined
  await daemon.set([config({ slash_command: '/b' })])
  await daemon.status('ready')
  slack.frame({ type: 'disconnect', reason: 'link_disabled' })
  assert.match((await daemon.status('error')).message ?? '', 'turn it on under Socket Mode')
  assert.not.ok(JSON.stringify(daemon.reports).includes('-test'), 'no token is in a report')
})

test('the answer of Slack decides whether a message is retried', async () => {
  await ready()
  const answers: readonly (readonly [answer: object, expected: object])[] = [
    [
      { status: 429, headers: { 'retry-after': '7' }, body: {} },
      { permanent: false, kind: 'transient_delivery_failure', retry_after_ms: 7000 },
    ],
    [{ body: { ok: false, error: 'channel_not_found' } }, { permanent: true, kind: 'unknown_destination' }],
    [{ body: { ok: false, error: 'not_in_channel' } }, { permanent: true, kind: 'permission_denied' }],
    [{ body: { ok: false, error: 'invalid_auth' } }, { permanent: true, kind: 'missing_token' }],
    [{ body: { ok: false, error: 'msg_too_long' } }, { permanent: true, kind: 'unsupported_capability' }],
  ]
  for (const [n, [answer, expected]] of answers.entries()) {
    slack.answer = ({ method }) => (method === 'chat.postMessage' ? answer : undefined)
    const { status, message, ...rest } = (await daemon.say(ID, { group_id: `C${n}` }, 'x')) as unknown as Record<
      string,
      unknown
    >
    assert.is(status, 'not_sent', String(message))
    assert.equal(rest, expected, String(message))
  }
  slack.answer = ({ method }) => (method.startsWith('chat.') ? { status: 503, body: {} } : undefined)
  assert.is((await daemon.say(ID, { group_id: 'C21' }, 'x')).status, 'unknown', 'it may have been sent')
  const edit = await daemon.say(ID, { group_id: 'C22' }, 'x', { remote_message_id: '1.5' })
  assert.is(edit.status, 'not_sent', 'an edit is repeated without harm')
  const strange = await daemon.say(ID, { group_id: '../x' }, 'x')
  assert.is((strange as { kind: string }).kind, 'unknown_destination')
  assert.is((await daemon.say(ID, { group_id: 'C23' }, 'x'.repeat(4001))).status, 'not_sent')
})

test('a message with a lost reply is found by its nonce; an undelivered one is absent', async () => {
  await ready()
  for (const target of [{ group_id: 'C1' }, { group_id: 'C1', thread_id: '1.000001' }]) {
    const delivery = daemon.delivery(ID, target, 'said once')
    slack.answer = ({ method, fields }) => {
      if (method !== 'chat.postMessage') return undefined
      const thread = fields.thread_ts === undefined ? {} : { thread_ts: fields.thread_ts }
      slack.messages.push({
        ts: slack.ts(),
        channel: 'C1',
        text: 'said once',
        ...thread,
        metadata: JSON.parse(fields.metadata ?? ''),
      })
      return { status: 502, body: {} }
    }
    assert.is((await daemon.deliver(delivery)).status, 'unknown')
    slack.answer = () => undefined
    const ts = slack.messages.at(-1)?.ts
    assert.equal(await daemon.settle(delivery, 1_600_000_000_000), { outcome: 'delivered', remote_message_id: ts })
  }
  const never = daemon.delivery(ID, { group_id: 'C1' }, 'said never')
  assert.equal(await daemon.settle(never, 1_600_000_000_000), { outcome: 'absent' })
  slack.answer = ({ method }) =>
    method === 'conversations.history' ? { body: { ok: false, error: 'missing_scope' } } : undefined
  assert.equal(await daemon.settle(never, 1_600_000_000_000), { outcome: 'unknown' })
})

test('a message that arrives during the search is found by the second look', async () => {
  await ready()
  const delivery = daemon.delivery(ID, { group_id: 'C1' }, 'late')
  let looks = 0
  slack.answer = ({ method }) => {
    if (method === 'conversations.history' && ++looks === 2)
      slack.messages.push({
        ...{ ts: slack.ts(), channel: 'C1', text: 'late' },
        metadata: { event_type: 'svc_delivery', event_payload: { nonce: delivery.nonce } },
      })
    return undefined
  }
  assert.is((await daemon.settle(delivery, 1_600_000_000_000)).outcome, 'delivered')
})

test('a channel gets one message per second', async () => {
  await ready()
  stoppedAt = realTiming.now()
  const turns = () => pauses.filter(ms => ms === 1000).length
  const before = turns()
  await daemon.say(ID, { group_id: 'C1' }, 'one')
  await daemon.say(ID, { group_id: 'C2' }, 'elsewhere')
  assert.is(turns() - before, 0, 'channels do not wait for each other')
  const [second, third] = await Promise.all([
    daemon.say(ID, { group_id: 'C1' }, 'two'),
    daemon.say(ID, { group_id: 'C1' }, 'three'),
  ])
  assert.equal([second.status, turns() - before], ['delivered', 1])
  assert.is(third.status, 'not_sent')
  assert.is((third as { retry_after_ms: number }).retry_after_ms, 2000)
})

test('a user gets a direct message; targets and deletions work', async () => {
  await ready()
  const sent = await daemon.say(ID, { peer_id: 'U5BOB' }, 'hello')
  assert.is(slack.messages[0]?.channel, 'D5BOB')
  slack.write('D9', 'hi')
  await daemon.heard('hi')
  assert.equal(
    (await daemon.targets(ID)).map(({ display_name: name, target_type: type, qualifier }) => [name, type, qualifier]),
    [
      ['#ops', 'channel', 'Example'],
      ['#deploys', 'channel', 'Example'],
      ['@U5BOB', 'user', 'Example'],
      ['@ann', 'user', 'Example'],
    ],
  )
  const { remote_message_id: id = '' } = sent as { remote_message_id?: string }
  const gone = { event: 'delete', remote_message_id: id } as const
  assert.is((await daemon.say(ID, { peer_id: 'U5BOB' }, '', gone)).status, 'delivered')
  assert.is(slack.messages.length, 0)
  assert.is((await daemon.say(ID, { peer_id: 'U5BOB' }, '', gone)).status, 'delivered', 'it is gone already')
})

test('files are delivered as bytes; the token is sent to no other service', async () => {
  await ready()
  slack.files.set('a', { type: 'text/csv', bytes: Buffer.from('a,b\n') })
  const file = (name: string, more: object = {}) => ({
    name,
    mimetype: 'text/csv',
    url_private_download: `${slack.origin}/files/${name}`,
    ...more,
  })
  slack.write('D9', 'what is in it?', {
    subtype: 'file_share',
    files: [
      file('a'),
      file('b', { url_private_download: 'https://drive.example.test/b' }),
      file('c'),
      file('d', { size: 9_000_000 }),
    ],
  })
  const event = await daemon.until(() => daemon.events[0], 'the event')
  assert.equal(event.attachments, [{ name: 'a', mime_type: 'text/csv', data: Buffer.from('a,b\n').toString('base64') }])
  assert.is(
    event.text,
    [
      'what is in it?',
      '[The file b is not attached: it is stored by another service.]',
      '[The file c is not attached: the app lacks the scope files:read.]',
      '[The file d is not attached: it is larger than 8 MiB.]',
    ].join('\n'),
  )
})

test('edits, slash commands, buttons and reactions are events', async () => {
  await ready()
  const at = { channel: 'D9', channel_type: 'im' }
  const now = { user: 'U1ANN', text: 'I meant eight', ts: '1.2' }
  slack.event({ type: 'message', subtype: 'message_changed', ...at, message: now, previous_message: { text: 'seven' } })
  slack.event({
    type: 'message',
    subtype: 'message_changed',
    ...at,
    message: now,
    previous_message: { text: now.text },
  })
  slack.envelope('slash_commands', {
    command: '/svc',
    text: 'count',
    user_id: 'U1ANN',
    channel_id: 'C1',
    trigger_id: 't1',
  })
  slack.envelope('interactive', {
    type: 'block_actions',
    ...{ user: { id: 'U1ANN' }, channel: { id: 'C1' }, message: { ts: '1.3' }, trigger_id: 't2' },
    actions: [{ action_id: 'x', value: 'allow:BCDFG' }],
  })
  slack.event({
    type: 'reaction_added',
    user: 'U1ANN',
    reaction: 'eyes',
    item: { channel: 'C1', ts: '1.3' },
    item_user: BOT,
  })
  await holds(() => slack.acks.size === 5, 'all acknowledgements')
  const seen = daemon.events.map(({ family, text, action_id: action }) => `${family} ${text ?? action}`)
  assert.equal(seen.sort(), ['action allow:BCDFG', 'command count', 'edit I meant eight', 'reaction :eyes:'])
})

test('verify names missing scopes and the live connection', async () => {
  await ready()
  const checks = async () => (await daemon.verify(ID)).map(({ check, status }) => `${check} ${status}`)
  assert.equal(await checks(), ['slack.bot_token pass', 'slack.scopes pass', 'slack.socket pass'])
  slack.scopes = 'app_mentions:read,im:history,channels:history,groups:history,channels:read,im:write,users:read'
  assert.equal(await checks(), [
    'slack.bot_token pass',
    'slack.scope chat:write fail',
    'slack.scope files:read warn',
    'slack.socket pass',
  ])
})

test('frames without an envelope are ignored', async () => {
  await ready()
  slack.frame({
    type: 'events_api',
    envelope_id: 'x',
    payload: { event: { type: 'message', text: 7, channel: 'C1', ts: '1' } },
  })
  slack.frame({ type: 'strange' })
  slack.frame([1])
  slack.frame(null)
  slack.frame({ type: 'events_api' })
  slack.frame({ type: 'slash_commands', envelope_id: 'y' })
  slack.write('D9', 'alive?')
  await daemon.heard('alive?')
  assert.is(daemon.reports.at(-1)?.status, 'ready')
})

test('the built file passes a message and an answer', async () => {
  daemon = ScriptedDaemon.ofProgram(builtBridge('slack'))
  await daemon.initialize([config()])
  await daemon.status('ready')
  slack.write('D9', 'hello')
  await daemon.heard('hello')
  await holds(() => slack.acks.size === 1, 'the acknowledgement')
  assert.is((await daemon.say(ID, { peer_id: 'U1ANN' }, 'hello, **Ann**')).status, 'delivered')
  assert.is(slack.messages[0]?.text, 'hello, *Ann*')
})

test.run()
