// timeout: 120s
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { openIrc } from '../../../packages/bridge-irc/src/bridge.js'
import { manifest } from '../../../packages/bridge-irc/src/manifest.js'
import { realTiming, type Timing } from '../../../packages/bridge-kit/src/index.js'
import { Ngircd } from '../../harness/chat-servers.js'
import { managed, ScriptedDaemon } from '../bridge-kit/scripted-daemon.js'
import { Person } from './person.js'

let server: Ngircd
const config = (more: object = {}) => ({
  server: '127.0.0.1',
  port: server.port,
  tls: false,
  nick: 'svcbot',
  channels: ['#ops'],
  flood_burst: 50,
  ...more,
})
/** What is tried again every 25 s is tried every 200 ms. */
const hasty: Timing = { ...realTiming, sleep: (ms, signal) => realTiming.sleep(ms === 25_000 ? 200 : ms, signal) }
const start = async (...instances: ReturnType<typeof managed>[]) => {
  const daemon = ScriptedDaemon.inProcess({ ...manifest, open: (instance, host) => openIrc(instance, host, hasty) })
  closing.push(() => daemon.shutdown())
  await daemon.initialize(instances)
  return daemon
}
const person = async (nick: string, ...channels: string[]) => {
  const one = await Person.join(server.port, nick, ...channels)
  closing.push(() => one.leave())
  return one
}

/** What a test opened is closed behind it, also behind one that fails. */
const closing: (() => Promise<unknown>)[] = []
test.after.each(async () => {
  await Promise.all(closing.splice(0).map(close => close().catch(() => {})))
})
test.before(async () => {
  server = await Ngircd.start()
})
test.after(() => server.remove())

test('lines of a channel and a query are addressed, attributed and answered', async () => {
  const daemon = await start(managed('bri_1', config()))
  await daemon.status('ready')
  const ann = await person('ann', '#ops')
  ann.say('#ops', 'good morning')
  ann.say('#ops', 'svcbot: how \x02many\x02 \x0304files\x03?')
  ann.say('svcbot', 'and here?')
  const [morning, question, query] = [
    await daemon.heard('good morning'),
    await daemon.heard('how many files?'),
    await daemon.heard('and here?'),
  ]
  assert.not(morning.addressed)
  assert.ok(question.addressed)
  assert.is(question.group_id, '#ops')
  assert.is(question.peer_id, 'ann')
  assert.not(question.sender.authenticated, 'a nick is no identity')
  assert.match(question.sender.id, /^ann!~?ann@/)
  assert.ok(query.addressed)
  assert.is(query.group_id, undefined)
  assert.is(new Set([morning, question, query].map(event => event.idempotency_key)).size, 3)
  assert.equal(await daemon.say('bri_1', { group_id: '#ops' }, 'seven'), { status: 'delivered' })
  assert.equal(await daemon.say('bri_1', { peer_id: 'ann' }, 'yes, here'), { status: 'delivered' })
  await ann.hears(line => line === 'yes, here')
  assert.equal(
    ann.lines.map(({ target, message }) => `${target} ${message}`),
    ['#ops seven', 'ann yes, here'],
  )
})

test('a long multibyte text arrives whole, in lines that fit with the prefix', async () => {
  const daemon = await start(managed('bri_1', config()))
  await daemon.status('ready')
  const ann = await person('ann', '#ops')
  const raw: string[] = []
  ann.on('raw', ({ line }: { line: string }) => void raw.push(line))
  const text = 'ä😀ö '.repeat(120).trim()
  assert.equal(await daemon.say('bri_1', { group_id: '#ops' }, `${text}\n\nthe end`), { status: 'delivered' })
  await ann.hears(line => line === 'the end')
  const messages = raw.filter(line => line.includes('PRIVMSG'))
  assert.ok(messages.length > 2)
  assert.ok(messages.every(line => Buffer.byteLength(line) <= 510))
  const lines = ann.lines.map(({ message }) => message)
  assert.is(lines.slice(0, -1).join(' '), text)
})

test('a text or a target cannot inject a command', async () => {
  const daemon = await start(managed('bri_1', config()))
  await daemon.status('ready')
  const ann = await person('ann', '#ops')
  const ben = await person('ben')
  const hostile = 'one\r\nPRIVMSG ben :hi\0\rQUIT :bye\n\x01ACTION dances\x01'
  assert.equal(await daemon.say('bri_1', { group_id: '#ops' }, hostile), { status: 'delivered' })
  await ann.hears(line => line === 'ACTION dances')
  assert.equal(
    ann.lines.map(({ message }) => message),
    ['one', 'PRIVMSG ben :hi', 'QUIT :bye', 'ACTION dances'],
  )
  for (const target of [{ group_id: '#ops,ben' }, { peer_id: 'ben :x\r\nQUIT' }, { peer_id: '*' }, {}]) {
    const result = await daemon.say('bri_1', target, 'x')
    assert.equal([result.status, 'kind' in result && result.kind], ['not_sent', 'unknown_destination'])
  }
  assert.equal(ben.lines, [])
})

test('CTCP, actions and notices start no turn and get no answer', async () => {
  const daemon = await start(managed('bri_1', config()))
  await daemon.status('ready')
  const ann = await person('ann', '#ops')
  const answers: unknown[] = []
  ann.on('ctcp response', event => void answers.push(event))
  ann.say('svcbot', '\x01VERSION\x01')
  ann.say('#ops', '\x01ACTION svcbot: waves\x01')
  ann.raw('NOTICE svcbot :svcbot: hello')
  ann.say('#ops', 'svcbot: hello')
  await daemon.heard('hello')
  await ann.settled()
  assert.is(daemon.events.length, 1)
  assert.equal(answers, [])
})

test('a line refused by the server is reported and not retried', async () => {
  const ann = await person('ann', '#ops')
  const daemon = await start(managed('bri_1', config()))
  await daemon.status('ready')
  const nobody = await daemon.say('bri_1', { peer_id: 'nobody' }, 'hello')
  assert.equal(nobody.status === 'not_sent' && [nobody.permanent, nobody.kind], [true, 'unknown_destination'])
  ann.raw('MODE #ops +m')
  await ann.settled()
  const moderated = await daemon.say('bri_1', { group_id: '#ops' }, 'one\ntwo')
  assert.equal(moderated.status === 'not_sent' && [moderated.permanent, moderated.kind], [true, 'permission_denied'])
  ann.raw('MODE #ops -m')
  await ann.settled()
  assert.equal(await daemon.say('bri_1', { group_id: '#ops' }, 'three'), { status: 'delivered' })
})

test('a burst is sent at once, and further lines get a retry time', async () => {
  const daemon = await start(managed('bri_1', config({ flood_burst: 3, flood_lines_per_minute: 30 })))
  await daemon.status('ready')
  assert.equal(await daemon.say('bri_1', { group_id: '#ops' }, 'one\ntwo\nthree'), { status: 'delivered' })
  const more = await daemon.say('bri_1', { group_id: '#ops' }, 'four\nfive\nsix')
  assert.ok(more.status === 'not_sent' && !more.permanent && (more.retry_after_ms ?? 0) > 0, JSON.stringify(more))
  // Lines beyond a burst share a message.
  const joined = await start(managed('bri_2', config({ nick: 'other', flood_burst: 3 })))
  await joined.status('ready')
  const ann = await person('ann', '#ops')
  assert.equal(await joined.say('bri_2', { group_id: '#ops' }, 'a\nb\nc\nd'), { status: 'delivered' })
  await ann.hears(line => line === 'a | b | c | d')
})

test('a delivery aborted in the middle is unknown', async () => {
  const daemon = await start(managed('bri_1', config({ flood_burst: 5, flood_lines_per_minute: 240 })))
  await daemon.status('ready')
  const ann = await person('ann', '#ops')
  const result = daemon.say('bri_1', { group_id: '#ops' }, 'one\ntwo\nthree')
  await result
  const broken = daemon.say('bri_1', { group_id: '#ops' }, 'four\nfive\nsix\nseven')
  await ann.hears(line => line === 'five')
  await server.stop(true)
  assert.match((await broken).status, 'unknown')
  const later = await daemon.say('bri_1', { group_id: '#ops' }, 'more')
  assert.is(later.status, 'not_sent')
  await server.start()
})

test('a restarted server degrades the instance, which then becomes ready', async () => {
  const daemon = await start(managed('bri_1', config()))
  await daemon.status('ready')
  await server.stop()
  const { reason } = await daemon.status('degraded')
  assert.is(reason, 'provider_timeout')
  const later = await daemon.say('bri_1', { group_id: '#ops' }, 'now?')
  assert.equal([later.status, 'permanent' in later && later.permanent], ['not_sent', false])
  const before = daemon.reports.length
  await server.start()
  await daemon.status('ready', before)
  assert.equal(await daemon.say('bri_1', { group_id: '#ops' }, 'here again'), { status: 'delivered' })
})

test('a taken nick is replaced by another, and regained when it is free', async () => {
  const thief = await person('svcbot', '#ops')
  const ann = await person('ann', '#ops')
  const daemon = await start(managed('bri_1', config()))
  const { message } = await daemon.status('ready')
  assert.is(message, 'the nick svcbot is taken; it is svcbot_')
  ann.say('#ops', 'svcbot: not you')
  ann.say('#ops', 'svcbot_: you')
  const [other, own] = [await daemon.heard('svcbot: not you'), await daemon.heard('you')]
  assert.equal([other.addressed, own.addressed], [false, true])
  await thief.leave()
  await daemon.until(() => daemon.reports.find(report => report.status === 'ready' && !report.message), 'the nick')
  ann.say('#ops', 'svcbot: you again')
  assert.ok((await daemon.heard('you again')).addressed)
})

test('a silent server is noticed and reconnected', async () => {
  const daemon = await start(managed('bri_1', config({ ping_seconds: 1 })))
  await daemon.status('ready')
  server.pause()
  await daemon.status('degraded')
  const before = daemon.reports.length
  server.resume()
  await daemon.status('ready', before)
  assert.equal(await daemon.health(), { healthy: true })
})

test('a kick or a join error of a channel is reported and retried', async () => {
  const ann = await person('ann', '#ops', '#locked')
  ann.raw('MODE #locked +i')
  await ann.settled()
  const daemon = await start(managed('bri_1', config({ channels: ['#ops', '#locked'] })))
  const report = await daemon.until(
    () => daemon.reports.find(({ message = '' }) => /#locked \(473/.test(message)),
    'the reason',
  )
  assert.is(report.status, 'degraded')
  ann.raw('MODE #locked -i')
  await daemon.status('ready')
  const before = daemon.reports.length
  ann.raw('KICK #ops svcbot :out')
  assert.match((await daemon.status('degraded', before)).message ?? '', /#ops \(kicked by ann\)/)
  await daemon.status('ready', before)
  assert.equal((await daemon.targets('bri_1')).map(({ group_id, qualifier }) => [group_id, qualifier]).sort(), [
    ['#locked', 'ExampleNet'],
    ['#ops', 'ExampleNet'],
  ])
})

test('a server without SASL is not used without a login, and the next step is named', async () => {
  const daemon = await start(managed('bri_1', config(), { password: 'for-the-services' }))
  const { message = '' } = await daemon.status('degraded')
  assert.match(message, /the server offers no SASL; set login to nickserv, or to none/)
  assert.not(daemon.reports.some(({ status }) => status === 'ready'))
})

test('channel keys come from a secret and are never shown; a refused key does not affect other channels', async () => {
  const ann = await person('ann', '#ops', '#vault', '#full', '#banned', '#other')
  for (const mode of ['#vault +k s3same', '#full +l 1', '#banned +b svcbot!*@*', '#other +k right'])
    ann.raw(`MODE ${mode}`)
  await ann.settled()
  const channels = ['#ops', '#Vault', '#full', '#banned', '#other']
  const daemon = await start(managed('bri_1', config({ channels }), { channel_keys: '#vault s3same\n#other wr0ng,' }))
  const { message = '', status } = await daemon.until(
    () => daemon.reports.find(({ message = '' }) => ['471', '474', '475'].every(code => message.includes(code))),
    'all that is refused',
  )
  assert.is(status, 'degraded')
  assert.match(message, /#full \(471 .*the channel is full/)
  assert.match(message, /#banned \(474 .*the bot is banned there/)
  assert.match(message, /#other \(475 .*bind the secret channel_keys/)
  assert.not.match(message, /#ops|vault/i)
  assert.equal(await daemon.say('bri_1', { group_id: '#vault' }, 'inside'), { status: 'delivered' })
  ann.say('#ops', 'svcbot: still here?')
  assert.ok((await daemon.heard('still here?')).addressed)
  const checks = await daemon.verify('bri_1')
  assert.equal(
    checks.filter(({ status }) => status === 'fail').map(({ check }) => check),
    ['irc.channel #full', 'irc.channel #banned', 'irc.channel #other'],
  )
  for (const mode of ['#full -l', '#banned -b svcbot!*@*', '#other -k right']) ann.raw(`MODE ${mode}`)
  await daemon.status('ready')
  assert.not.match(JSON.stringify([daemon.reports, checks, await daemon.targets('bri_1')]), /s3same|wr0ng/)
})

test('a key in the wrong place or form is refused and not shown', async () => {
  const cases: [object, Record<string, string>, RegExp][] = [
    [{ channels: ['#ops s3same'] }, {}, /channels: bind the keys of channels as secret channel_keys/],
    [{}, { channel_keys: '#ops' }, /entry 1 of the secret channel_keys is no channel with its key/],
    [{}, { channel_keys: '#ops s3same extra' }, /entry 1 /],
    [{}, { channel_keys: '#ops s3same\n#else s3same' }, /entry 2 .*not among provider_config.channels/],
  ]
  for (const [more, secrets, says] of cases) {
    const daemon = await start(managed('bri_1', config(more), secrets))
    assert.match((await daemon.status('error')).message ?? '', says)
    assert.not.match(JSON.stringify(daemon.reports), /s3same/)
  }
})

test.run()
