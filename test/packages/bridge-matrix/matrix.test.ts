import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { RpcError } from '../../../packages/bridge-kit/src/index.js'
import { openMatrix } from '../../../packages/bridge-matrix/src/bridge.js'
import { manifest } from '../../../packages/bridge-matrix/src/manifest.js'
import { styled } from '../../../packages/bridge-matrix/src/markup.js'
import type { Answer } from '../../harness/http-endpoint.js'
import { managed, ScriptedDaemon } from '../bridge-kit/scripted-daemon.js'
import { ANN, BOT, FakeMatrix } from './fake-matrix.js'

const DIRECT = '!direct:example.org'
const OPS = '!ops:example.org'
const EVE = '@eve:evil.example'

const running = new Set<() => Promise<unknown>>()
test.after.each(async () => {
  for (const stop of running) await stop()
  running.clear()
})

interface Started {
  readonly more?: object
  readonly secrets?: object
  readonly expected?: string
  readonly values?: Map<string, string>
  readonly server?: FakeMatrix
}

async function start({ more = {}, secrets = {}, expected = 'ready', values, server }: Started = {}) {
  const matrix = server ?? (await FakeMatrix.start())
  if (!server) {
    matrix.room(DIRECT, [BOT, ANN])
    matrix.room(OPS, [BOT, ANN, '@ben:example.org'], { name: 'Ops' })
  }
  const daemon = ScriptedDaemon.inProcess({ ...manifest, open: openMatrix })
  if (values) daemon.values = values
  const stop = () => {
    running.delete(stop)
    return daemon.shutdown()
  }
  running.add(stop)
  if (!server) running.add(() => matrix.endpoint.close())
  const config = { homeserver: matrix.endpoint.url, poll_seconds: 5, dm: { allow_user_ids: [ANN] }, ...more }
  await daemon.initialize([managed('bri_1', config, { access_token: 'syt_token', ...secrets })])
  await daemon.status(expected as 'ready')
  return { daemon, matrix, stop }
}

test('a direct message is answered, and the answer grows by edits', async () => {
  const { daemon, matrix } = await start()
  const id = matrix.say(DIRECT, ANN, 'why is it slow?')
  const event = await daemon.heard('why is it slow?')
  const { received_at: at, ...rest } = event
  assert.type(at, 'number')
  assert.equal(rest, {
    bridge_instance_id: 'bri_1',
    idempotency_key: id,
    family: 'message',
    sender: { id: ANN, authenticated: true },
    peer_id: ANN,
    message_id: id,
    text: 'why is it slow?',
    addressed: true,
  })
  const begin = daemon.delivery('bri_1', { peer_id: ANN }, 'Because', { event: 'start', reply_to_message_id: id })
  const begun = await daemon.deliver(begin)
  assert.ok(begun.status === 'delivered' && begun.remote_message_id)
  const { remote_message_id: made = '' } = begun
  assert.equal(await daemon.deliver(begin), begun, 'a repetition makes no second message')
  assert.equal(matrix.said(DIRECT), [
    {
      msgtype: 'm.text',
      body: 'Because',
      'm.mentions': {},
      'svc.nonce': begin.nonce,
      'm.relates_to': { 'm.in_reply_to': { event_id: id } },
    },
  ])
  for (const text of ['Because of **ann**', 'Because', 'Because of **ann**'])
    await daemon.deliver({ ...begin, event: 'final', text, remote_message_id: made })
  const changes = matrix.said(DIRECT).slice(1)
  assert.is(changes.length, 3, 'a change back to an earlier text is a change')
  assert.equal(changes[0], {
    msgtype: 'm.text',
    body: '* Because of **ann**',
    'm.new_content': {
      msgtype: 'm.text',
      body: 'Because of **ann**',
      format: 'org.matrix.custom.html',
      formatted_body: 'Because of <strong>ann</strong>',
      'm.mentions': {},
    },
    'm.mentions': {},
    'm.relates_to': { rel_type: 'm.replace', event_id: made },
  })
  await daemon.deliver({ ...begin, event: 'delete', remote_message_id: made })
  assert.is(matrix.asked('PUT', /redact/).length, 1)
  assert.is(matrix.asked('PUT', /send/)[0]?.headers.authorization, 'Bearer syt_token')
})

test('room messages that mention the bot or reply to it are addressed; threads stay threads', async () => {
  const { daemon, matrix } = await start()
  const say = async (text: string, content: object = {}, heard = text) => {
    matrix.say(OPS, ANN, { msgtype: 'm.text', body: text, ...content })
    return daemon.heard(heard)
  }
  const to = (id: string) => ({ 'm.in_reply_to': { event_id: id } })
  assert.not((await say('among us')).addressed)
  assert.ok((await say('Helper Bot: by name', {}, 'by name')).addressed)
  assert.ok((await say('ask helper about it')).addressed)
  assert.not((await say('helpers everywhere')).addressed)
  assert.ok((await say('by id', { 'm.mentions': { user_ids: [BOT] } })).addressed)
  assert.not((await say('helper, not you', { 'm.mentions': {} }, 'not you')).addressed)
  assert.not((await say('hello room', { 'm.mentions': { room: true } })).addressed)
  const root = matrix.say(OPS, ANN, 'helper: begin')
  const begin = await daemon.heard('begin')
  assert.equal([begin.group_id, begin.thread_id, begin.peer_id], [OPS, undefined, ANN])
  const answer = await daemon.say('bri_1', { group_id: OPS, peer_id: ANN, thread_id: root }, 'in the thread')
  const { remote_message_id: own = '' } = answer as { remote_message_id?: string }
  const [message] = matrix.said(OPS)
  assert.equal(message?.['m.mentions'], { user_ids: [ANN] })
  const thread = { rel_type: 'm.thread', event_id: root, is_falling_back: true }
  assert.equal(message?.['m.relates_to'], { ...thread, ...to(root) })
  const next = await say('next in the thread', { 'm.relates_to': { ...thread, ...to(own) } })
  assert.equal([next.thread_id, next.reply_to_message_id, next.addressed], [root, undefined, false])
  const reply = await say('> <@helper:example.org> in the thread\n\nreally?', { 'm.relates_to': to(own) }, 'really?')
  assert.equal([reply.reply_to_message_id, reply.addressed], [own, true])
  assert.not((await say('to ann', { 'm.relates_to': to(root) })).addressed)
  matrix.say(OPS, ANN, { 'm.relates_to': { rel_type: 'm.annotation', event_id: own, key: '👍' } }, 'm.reaction')
  const reaction = await daemon.heard('👍')
  assert.equal(
    [reaction.family, reaction.message_id, reaction.action_id, reaction.addressed],
    ['reaction', own, '👍', true],
  )
  const changed = {
    'm.new_content': { msgtype: 'm.text', body: 'begin anew' },
    'm.relates_to': { rel_type: 'm.replace', event_id: root },
  }
  const edit = await say('* begin anew', changed, 'begin anew')
  assert.equal([edit.family, edit.message_id], ['edit', root])
  assert.ok((await say('a machine', { msgtype: 'm.notice' })).automatic)
})

test('a file addressed to the bot is delivered with its message, any other is named', async () => {
  const { daemon, matrix } = await start()
  const image = {
    msgtype: 'm.image',
    body: '../shot.png',
    url: 'mxc://example.org/Abc-1',
    info: { mimetype: 'image/png' },
  }
  matrix.files.set('example.org/Abc-1', 'bytes')
  const send = async (room: string, content: object) => {
    const id = matrix.say(room, ANN, { ...image, ...content })
    return daemon.until(() => daemon.events.find(({ message_id: one }) => one === id), 'the message')
  }
  const bare = await send(DIRECT, {})
  const data = Buffer.from('"bytes"').toString('base64')
  assert.equal(bare.attachments, [{ name: '.._shot.png', mime_type: 'image/png', data }])
  assert.is(bare.text, '')
  const captioned = await send(DIRECT, { body: 'look at this', filename: 'a.bin', info: { mimetype: 'a b' } })
  assert.equal(captioned.attachments, [{ name: 'a.bin', mime_type: 'application/octet-stream', data }])
  assert.is(captioned.text, 'look at this')
  matrix.mediaPath = '/_matrix/media/v3/download/'
  assert.is((await send(DIRECT, {})).attachments?.length, 1, 'a server from before Matrix 1.11')
  for (const [content, why] of [
    [{ url: 'mxc://example.org/none' }, /did not deliver it/],
    [{ url: 'https://evil.example/x' }, /no address/],
    [{ url: 'mxc://example.org/../x' }, /no address/],
    [{ url: undefined, file: { url: 'mxc://example.org/Abc-1' } }, /no address/],
    [{ info: { size: 9_000_000 } }, /8 MiB/],
  ] as const) {
    const { text, attachments } = await send(DIRECT, content)
    assert.match(text ?? '', why)
    assert.is(attachments, undefined)
  }
  const before = matrix.asked('GET', /download/).length
  assert.match((await send(OPS, {})).text ?? '', /not addressed/)
  assert.is(matrix.asked('GET', /download/).length, before, 'what is not for the bot is not fetched')
})

test('a reply to a message from before the last start is addressed', async () => {
  const first = await start()
  const sent = await first.daemon.say('bri_1', { group_id: OPS }, 'news')
  await first.stop()
  const { daemon, matrix } = await start({ server: first.matrix, values: first.daemon.values })
  running.add(() => matrix.endpoint.close())
  const { remote_message_id: id } = sent as { remote_message_id?: string }
  matrix.say(OPS, ANN, { msgtype: 'm.text', body: 'what news?', 'm.relates_to': { 'm.in_reply_to': { event_id: id } } })
  assert.ok((await daemon.heard('what news?')).addressed)
})

test('the position advances when the daemon has all earlier messages, and survives a restart', async () => {
  const { daemon, matrix, stop } = await start()
  let refusals = 2
  daemon.ingest = ({ idempotency_key, text }) => {
    if (text === 'two' && refusals-- > 0) throw new RpcError(-32000, 'gone', { code: 'bridge_not_found' })
    return { idempotency_key, outcome: 'prompted' }
  }
  const position = () => JSON.parse(daemon.values.get('bri_1/since') ?? '{}').token
  const before = position()
  matrix.say(DIRECT, ANN, 'one')
  matrix.say(DIRECT, ANN, 'two')
  await daemon.until(() => (daemon.refused.length > 0 ? true : undefined), 'a refusal')
  assert.is(position(), before)
  await daemon.heard('two')
  assert.equal(
    daemon.events.map(({ text }) => text),
    ['one', 'two'],
  )
  matrix.say(DIRECT, ANN, 'three')
  await daemon.heard('three')
  await stop()
  for (const text of ['four', 'five']) matrix.say(DIRECT, ANN, text)
  const again = await start({ server: matrix, values: daemon.values })
  running.add(() => matrix.endpoint.close())
  await again.daemon.heard('five')
  const texts = again.daemon.events.map(({ text }) => text)
  assert.equal(texts.slice(-2), ['four', 'five'])
  assert.not.ok(texts.includes('two'))
  assert.is((await again.daemon.say('bri_1', { peer_id: ANN }, 'an answer')).status, 'delivered')
})

test('older messages of a long absence are fetched, except those from before the bot joined', async () => {
  const { daemon, matrix, stop } = await start()
  await stop()
  for (let n = 0; n < 150; n++) matrix.say(DIRECT, ANN, `missed ${n}`)
  matrix.room('!new:example.org', [ANN, '@ben:example.org'])
  matrix.say('!new:example.org', ANN, 'helper: before you came')
  matrix.invite('!new:example.org', ANN)
  const again = await start({ server: matrix, values: daemon.values })
  running.add(() => matrix.endpoint.close())
  await again.daemon.heard('missed 149')
  const missed = again.daemon.events.map(({ text }) => text)
  assert.equal(
    missed,
    Array.from({ length: 150 }, (_, n) => `missed ${n}`),
  )
  assert.ok(matrix.rooms.get('!new:example.org')?.members.has(BOT))
  matrix.say('!new:example.org', ANN, 'helper: now')
  await again.daemon.heard('now')
  assert.is(again.daemon.events.length, 151)
})

test('messages before the first start are not answered, and a lost position restarts there', async () => {
  const server = await FakeMatrix.start()
  running.add(() => server.endpoint.close())
  server.room(DIRECT, [BOT, ANN])
  server.say(DIRECT, ANN, 'long ago')
  const values = new Map([['bri_1/since', JSON.stringify({ user: BOT, token: 'sX' })]])
  const { daemon, matrix } = await start({ server, values })
  matrix.say(DIRECT, ANN, 'now')
  await daemon.heard('now')
  assert.is(daemon.events.length, 1)
})

test('only invites of allowed users are accepted', async () => {
  const { daemon, matrix } = await start({ more: { invites_from: ['*:friends.example'], dm: {} } })
  for (const [room, from] of [
    ['!a:example.org', EVE],
    ['!b:example.org', '@cat:friends.example'],
    ['!c:example.org', '@dan:notfriends.example'],
    ['!d:example.org', ANN],
    ['not a room', '@cat:friends.example'],
  ] as const) {
    matrix.room(room, [from])
    matrix.invite(room, from)
  }
  matrix.say(DIRECT, ANN, 'done')
  await daemon.heard('done')
  const joined = [...matrix.rooms].filter(([, { members }]) => members.has(BOT)).map(([id]) => id)
  assert.equal(joined, [DIRECT, OPS, '!b:example.org'])
})

test('a lost answer is found, and a missing one is resent without a duplicate', async () => {
  const { daemon, matrix } = await start()
  matrix.afterwards = ({ path }) => (path.includes('/send/') ? { cut: true } : undefined)
  const lost = daemon.delivery('bri_1', { group_id: OPS }, 'did it arrive')
  assert.is((await daemon.deliver(lost)).status, 'unknown')
  matrix.afterwards = () => undefined
  const found = await daemon.settle(lost, Date.now())
  assert.ok(found.outcome === 'delivered' && found.remote_message_id)
  assert.equal(await daemon.deliver(lost), { status: 'delivered', remote_message_id: found.remote_message_id })
  assert.is(matrix.said(OPS).length, 1)
  const missing = daemon.delivery('bri_1', { group_id: OPS }, 'never sent')
  assert.equal(await daemon.settle(missing, Date.now()), { outcome: 'absent' })
  // Another person may copy the mark.
  matrix.say(OPS, EVE, { msgtype: 'm.text', body: 'x', 'svc.nonce': missing.nonce })
  assert.equal(await daemon.settle(missing, Date.now()), { outcome: 'absent' })
  for (let n = 0; n < 150; n++) matrix.say(OPS, BOT, `other ${n}`)
  assert.equal(await daemon.settle(lost, Date.now() - 1000), found, 'on a later page')
  matrix.instead = ({ path }) => (path.includes('/messages') ? { status: 500 } : undefined)
  assert.equal(await daemon.settle(lost, Date.now()), { outcome: 'unknown' })
})

test('an encrypted room is informed once that the bot cannot read it', async () => {
  const secret = '!secret:example.org'
  const first = await start()
  const { matrix } = first
  matrix.room(secret, [ANN], { encrypted: true })
  matrix.invite(secret, ANN)
  const encrypt = (text: string) =>
    matrix.say(secret, ANN, { algorithm: 'm.megolm.v1.aes-sha2', ciphertext: text }, 'm.room.encrypted')
  await matrix.heardIn(secret)
  encrypt('a')
  matrix.say(secret, ANN, 'in plain text')
  const result = await first.daemon.say('bri_1', { group_id: secret }, 'hello')
  assert.ok(result.status === 'not_sent' && result.permanent && result.kind === 'unsupported_capability')
  await first.stop()
  encrypt('b')
  const again = await start({ server: matrix, values: first.daemon.values })
  running.add(() => matrix.endpoint.close())
  matrix.say(DIRECT, ANN, 'z')
  await again.daemon.heard('z')
  assert.is(matrix.said(secret).length, 1)
  assert.match(String(matrix.said(secret)[0]?.body), /encrypted/)
  assert.not.ok([...first.daemon.events, ...again.daemon.events].some(({ text }) => text === 'in plain text'))
  const targets = await again.daemon.targets('bri_1')
  assert.equal(
    targets.map(({ peer_id, group_id, display_name }) => [peer_id ?? group_id, display_name]),
    [
      [ANN, ANN],
      [OPS, 'Ops'],
    ],
  )
})

test('rate limits are obeyed, and failures say whether a message was sent', async () => {
  const { daemon, matrix } = await start()
  let answer: Answer | undefined
  matrix.instead = ({ path }) => (path.includes('/send/') ? answer : undefined)
  const say = (next: Answer | undefined) => {
    answer = next
    return daemon.say('bri_1', { group_id: OPS }, 'x')
  }
  const limit = await say({ status: 429, body: { errcode: 'M_LIMIT_EXCEEDED', retry_after_ms: 1500 } })
  assert.ok(limit.status === 'not_sent' && !limit.permanent && limit.retry_after_ms === 1500)
  const header = await say({ status: 429, headers: { 'retry-after': '3' }, body: { errcode: 'M_LIMIT_EXCEEDED' } })
  assert.ok(header.status === 'not_sent' && header.retry_after_ms === 3000)
  for (const [status, errcode, kind] of [
    [403, 'M_FORBIDDEN', 'permission_denied'],
    [404, 'M_NOT_FOUND', 'unknown_destination'],
    [413, 'M_TOO_LARGE', 'unsupported_capability'],
  ] as const) {
    const result = await say({ status, body: { errcode, error: 'no' } })
    assert.ok(result.status === 'not_sent' && result.permanent && result.kind === kind, errcode)
  }
  assert.is((await say({ status: 502 })).status, 'unknown')
  const away = await say({ status: 503 })
  assert.ok(away.status === 'not_sent' && !away.permanent)
  for (const [target, more] of [
    [{ group_id: 'ops' }, {}],
    [{ group_id: '!elsewhere:example.org/../x' }, {}],
    [{ peer_id: EVE }, {}],
    [{ peer_id: 'ann' }, {}],
    [{}, {}],
    [{ group_id: OPS, thread_id: 'x' }, {}],
    [{ group_id: OPS }, { remote_message_id: '1' }],
  ] as const) {
    answer = undefined
    const result = await daemon.say('bri_1', target, 'x', more)
    assert.ok(result.status === 'not_sent' && result.permanent, JSON.stringify(target))
  }
  assert.is(matrix.said(OPS).length, 0)
})

test('a direct chat with a third member is no direct chat', async () => {
  const { daemon, matrix } = await start()
  matrix.say(DIRECT, ANN, 'alone')
  await daemon.heard('alone')
  matrix.rooms.get(DIRECT)?.members.add(EVE)
  matrix.say(DIRECT, EVE, { membership: 'join' }, 'm.room.member', { state_key: EVE })
  matrix.say(DIRECT, ANN, 'together')
  const together = await daemon.heard('together')
  assert.equal([together.group_id, together.addressed], [DIRECT, false])
  const result = await daemon.say('bri_1', { peer_id: ANN }, 'for ann alone')
  assert.ok(result.status === 'not_sent' && result.kind === 'unknown_destination')
})

test('the members of a large room are listed once', async () => {
  const { daemon, matrix } = await start()
  matrix.room('!large:example.org', [BOT, ANN, ...Array.from({ length: 30 }, (_, n) => `@p${n}:example.org`)])
  for (const text of ['one', 'two', 'three']) {
    matrix.say('!large:example.org', '@p1:example.org', { membership: 'join' }, 'm.room.member', { state_key: EVE })
    matrix.say('!large:example.org', ANN, text)
    assert.is((await daemon.heard(text)).group_id, '!large:example.org')
  }
  assert.is(matrix.asked('GET', /!large:example.org\/joined_members/).length, 1)
})

test('a refused token needs the operator; an unreachable server is retried', async () => {
  const { daemon, matrix } = await start()
  matrix.token = 'another'
  const result = await daemon.say('bri_1', { group_id: OPS }, 'x')
  assert.ok(result.status === 'not_sent' && result.permanent && result.kind === 'missing_token')
  assert.match((await daemon.status('auth_required')).message ?? '', /access_token/)
  assert.not.match(JSON.stringify(daemon.reports), /syt_token/)
  assert.is((await daemon.verify('bri_1'))[0]?.status, 'fail')
  await start({ more: { homeserver: 'http://127.0.0.1:1' }, expected: 'degraded' })
  await start({ secrets: { access_token: '' }, expected: 'auth_required' })
  for (const more of [
    { homeserver: 'http://matrix.example.org' },
    { homeserver: 'https://x.example/?y' },
    { rooms: ['ops'] },
    { invites_from: ['ann'] },
    { poll_seconds: 0 },
  ])
    await start({ more, expected: 'error' })
  const slow = await FakeMatrix.start()
  running.add(() => slow.endpoint.close())
  slow.instead = ({ path }) => (path.includes('/sync') ? { status: 429, body: { retry_after_ms: 10 } } : undefined)
  const limited = await start({ server: slow, expected: 'degraded' })
  assert.is(limited.daemon.reports.at(-1)?.reason, 'rate_limited')
  slow.instead = () => undefined
  await limited.daemon.status('ready')
})

test('configured rooms are joined, and unavailable ones are named', async () => {
  const server = await FakeMatrix.start()
  running.add(() => server.endpoint.close())
  server.room(OPS, [ANN])
  const { daemon, matrix } = await start({ server, more: { rooms: ['#ops:example.org', '!none:example.org'] } })
  assert.equal(
    (await daemon.verify('bri_1')).map(({ check, status }) => [check, status]),
    [
      ['matrix.login', 'pass'],
      ['matrix.sync', 'pass'],
      ['matrix.room #ops:example.org', 'pass'],
      ['matrix.room !none:example.org', 'fail'],
    ],
  )
  matrix.say(OPS, ANN, 'two in a room of the configuration')
  const event = await daemon.heard('two in a room of the configuration')
  assert.equal([event.group_id, event.addressed], [OPS, false])
})

test('an invalid event is skipped', async () => {
  const { daemon, matrix } = await start()
  for (const content of [
    {},
    { body: 7, msgtype: 'm.text' },
    { body: 'x' },
    { body: '  ', msgtype: 'm.text' },
    { body: 'x', msgtype: 'm.text', 'm.relates_to': { rel_type: 'm.replace', event_id: '$1' }, 'm.new_content': null },
  ])
    matrix.say(DIRECT, ANN, content)
  matrix.say(DIRECT, ANN, { 'm.relates_to': 7 }, 'm.reaction')
  matrix.say(DIRECT, 'nobody', 'a sender that is none')
  matrix.say(DIRECT, ANN, 'x', 'm.room.message', { event_id: 'no id' })
  matrix.say(DIRECT, ANN, 'x', 'm.room.message', { content: null })
  matrix.say(DIRECT, BOT, 'mine')
  matrix.say(DIRECT, ANN, { msgtype: 'm.text', body: 'odd', 'm.relates_to': null, 'm.mentions': 7 })
  await daemon.heard('odd')
  assert.is(daemon.events.length, 1)
})

test('Markdown becomes HTML without raw HTML and without a room ping', () => {
  const html = (text: string) => styled(text).html
  assert.equal(styled('plain <b> text'), { body: 'plain <b> text' })
  assert.is(html('**a <script>** & `b<i>`'), '<strong>a &lt;script&gt;</strong> &amp; <code>b&lt;i&gt;</code>')
  assert.is(html('[x"](https://x.example/"onclick=y)'), '<a href="https://x.example/&quot;onclick=y">x&quot;</a>')
  assert.is(html('[x](javascript:alert)'), undefined)
  assert.is(html('```ts\na < b\n```'), '<pre><code class="language-ts">a &lt; b\n</code></pre>')
  assert.is(html('one\n*two*'), 'one<br><em>two</em>')
  assert.equal(styled('@room **now** @ROOM'), {
    body: '@\u200broom **now** @\u200bROOM',
    html: '@\u200broom <strong>now</strong> @\u200bROOM',
  })
  assert.is(styled('a\u0000b\u001bc').body, 'abc')
})

test('a text of the maximum size fits into an event, if necessary without styles', async () => {
  const { daemon, matrix } = await start()
  await daemon.say('bri_1', { group_id: OPS }, `**x**${'"<>&'.repeat(3990)}`)
  await daemon.say('bri_1', { group_id: OPS }, '\n'.repeat(7000).concat('y'.repeat(9000)))
  const sizes = matrix.said(OPS).map(content => Buffer.byteLength(JSON.stringify(content)))
  assert.is(sizes.length, 2)
  assert.ok(sizes.every(size => size < 60_000))
  assert.is(matrix.said(OPS)[0]?.formatted_body, undefined)
  const long = await daemon.say('bri_1', { group_id: OPS }, 'z'.repeat(70_000))
  assert.ok(long.status === 'not_sent' && long.kind === 'unsupported_capability')
})

test.run()
