import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { CommandContext } from '../../../../kernel/plugin.js'
import { runPutSecret, runSetup, runSlackManifest } from '../../../../plugins/reach/bridges/commands.js'
import { EventReader } from '../../../../testing/index.js'
import { whileTimePasses } from '../../../harness/kernel.js'
import { FakePlatform } from './fake-platform.js'
import { scene } from './scene.js'

type Scene = Awaited<ReturnType<typeof scene>>

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
        lines.push(`${asked}${answer}`)
        queueMicrotask(() => take(answer))
        return () => {}
      },
    },
    unseen: async prompt => {
      lines.push(prompt)
      return hidden.shift()
    },
    readFile: async () => '',
    stdin: async () => hidden.shift() ?? '',
    onInterrupt: () => () => {},
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
    port: { type: 'integer' },
    tls: { type: 'boolean' },
    rooms: { type: 'array', items: { type: 'string' } },
    dm: { type: 'object' },
  },
})

test('the setup asks for everything, starts the bridge and proves what works', async () => {
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
      [/Workspace/, 'nosuch'],
      [/Workspace/, 'project'],
      [/1-3 \[1\]/, ''],
      [/server:/, ''],
      [/server:/, 'irc.example'],
      [/Go through them/, ''],
      [/nick, Enter to skip/, ''],
      [/port/, 'many'],
      [/port/, '6697'],
      [/tls/, 'yes'],
      [/rooms/, '#ops, #dev'],
      [/Ids of persons/, 'ada, bob'],
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
  assert.equal(bridge.provider_config, {
    server: 'irc.example',
    port: 6697,
    tls: true,
    rooms: ['#ops', '#dev'],
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

test('the setup of a platform that there is not, or without a terminal, says what to do', async () => {
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

test('a secret is read from a prompt or standard input, and the manifest is printed alone', async () => {
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
