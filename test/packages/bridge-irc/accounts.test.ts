import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { openIrc } from '../../../packages/bridge-irc/src/bridge.js'
import { manifest } from '../../../packages/bridge-irc/src/manifest.js'
import { managed, ScriptedDaemon } from '../bridge-kit/scripted-daemon.js'
import { type Answer, ScriptedServer } from './scripted-server.js'

async function connected(caps: readonly string[], answer?: Answer, more: object = {}, secrets = {}) {
  const server = await ScriptedServer.start(caps, answer)
  const daemon = ScriptedDaemon.inProcess({ ...manifest, open: openIrc })
  const config = { server: '127.0.0.1', port: server.port, tls: false, nick: 'svcbot', channels: ['#ops'], ...more }
  await daemon.initialize([managed('bri_1', config, secrets)])
  return {
    server,
    daemon,
    async close() {
      await daemon.shutdown()
      await server.stop()
    },
  }
}

test('account-tag identifies a sender, and msgid is the key of a line', async () => {
  const { server, daemon, close } = await connected(['account-tag', 'message-tags', 'server-time'])
  await daemon.status('ready')
  server.send(
    '@account=Ann;msgid=m1;time=2026-11-28T10:00:00.000Z :annie!a@h PRIVMSG #ops :svcbot: one',
    ':ann!a@h PRIVMSG #ops :svcbot: two',
    '@bot;account=robo :robo!r@h PRIVMSG #ops :three',
  )
  const [one, two, three] = [await daemon.heard('one'), await daemon.heard('two'), await daemon.heard('three')]
  assert.equal([one.sender.id, one.sender.authenticated, one.peer_id], ['ann', true, 'annie!ann'])
  assert.equal([one.idempotency_key, one.message_id, one.received_at], ['id:m1', 'm1', Date.parse('2026-11-28T10:00Z')])
  assert.equal([two.sender.id, two.sender.authenticated, two.peer_id], ['ann!a@h', false, 'ann'])
  assert.ok(three.sender.is_bot)
  await close()
})

test('without account-tag the account comes from WHOIS of the same user and host', async () => {
  const accounts: Record<string, string> = {
    ann: 'a@h',
    ben: 'other@elsewhere',
  }
  const whois: Answer = line => {
    const [command, nick = ''] = line.split(' ')
    if (command !== 'WHOIS') return []
    const [user = '', host = ''] = (accounts[nick] ?? '').split('@')
    if (user === '') return [`:srv 401 svcbot ${nick} :No such nick`]
    return [
      `:srv 311 svcbot ${nick} ${user} ${host} * :x`,
      `:srv 330 svcbot ${nick} ${nick}-account :is logged in as`,
      `:srv 318 svcbot ${nick} :End`,
    ]
  }
  const { server, daemon, close } = await connected([], whois)
  await daemon.status('ready')
  server.send(
    ':ann!a@h PRIVMSG svcbot :from ann',
    ':ben!b@h PRIVMSG svcbot :from ben',
    ':eve!e@h PRIVMSG svcbot :from eve',
  )
  const senders = await Promise.all(['ann', 'ben', 'eve'].map(nick => daemon.heard(`from ${nick}`)))
  assert.equal(
    senders.map(({ sender }) => [sender.id, sender.authenticated]),
    [
      ['ann-account', true],
      ['ben!b@h', false],
      ['eve!e@h', false],
    ],
  )
  // The answer for an account does not go to whoever has the nick now.
  assert.equal(await daemon.say('bri_1', { peer_id: 'ann!ann-account' }, 'secret'), { status: 'delivered' })
  accounts.ann = ''
  const taken = await daemon.say('bri_1', { peer_id: 'ann!ann-account' }, 'more secrets')
  assert.equal([taken.status, 'kind' in taken && taken.kind], ['not_sent', 'permission_denied'])
  assert.not(server.lines.some(line => line.includes('more secrets')))
  await close()
})

test('a refused password needs the operator and is not retried', async () => {
  const sasl: Answer = line =>
    line.startsWith('AUTHENTICATE ') && !line.endsWith(' PLAIN')
      ? [':srv 904 svcbot :SASL authentication failed']
      : line.startsWith('AUTHENTICATE ')
        ? ['AUTHENTICATE +']
        : []
  const { server, daemon, close } = await connected(['sasl'], sasl, {}, { password: 'wrong-password' })
  const report = await daemon.status('auth_required')
  assert.is(report.reason, 'auth_failed')
  assert.not.match(JSON.stringify(daemon.reports), 'wrong-password')
  assert.is(server.connections, 1)
  const sent = server.lines.find(line => line.startsWith('AUTHENTICATE ') && !line.endsWith(' PLAIN')) ?? ''
  assert.is(Buffer.from(sent.split(' ')[1] ?? '', 'base64').toString(), 'svcbot\0svcbot\0wrong-password')
  await close()
})

test('NickServ gets the password before channels are joined', async () => {
  const { server, daemon, close } = await connected(
    [],
    line => (line.startsWith('PRIVMSG NickServ') ? [':NickServ!s@h NOTICE svcbot :You are now identified'] : []),
    { login: 'nickserv', account: 'thebot' },
    { password: 'pass' },
  )
  await daemon.status('ready')
  const commands = server.lines.filter(line => /^(PRIVMSG|JOIN)/.test(line))
  assert.equal(commands, ['PRIVMSG NickServ :IDENTIFY thebot pass', 'JOIN #ops'])
  await close()
})

test('replayed history starts no turn', async () => {
  const { server, daemon, close } = await connected(['batch', 'message-tags'])
  await daemon.status('ready')
  server.send(
    ':srv BATCH +1 chathistory #ops',
    '@batch=1;msgid=old :ann!a@h PRIVMSG #ops :svcbot: old',
    ':srv BATCH -1',
    ':ann!a@h PRIVMSG #ops :svcbot: new',
  )
  await daemon.heard('new')
  assert.is(daemon.events.length, 1)
  await close()
})

test('a setting or secret that would inject a command is refused', async () => {
  const bad: [object, Record<string, string>][] = [
    [{ nick: 'bot QUIT' }, {}],
    [{ channels: ['#a\r\nQUIT'] }, {}],
    [{ realname: 'x\nQUIT' }, {}],
    [{ server: 'a b' }, {}],
    [{ port: 70_000 }, {}],
    [{}, { server_password: 'x\r\nQUIT' }],
  ]
  for (const [more, secrets] of bad) {
    const { server, daemon, close } = await connected([], undefined, more, secrets)
    const { reason } = await daemon.status('error')
    assert.is(reason, 'tenant_config_invalid', JSON.stringify(more))
    assert.is(server.connections, 0)
    await close()
  }
  const { daemon, close } = await connected([], undefined, { login: 'sasl' })
  await daemon.status('auth_required')
  await close()
})

test('a server that never ends a line is disconnected', async () => {
  const { server, daemon, close } = await connected([])
  await daemon.status('ready')
  server.send('x'.repeat(200_000))
  assert.is((await daemon.status('degraded')).reason, 'provider_timeout')
  await close()
})

test.run()
