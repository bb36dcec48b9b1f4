import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { CommandContext } from '../../../../kernel/plugin.js'
import { runPutSecret, runSetup, runSlackManifest } from '../../../../plugins/reach/bridges/commands.js'
import { EventReader } from '../../../../testing/index.js'
import { whileTimePasses } from '../../../harness/kernel.js'
import { FakePlatform } from './fake-platform.js'
import { scene } from './scene.js'

type Scene = Awaited<ReturnType<typeof scene>>

/** An answer that is Ctrl-C. */
const CTRL_C = '\u0003'

/** A person at a terminal who gives these answers, and what was shown. */
function person(
  s: Scene,
  answers: readonly (readonly [question: RegExp, answer: string])[],
  secrets: readonly string[] = [],
) {
  const lines: string[] = []
  const left = [...answers]
  const hidden = [...secrets]
  let asked = ''
  const values: unknown[] = []
  let interrupt = () => {}
  const context = (args: Record<string, string>, options: CommandContext['options'] = {}): CommandContext => ({
    path: 'bridge',
    args,
    options,
    cwd: s.folder,
    home: s.home,
    signal: new AbortController().signal,
    client: {
      request: async (method, url, body) => {
        const reply = await s.request(method, url, body)
        if (reply.status >= 400) throw Object.assign(new Error(reply.body.error), { code: reply.body.code })
        return reply.body
      },
      async *stream(url, { signal } = {}) {
        const reader = await EventReader.open({ socket: s.inside().home.socket }, url, {}, work =>
          whileTimePasses(s.clock, work),
        )
        signal?.addEventListener('abort', () => reader.close())
        for await (const { id, event = '', data } of reader) yield { id: id ?? '', event, data }
      },
    },
    out: {
      json: false,
      line: text => void lines.push(text),
      text: text => {
        asked = text
      },
      id: () => {},
      value: value => void values.push(value),
      table: () => {},
      color: (_, text) => text,
    },
    terminal: {
      now: () => 0,
      onLine: take => {
        const [question, answer] = left.shift() ?? [/^$/, '']
        assert.match(asked, question)
        lines.push(...`${asked}${answer === CTRL_C ? '' : answer}`.split('\n'))
        queueMicrotask(() => (answer === CTRL_C ? interrupt() : take(answer)))
        return () => {}
      },
    },
    unseen: async prompt => {
      lines.push(prompt)
      const typed = hidden.shift()
      if (typed !== CTRL_C) return typed
      setImmediate(() => interrupt())
      return undefined
    },
    readFile: async () => '',
    stdin: async () => hidden.shift() ?? '',
    onInterrupt: take => {
      interrupt = take
      return () => {}
    },
    fault: (code, text, next) => {
      throw Object.assign(new Error(text), { code, next })
    },
  })
  return { context, lines, values, left, hidden }
}

const schema = JSON.stringify({
  type: 'object',
  required: ['server'],
  properties: {
    nick: { type: 'string', description: 'Name of the bot' },
    server: { type: 'string', description: 'Host name of the server' },
    port: { type: 'integer', default: 6667 },
    tls: { type: 'boolean' },
    rooms: { type: 'array', items: { type: 'string' }, default: [] },
    dm: { type: 'object', properties: { allow_user_ids: { description: 'Ids are shown by /whoami' } } },
  },
})

test('the setup asks for every value, starts the bridge and verifies it', async () => {
  const platform = new FakePlatform({
    configSchema: schema,
    secretSlots: [
      {
        name: 'password',
        kind: 'secret',
        description: 'Password of the account, from its settings page',
        required: true,
      },
      { name: 'proxy_key', kind: 'secret' },
    ],
  })
  const s = await scene([platform], { listen: ['socket'] })
  const workspace = await s.workspace()
  const { context, lines, left, hidden } = person(
    s,
    [
      [/Name of the bridge \[Fake chat\]/, 'Ops'],
      [/Workspace or folder/, 'nosuch'],
      [/Workspace or folder/, 'project'],
      [/1-3 \[1\]/, ''],
      [/server:/, ''],
      [/server:/, 'irc.example'],
      [/rooms, separated by commas/, '#ops, #dev'],
      [/Go through them\? \(y\/n\) \[n\]/, 'y'],
      [/nick, Enter to skip/, ''],
      [/port, Enter for 6667/, 'many'],
      [/port/, '6697'],
      [/tls/, 'yes'],
      [/User ids, separated/, 'ada, bob'],
      [/permission questions/, 'y'],
    ],
    ['', 'correct-horse-battery', ''],
  )
  await runSetup(context({ platform: 'fakechat' }))
  assert.equal([left.length, hidden.length], [0, 0])
  const { bridges } = (await s.request('GET', '/api/bridges')).body
  assert.is(bridges.length, 1)
  const [bridge] = bridges
  assert.equal(
    [bridge.display_name, bridge.workspace_id, bridge.status, bridge.dm_policy],
    ['Ops', workspace, 'ready', 'allowlist'],
  )
  assert.equal(bridge.routing_policy, { include_peer: false, include_group: true, include_thread: false })
  assert.equal(bridge.provider_config, {
    server: 'irc.example',
    port: 6697,
    tls: true,
    rooms: ['#ops', '#dev'],
    routing: { fallback: true },
    dm: { allow_user_ids: ['ada', 'bob'] },
    approvers: { user_ids: ['ada', 'bob'] },
  })
  assert.equal(
    platform.running[0]?.secrets.map(({ value }) => value),
    ['correct-horse-battery'],
  )
  const shown = lines.join('\n')
  for (const text of [
    'Password of the account',
    'Ids are shown by /whoami',
    'not of type integer',
    '✓ ready',
    '✓ configuration',
    '✓ transport',
    '✗ inbound',
    '✗ outbound',
  ])
    assert.ok(shown.includes(text), text)
  assert.not.match(shown, 'correct-horse-battery')
  for (const line of lines) assert.ok(line.length <= 80, line)
  await s.end()
})

test('a folder becomes the workspace; Ctrl-C ends the setup and names the leftovers', async () => {
  const platform = new FakePlatform({ secretSlots: [{ name: 'token', kind: 'token', required: true }] })
  const s = await scene([platform], { listen: ['socket'] })
  await mkdir(path.join(s.folder, 'fresh', '.git'), { recursive: true })
  const failure = async (of: CommandContext) =>
    runSetup(of).then(
      () => '',
      error => `${error.code}: ${error.message}; ${error.next}`,
    )
  const early = person(s, [[/Name of the bridge/, CTRL_C]])
  assert.match(
    await failure(early.context({ platform: 'fakechat' })),
    /^interrupted: .*nothing was created; svc bridge setup fakechat$/,
  )
  assert.equal((await s.request('GET', '/api/bridges')).body.bridges, [])
  const late = person(
    s,
    [
      [/Name of the bridge/, ''],
      [/Workspace or folder/, './fresh'],
      [/1-3/, '2'],
      [/User ids, separated/, ''],
    ],
    [CTRL_C],
  )
  const text = await failure(late.context({ platform: 'fakechat' }))
  const [bridge] = (await s.request('GET', '/api/bridges')).body.bridges
  assert.is(late.left.length, 0)
  assert.match(text, `the bridge ${bridge.id} stays, disabled`)
  assert.match(text, `svc bridge enable ${bridge.id}`)
  assert.equal([bridge.enabled, bridge.routing_policy.include_thread], [false, true])
  const { workspaces } = (await s.request('GET', '/api/workspaces')).body
  assert.equal(
    [workspaces.length, workspaces[0].id, path.basename(workspaces[0].root_dir)],
    [1, bridge.workspace_id, 'fresh'],
  )
  await s.end()
})

test('threads are offered where the platform supports them', async () => {
  const s = await scene([new FakePlatform({ capabilities: { threads: false } })], { listen: ['socket'] })
  await s.workspace()
  const { context, left, lines } = person(s, [
    [/Name of the bridge/, ''],
    [/Workspace or folder/, 'project'],
    [/1-2 \[1\]/, '2'],
    [/User ids, separated/, ''],
  ])
  await runSetup(context({ platform: 'fakechat' }))
  assert.is(left.length, 0)
  assert.not.match(lines.join('\n'), /thread/)
  const [bridge] = (await s.request('GET', '/api/bridges')).body.bridges
  assert.equal(bridge.routing_policy, { include_peer: true, include_group: true, include_thread: false })
  await s.end()
})

test('the setup of a send-only bridge does not ask for senders', async () => {
  const s = await scene([new FakePlatform()], { listen: ['socket'] })
  const { context, left } = person(s, [
    [/Name of the bridge/, ''],
    [/Workspace or folder/, '-'],
  ])
  await runSetup(context({ platform: 'fakechat' }))
  assert.is(left.length, 0)
  const [bridge] = (await s.request('GET', '/api/bridges')).body.bridges
  assert.equal([bridge.scope, bridge.status], ['global', 'ready'])
  await s.end()
})

test('the setup of an unknown platform or without a terminal names the next step', async () => {
  const s = await scene()
  const { context } = person(s, [])
  const failure = async (of: CommandContext) =>
    runSetup(of).then(
      () => '',
      error => `${error.code}: ${error.message}`,
    )
  assert.match(await failure(context({ platform: 'nosuch' })), /bridge_provider_not_found: .*fakechat/)
  const { terminal: _, ...without } = context({ platform: 'fakechat' })
  assert.match(await failure(without as CommandContext), /terminal_missing/)
  assert.equal((await s.request('GET', '/api/bridges')).body.bridges, [])
  await s.end()
})

test('a secret is read from a prompt or standard input, and the manifest is printed without it', async () => {
  const platform = new FakePlatform({
    platform: 'slack',
    secretSlots: [{ name: 'bot_token', kind: 'token', required: true }],
  })
  const s = await scene([platform])
  const { id } = await s.create({ platform: 'slack' })
  const { context, lines } = person(s, [], ['typed-token-1', 'piped-token-2\n', '\n'])
  await runPutSecret(context({ id, slot: 'bot_token' }))
  await s.until('it has it', () => platform.running[0]?.secrets[0]?.value === 'typed-token-1')
  await runPutSecret(context({ id, slot: 'bot_token' }, { 'value-stdin': true }))
  await s.until('it has it', () => platform.running[0]?.secrets[0]?.value === 'piped-token-2')
  const refused = await runPutSecret(context({ id, slot: 'bot_token' }, { 'value-stdin': true })).then(
    () => '',
    error => error.code,
  )
  assert.is(refused, 'usage')
  lines.length = 0
  await runSlackManifest(context({ id }))
  assert.is(JSON.parse(lines.join('\n')).settings.socket_mode_enabled, true)
  await s.end()
})

test.run()
