import { mkdirSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { Ngircd, Prosody } from '../harness/chat-servers.js'
import { Person as IrcPerson } from '../packages/bridge-irc/person.js'
import { Person as XmppPerson } from '../packages/bridge-xmpp/person.js'
import type { ChatBot } from './chat-bot.js'
import { Child } from './child.js'
import type { Context } from './context.js'
import { makeHome, startDaemon } from './daemon.js'
import { median, ms, pairs, pause } from './measure.js'
import type { Row } from './report.js'
import { call } from './session-home.js'

/** Questions of one person in one place and round: with more than nine in a minute the pair limit begins. */
const QUESTIONS = 4

/** A model takes longer. */
const THINKING_MS = 300
/** Milliseconds between an answer and the next question. */
const READING_MS = 150

/** A question in a chat until its answer is read, with the daemon and with a bot of the bare client library, on the same servers. */
export async function benchBridges(context: Context): Promise<void> {
  const { root, program, temp, report, quick } = context
  const rounds = quick ? 3 : 5
  const places = Array.from({ length: rounds }, (_, n) => n)
  const channels = places.map(n => `#bench${n}`)
  const users = {
    bridge: 'password-of-bridge',
    bare: 'password-of-bare',
    ...Object.fromEntries(places.map(n => [`ann${n}`, 'password-of-ann'])),
  }
  const [irc, xmpp] = await Promise.all([Ngircd.start(), Prosody.start({ users })])
  const argv = [process.execPath, path.join(root, 'test/fixtures/acp-agent.mjs')]
  const home = makeHome(temp, 'bridges')
  const folder = path.join(home.home, 'agents', 'helper')
  mkdirSync(folder, { recursive: true })
  const front = `name: helper\npermissions: approve-all\ncommand: '${argv.join(' ')}'`
  writeFileSync(path.join(folder, 'AGENT.md'), `---\n${front}\n---\nYou help.\n`)
  const daemon = await startDaemon(context, home)
  const ask = (method: string, url: string, body?: object) => call(home.socket, method, url, body)
  const project = path.join(temp, 'bridges-project')
  mkdirSync(project)
  const { workspace } = await ask('POST', '/api/workspaces/resolve', { path: project })
  await ask('PATCH', `/api/workspaces/${workspace.id}`, { default_agent: 'helper' })
  /** Makes a bridge; resolves when it is ready. */
  const connect = async (platform: string, config: object, secrets: Readonly<Record<string, string>>) => {
    const { bridge } = await ask('POST', '/api/bridges', {
      ...{ display_name: platform, platform, extension_name: `bridge-${platform}`, enabled: false },
      ...{ scope: 'workspace', workspace_id: workspace.id, provider_config: config },
      routing_policy: { include_peer: true, include_group: false, include_thread: false },
    })
    for (const [slot, secret_value] of Object.entries(secrets))
      await ask('PUT', `/api/bridges/${bridge.id}/secret-bindings/${slot}`, {
        ...{ kind: 'secret', secret_ref: `vault:bridges/${bridge.id}/${slot}`, secret_value },
      })
    await ask('POST', `/api/bridges/${bridge.id}/enable`)
    while ((await ask('GET', `/api/bridges/${bridge.id}`)).bridge.status !== 'ready') await pause(20)
  }
  // The bare library has no flood control, and the server none either.
  const flood = { flood_burst: 100, flood_lines_per_minute: 6000 }
  await connect('irc', { server: '127.0.0.1', port: irc.port, tls: false, nick: 'bridge', channels, ...flood }, {})
  const account = { jid: 'bridge@localhost', server: '127.0.0.1', port: xmpp.port, tls: 'none' }
  await connect('xmpp', account, { password: users.bridge })
  const bots = [0, 1].map(() => Child.start<ChatBot>(program('chat-bot')))
  await bots[0]?.call('irc', irc.port, 'bare', channels, argv)
  await bots[1]?.call('xmpp', xmpp.port, 'bare', users.bare, argv)
  const onIrc = await IrcPerson.join(irc.port, 'ann', ...channels)
  const onXmpp = await Promise.all(places.map(n => XmppPerson.login(xmpp.port, `ann${n}`, 'password-of-ann')))
  let questions = 0
  /** Milliseconds from a question until its answer is there, the middle of some. */
  const roundTrip = async (
    count: number,
    put: (question: string, expected: string) => Promise<unknown>,
    thinkingMs = 0,
  ) => {
    const times: number[] = []
    for (let n = 0; n < count; n++) {
      // Who asks has read the answer before. Without a pause the servers, which leave Nagle's algorithm on, hold the question back for
      // 40 ms, until what they sent to the bot before is acknowledged.
      await pause(READING_MS)
      const expected = `answer ${++questions}.`
      const began = performance.now()
      await put(thinkingMs > 0 ? `sleep ${thinkingMs}\nsay ${expected}` : `say ${expected}`, expected)
      times.push(performance.now() - began)
    }
    return median(times)
  }
  const inChannel = (nick: string, place: number) => async (question: string, expected: string) => {
    onIrc.say(`#bench${place}`, `${nick}: ${question}`)
    await onIrc.hears(text => text === expected)
  }
  const direct = (user: string, place: number) => async (question: string, expected: string) => {
    const person = onXmpp[place] as XmppPerson
    await person.say(`${user}@localhost`, question)
    await person.hears(({ body }) => body.trim() === expected)
  }
  const rows: Row[] = []
  for (const [what, to, thinkingMs] of [
    ['IRC: a question', inChannel, 0],
    ['XMPP: a question', direct, 0],
    [`XMPP: a question to an agent that thinks for ${THINKING_MS} ms`, direct, THINKING_MS],
  ] as const) {
    // Sessions and their agents start with the first question of each place.
    for (const place of places) for (const name of ['bridge', 'bare']) await roundTrip(1, to(name, place))
    const next = { bridge: 0, bare: 0 }
    const measure = (name: 'bridge' | 'bare') => roundTrip(QUESTIONS, to(name, next[name]++), thinkingMs)
    const { a, b, ratio } = await pairs(
      rounds,
      () => measure('bridge'),
      () => measure('bare'),
    )
    rows.push({
      what: `${what} until its answer is read, durable at each step`,
      ours: ms(a),
      baseline: `bare client library and bare ACP client: ${ms(b)}`,
      ratio,
      value: ratio,
      target: { atMost: 1.5 },
    })
  }
  rows.push(await healthRow(home.socket, quick ? 5 : 30))
  await Promise.all([onIrc.leave(), ...onXmpp.map(one => one.leave()), ...bots.map(bot => bot.kill())])
  await daemon.stop()
  await Promise.all([irc.remove(), xmpp.remove()])
  report.section(`Bridges${quick ? ', coarse' : ''}`, rows)
}

/** Bridges that a health stream names at most. */
const FOLLOWED = 200
/** Milliseconds after which a stream tells of another change. */
const PACE_MS = 150

/** A change of a bridge until the health stream tells of it, among many bridges beside one alone. */
async function healthRow(socketPath: string, count: number): Promise<Row> {
  const ids: string[] = []
  for (let n = 0; n < FOLLOWED; n++) {
    const body = {
      ...{ display_name: `quiet ${n}`, platform: 'slack', extension_name: 'bridge-slack', scope: 'global' },
      ...{ enabled: false, routing_policy: { include_peer: true, include_group: false, include_thread: false } },
    }
    ids.push((await call(socketPath, 'POST', '/api/bridges', body)).bridge.id)
  }
  /** Milliseconds until a stream of so many bridges told of each change of one, the middle. */
  const textOf = async (followed: readonly string[]) => {
    let seen = ''
    let wake = () => {}
    const url = `/api/bridges/health/stream?bridge_ids=${followed.join(',')}`
    const request = http.get({ socketPath, path: url, agent: false }, response => {
      response.on('error', () => {})
      response.setEncoding('utf8').on('data', (text: string) => {
        seen += text
        wake()
      })
    })
    request.on('error', () => {})
    const shows = async (text: string) => {
      while (!seen.includes(text))
        await new Promise<void>(resolve => {
          wake = resolve
        })
    }
    await shows('event: snapshot')
    const times: number[] = []
    const [id = ''] = followed
    for (let n = 0; n < count; n++) {
      await pause(PACE_MS)
      seen = ''
      const began = performance.now()
      // Without its secrets no process starts.
      await call(socketPath, 'POST', `/api/bridges/${id}/${n % 2 === 0 ? 'enable' : 'disable'}`)
      await shows(`"${id}"`)
      times.push(performance.now() - began)
    }
    await call(socketPath, 'POST', `/api/bridges/${id}/disable`)
    request.destroy()
    return median(times)
  }
  const { a, b, ratio } = await pairs(
    3,
    () => textOf(ids),
    () => textOf(ids.slice(0, 1)),
  )
  return {
    what: `a change of a bridge, durable, until the health stream of ${FOLLOWED} tells of it`,
    ours: ms(a),
    baseline: `stream of one: ${ms(b)}`,
    ratio,
  }
}
