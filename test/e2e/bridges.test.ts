// proof, timeout: 240s: whole daemons, killed, with servers of IRC and XMPP
import { mkdirSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Ngircd, Prosody } from '../harness/chat-servers.js'
import { Person as IrcPerson } from '../packages/bridge-irc/person.js'
import { type Got, Person as XmppPerson } from '../packages/bridge-xmpp/person.js'
import { Installed, until } from './installed.js'

const MS = 60_000
const agent = fileURLToPath(new URL('../fixtures/acp-agent.mjs', import.meta.url))
/** Times that the daemon is killed while it delivers. */
const KILLS = Number(process.env.KILLS ?? 4)

let svc: Installed
let irc: Ngircd
let xmpp: Prosody
let workspace: string
let ircBridge: string
let xmppBridge: string
let ann: IrcPerson
let ben: XmppPerson

async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const { status, text } = await svc.request('socket', method, path, body)
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}${svc.logTail()}`)
  return JSON.parse(text)
}

const statusOf = async (id: string) =>
  (await ask<{ bridge: { status: string } }>('GET', `/api/bridges/${id}`)).bridge.status
const untilStatus = (id: string, status: string) =>
  until(
    async () => (await statusOf(id)) === status || undefined,
    MS,
    () => `${id} that is ${status}${svc.logTail()}`,
  )

async function create(platform: string, config: object, secrets: Record<string, string> = {}): Promise<string> {
  const { bridge } = await ask<{ bridge: { id: string } }>('POST', '/api/bridges', {
    display_name: `Team ${platform}`,
    platform,
    extension_name: `bridge-${platform}`,
    scope: 'workspace',
    workspace_id: workspace,
    enabled: Object.keys(secrets).length === 0,
    routing_policy: { include_peer: true, include_group: false, include_thread: false },
    provider_config: config,
  })
  const { id } = bridge
  for (const [slot, secret_value] of Object.entries(secrets))
    await ask('PUT', `/api/bridges/${id}/secret-bindings/${slot}`, {
      ...{ kind: 'secret', secret_ref: `vault:bridges/${id}/${slot}`, secret_value },
    })
  if (Object.keys(secrets).length > 0) await ask('POST', `/api/bridges/${id}/enable`)
  return id
}

/** What a person of XMPP reads: each message as it was corrected last. */
function readBy(person: XmppPerson): string[] {
  const texts = new Map<string, string>()
  for (const { id, body, replaces } of person.got) texts.set(replaces ?? id, body)
  return [...texts.values()]
}

test.before(async () => {
  ;[irc, xmpp] = await Promise.all([
    Ngircd.start(),
    Prosody.start({ users: { bot: 'a-long-password', ben: 'secret', eve: 'secret' } }),
  ])
  svc = new Installed()
  for (const [name, permissions] of Object.entries({ helper: 'approve-all', careful: 'approve-reads' })) {
    const folder = join(svc.home, 'agents', name)
    mkdirSync(folder, { recursive: true })
    const front = `name: ${name}\npermissions: ${permissions}\ncommand: '${process.execPath} ${agent}'`
    writeFileSync(join(folder, 'AGENT.md'), `---\n${front}\n---\nYou help.\n`)
  }
  await svc.svc('daemon', 'start')
  const repository = svc.makeRepository('repository')
  const resolved = await ask<{ workspace: { id: string } }>('POST', '/api/workspaces/resolve', { path: repository })
  workspace = resolved.workspace.id
  await ask('PATCH', `/api/workspaces/${workspace}`, { default_agent: 'helper' })
})
test.after(async () => {
  await Promise.all([ann?.leave(), ben?.leave()])
  await svc.remove()
  await Promise.all([irc.remove(), xmpp.remove()])
})

test('bridges of both platforms become ready, and verify confirms it', async () => {
  ircBridge = await create('irc', {
    server: '127.0.0.1',
    port: irc.port,
    tls: false,
    nick: 'svcbot',
    channels: ['#ops'],
  })
  const account = {
    ...{ jid: 'bot@localhost', server: '127.0.0.1', port: xmpp.port, tls: 'none' },
    approvers: { user_ids: ['ben@localhost'] },
  }
  xmppBridge = await create('xmpp', account, { password: 'a-long-password' })
  await untilStatus(ircBridge, 'ready')
  await untilStatus(xmppBridge, 'ready')
  ann = await IrcPerson.join(irc.port, 'ann', '#ops')
  ben = await XmppPerson.login(xmpp.port, 'ben', 'secret')
  const listed = await svc.svc('extension', 'list')
  assert.match(listed, /bridge-irc/)
  assert.match(listed, /bundled/)
})

test('a person on each platform asks the same agent and gets an answer', async () => {
  ann.say('#ops', 'svcbot: say seven files')
  await ann.hears(line => line.includes('seven files'))
  await ben.say('bot@localhost', 'say eight files')
  await ben.hears(got => got.body.includes('eight files'))
  assert.is(ann.lines.filter(({ message }) => message.includes('seven files')).length, 1)
})

test('an answer on XMPP grows by corrections of one message, and a second question is queued', async () => {
  // In the workspace, which is what a sandbox shows.
  const gate = join(svc.folder, 'repository', 'gate')
  const before = readBy(ben).length
  await ben.say('bot@localhost', `say beginning\nuntil ${gate}\nsay ending`)
  const first = await ben.hears(got => got.body.includes('beginning'))
  await ben.say('bot@localhost', 'say second answer')
  assert.not(readBy(ben).some(text => text.includes('second answer')))
  writeFileSync(gate, '')
  // The whole word may itself have come as a correction, where the agent's first chunk ended within it.
  const id = first.replaces ?? first.id
  const grown = (got: Got) => got.replaces === id && got.body.includes('ending')
  await ben.hears(grown, 'the correction')
  await ben.hears(got => got.body.includes('second answer'))
  const texts = readBy(ben).slice(before)
  assert.is(texts.length, 2, JSON.stringify(ben.got))
  assert.match(texts[0] ?? '', /beginning\s+ending/)
})

test('a duplicate is answered once', async () => {
  // The same stanza id, as a client sends again what it has no acknowledgement for, within one archive entry each.
  await ben.say('bot@localhost', 'say only once', 'same-id')
  await ben.hears(got => got.body.includes('only once'))
  const pid = (await ask<{ extension: { pid: number } }>('GET', '/api/extensions/bridge-xmpp')).extension.pid
  // A new connection reads the archive again, in which the question still is.
  process.kill(pid, 'SIGKILL')
  await until(
    async () =>
      (await ask<{ extension: { pid?: number } }>('GET', '/api/extensions/bridge-xmpp')).extension.pid !== pid ||
      undefined,
    MS,
    () => 'another process',
  )
  await untilStatus(xmppBridge, 'ready')
  await ben.say('bot@localhost', 'say after that')
  await ben.hears(got => got.body.includes('after that'))
  assert.is(readBy(ben).filter(text => text.includes('only once')).length, 1, JSON.stringify(ben.got))
})

test('a failed task is announced once in a room, across a kill, and listed until it is acknowledged', async () => {
  const fails = async (title: string) => {
    const { task } = await ask<{ task: { id: string } }>('POST', '/api/tasks', { title, scope: 'global' })
    const { run } = await ask<{ run: { id: string } }>('POST', `/api/tasks/${task.id}/start`)
    await ask('POST', `/api/runs/${run.id}/fail`, { reason: 'exit 1' })
    await ann.hears(line => line.includes(title))
    return `task:${task.id}`
  }
  const targets = 'Team irc=group:#ops'
  const options = ['--events', 'task.run_*', '--filter', 'severity >= error', '--targets', targets, '--enable']
  await svc.svc('notifications', 'preset', 'create', 'failures', ...options)
  const first = await fails('Nightly build')
  process.kill(svc.discovery.pid, 'SIGKILL')
  await svc.svc('daemon', 'start')
  await untilStatus(ircBridge, 'ready')
  const second = await fails('Weekly build')
  for (const title of ['Nightly build', 'Weekly build'])
    assert.is(ann.lines.filter(({ message }) => message.includes(title)).length, 1, JSON.stringify(ann.lines))
  const listed = () => svc.svc('attention')
  assert.match(await listed(), first)
  await svc.svc('attention', 'ack', first)
  const left = await listed()
  assert.not.match(left, first)
  assert.match(left, second)
  await untilStatus(xmppBridge, 'ready')
})

test('a permission question is answered from the chat only by an approver', async () => {
  await ask('PATCH', `/api/workspaces/${workspace}`, { default_agent: 'careful' })
  const eve = await XmppPerson.login(xmpp.port, 'eve', 'secret')
  try {
    const question = JSON.stringify({
      toolCall: { toolCallId: 't1', title: 'Run the tests', kind: 'execute' },
      options: [
        { optionId: 'y', name: 'Yes', kind: 'allow_once' },
        { optionId: 'n', name: 'No', kind: 'reject_once' },
      ],
    })
    await eve.say('bot@localhost', `ask ${question}`)
    const asked = await eve.hears(got => /allow [B-Z2-9]{5}/.test(got.body), 'the question')
    const [, code] = /allow ([B-Z2-9]{5})/.exec(asked.body) ?? []
    assert.match(await svc.svc('attention'), /Run the tests/)
    await eve.say('bot@localhost', `allow ${code}`)
    await eve.hears(got => got.body.includes('You may not answer this'))
    assert.match(await svc.svc('attention'), /Run the tests/)
    await ben.say('bot@localhost', `allow ${code}`)
    await ben.hears(got => got.body.includes('Allowed.'))
    await eve.hears(got => got.body.includes('answer: y'))
    assert.not.match(await svc.svc('attention'), /Run the tests/)
  } finally {
    await eve.leave()
    await ask('PATCH', `/api/workspaces/${workspace}`, { default_agent: 'helper' })
  }
})

test('a kill in the middle of a delivery causes no repeated and no lost message', async () => {
  const before = readBy(ben).length
  for (let n = 0; n < KILLS; n++) {
    await ben.say('bot@localhost', `say answer ${n}.`)
    // From before the first message to behind the last correction.
    await new Promise(resolve => setTimeout(resolve, 1500 * ((n + 0.5) / KILLS)))
    process.kill(svc.discovery.pid, 'SIGKILL')
    await svc.svc('daemon', 'start')
    await untilStatus(xmppBridge, 'ready')
    await ben.say('bot@localhost', `say sign ${n}.`)
    await ben.hears(got => got.body.includes(`sign ${n}.`), `sign ${n}`)
  }
  const texts = readBy(ben).slice(before)
  for (let n = 0; n < KILLS; n++) {
    const answers = texts.filter(text => text.includes(`answer ${n}.`) || text.includes(`sign ${n}.`))
    assert.ok(answers.length <= 2, `twice: ${JSON.stringify(texts)}`)
  }
  // A turn that the kill cut off says so in the place of its answer.
  const notices = texts.filter(text => /interrupted|failed/.test(text)).length
  const answered = texts.filter(text => /answer \d/.test(text)).length
  assert.ok(answered + notices >= KILLS, JSON.stringify(texts))
  assert.ok(texts.length <= 2 * KILLS + notices, JSON.stringify(texts))
})

test('a stopped server degrades its bridge in the health stream, and the bridge recovers', async () => {
  const seen: string[] = []
  const stream = request({
    socketPath: join(svc.home, 'daemon.sock'),
    path: `/api/bridges/health/stream?bridge_ids=${ircBridge},${xmppBridge}`,
  })
  stream.on('response', response => {
    response.setEncoding('utf8').on('data', (text: string) => seen.push(text))
    response.on('error', () => {})
  })
  stream.on('error', () => {})
  stream.end()
  const shows = (pattern: RegExp) =>
    until(
      () => pattern.test(seen.join('')) || undefined,
      MS,
      () => `${pattern} in ${seen.join('').slice(-2000)}`,
    )
  await shows(/"ready"/)
  seen.length = 0
  await Promise.all([irc.stop(), xmpp.stop()])
  await shows(new RegExp(`${ircBridge}[^{}]*\\{[^{}]*"degraded"`))
  await shows(new RegExp(`${xmppBridge}[^{}]*\\{[^{}]*"degraded"`))
  await Promise.all([irc.start(), xmpp.start()])
  await untilStatus(ircBridge, 'ready')
  await untilStatus(xmppBridge, 'ready')
  stream.destroy()
  ann = await IrcPerson.join(irc.port, 'ann', '#ops')
  ann.say('#ops', 'svcbot: say back again')
  assert.match(await ann.hears(line => line.includes('back again')), /^back again/)
})

test.run()
