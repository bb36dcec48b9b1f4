import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, surfaceOf } from '../../../kernel/plugin.js'
import { ProviderCatalog, Providers, type ProvidersApi } from '../../../plugins/agents/providers/api.js'
import providers from '../../../plugins/agents/providers/index.js'
import daemon from '../../../plugins/desk/daemon/index.js'
import { auth, identity, sandboxes, settings } from '../../../plugins/index.js'
import { label, testCases } from '../../fixtures/cases.js'
import { AGENT, agentText, openWorld } from '../../fixtures/session-world.js'
import { boot, temporaryFolder } from '../../harness/kernel.js'
import { scene } from '../desk/settings/scene.js'

/** A daemon with entries of providers, and what an extension adds. */
async function booted(entries: object, added: readonly object[] = []) {
  const home = await temporaryFolder('entries')
  await writeFile(path.join(home, 'config.json'), JSON.stringify({ providers: entries }))
  let api: ProvidersApi | undefined
  const { contribute } = surfaceOf<object>()
  const extension = definePlugin({
    name: 'acme.agents',
    version: '1.0.0',
    requires: { providers: Providers },
    service: async () =>
      class {
        constructor(kernel: { needs: { providers: ProvidersApi } }) {
          api = kernel.needs.providers
        }
      },
  }).surface({ registries: [contribute(ProviderCatalog, () => added as never)] })
  const kernel = await boot({ home, plugins: [daemon, providers, extension] })
  return {
    kernel,
    api: api as ProvidersApi,
    async close() {
      await kernel.close()
      await rm(home, { recursive: true })
    },
  }
}

testCases({
  open: () =>
    booted({
      first: { command: 'npx -y @acme/first-acp@1.2.3' },
      second: { command: 'npx -y @acme/second-acp' },
      snake: { command: 'uvx --python 3.12 --from snake-acp==2.0 snake' },
    }),
  close: ({ close }) => close(),
  cases: [
    ['npx -y @acme/second-acp@9 --acp', 'second'],
    ['npx --package=@acme/first-acp first', 'first'],
    ['uvx snake-acp', 'snake'],
    ['env A=b C=d gemini --acp', 'gemini'],
    ['/opt/bin/claude-code-acp', 'claude'],
    ['npx -y @agentclientprotocol/claude-agent-acp@0.101.0', 'claude'],
    ['node /x/node_modules/@agentclientprotocol/codex-acp/dist/index.js', 'codex'],
    ['npx -y somebody-else', undefined],
    ['node agent.js', undefined],
    ['npx', undefined],
    ['', undefined],
  ] as const,
  name: ([line, name]) => `the command "${line}" is ${name ? `the agent ${name}` : 'no known agent'}`,
  run: ({ api }, [line, name]) => assert.is(api.programOf(line.split(' '))?.name, name),
})

test('an entry states the needs of its agent; an entry that starts or is like another inherits them', async () => {
  const { api, close } = await booted({
    goose: { command: 'goose acp', own_files: ['.config/goose'], code_files: ['.config/goose/config.yaml'] },
    pinned: { command: 'npx -y @google/gemini-cli@0.61.0 --acp', own_files: ['.gemini-2'] },
    wrapped: { command: 'my-claude', like: 'claude', env: { CLAUDE_MODE: 'x' } },
    kimi: { withholds: ['terminal'] },
  })
  assert.equal(api.get('goose')?.ownFiles, ['.config/goose'])
  assert.equal([api.get('pinned')?.withholds, api.get('pinned')?.ownFiles], [['fs'], ['.gemini-2']])
  const wrapped = api.named('wrapped')
  assert.equal([wrapped.ownFiles, wrapped.argv], [api.get('claude')?.ownFiles, ['my-claude']])
  assert.is((await api.environment(wrapped)).CLAUDE_MODE, 'x')
  assert.equal(api.get('kimi')?.withholds, ['terminal'])
  assert.ok(api.get('kimi')?.ownFiles?.includes('.kimi-code'))
  await close()
})

test('an extension adds providers; a duplicate name or invalid entry is skipped', async () => {
  const { kernel, api, close } = await booted({ acme: { own_files: ['.acme-2'] } }, [
    { name: 'acme', settings: { command: 'acme --acp', display_name: 'Acme', own_files: ['.acme'] } },
    { name: 'claude', settings: { command: 'evil' } },
    { name: 'far', settings: { command: 'far', own_files: ['../.ssh'] } },
  ])
  const listed = (await kernel.request('GET', '/api/providers/acme')).body
  assert.equal([listed.display_name, listed.command], ['Acme', 'acme --acp'])
  assert.equal(api.get('acme')?.ownFiles, ['.acme-2'])
  assert.is(api.get('claude')?.argv[0], 'claude-agent-acp')
  assert.is(api.get('far'), undefined)
  const { items } = (await kernel.request('GET', '/api/doctor?only=runtime.providers')).body
  const taken = items.find((item: { code: string }) => item.code === 'provider_name_taken')
  assert.match(taken.message, /an extension adds a provider claude/)
  await close()
})

const put = (kernel: Awaited<ReturnType<typeof scene>>, entry: object) =>
  kernel.request('PUT', '/api/settings/providers/acme', { settings: entry })

testCases<Awaited<ReturnType<typeof scene>>, object>({
  open: () => scene(),
  close: kernel => kernel.close(),
  cases: [
    { own_files: ['/etc'] },
    { own_files: ['..'] },
    { own_files: ['.'] },
    { own_files: ['.config/../../x'] },
    { code_files: ['~/x/'] },
    { env: { API_KEY: 'x' } },
    { env: { LD_PRELOAD: 'x' } },
    { asking_env: { PATH: 'x' } },
    { withholds: ['everything'] },
  ],
  name: entry => `an entry with an unsafe path or variable is refused: ${label(entry)}`,
  run: async (kernel, entry) => assert.is((await put(kernel, { command: 'acme', ...entry })).status, 400),
  after: [
    'an entry like an unknown provider is stored and reported',
    async kernel => {
      assert.ok((await put(kernel, { command: 'acme', own_files: ['.acme'], like: 'gone' })).status < 300)
      const { items } = (await kernel.request('GET', '/api/doctor?only=runtime.providers')).body
      assert.match(
        items.find((item: { code: string }) => item.code === 'provider_unknown')?.message,
        /providers\.acme\.like is "gone"; choose local, claude/,
      )
    },
  ],
})

test('an agent does not get capabilities its provider withholds, and only MCP servers it can reach', async () => {
  const home = await temporaryFolder('entries-home')
  const bin = path.join(home, 'bin')
  mkdirSync(bin)
  const script = (name: string) =>
    writeFileSync(path.join(bin, name), `#!/bin/sh\nexec '${process.execPath}' '${AGENT}' --mcp-http "$@"\n`, {
      mode: 0o755,
    })
  script('acme')
  const world = await openWorld({
    config: { providers: { acme: { command: 'acme', withholds: ['fs', 'elicitation'], mcp_transports: ['http'] } } },
  })
  await world.agent('plain')
  await world.agent('less', {
    command: path.join(bin, 'acme'),
    lines: [
      'mcp_servers:',
      '  - name: near',
      '    command: node',
      '  - name: far',
      '    transport: http',
      '    url: http://127.0.0.1:9/mcp',
    ],
  })
  const [plain, less] = [await world.session('plain'), await world.session('less')]
  assert.match(agentText(await world.prompt(plain.at, 'capabilities')), /capabilities elicitation fs terminal\n/)
  const text = agentText(await world.prompt(less.at, 'capabilities\nhanded'))
  assert.match(text, /capabilities terminal\n/)
  assert.match(text, /far/)
  assert.not.match(text, /near/)
  const warned = (await world.events(less.at)).filter(({ content }) => content.warning === 'mcp_server_left_out')
  assert.equal(
    warned.map(({ content }) => content.text),
    ['the agent starts no MCP servers that are programs; it does without near'],
  )
  await world.close()
  rmSync(home, { recursive: true })
})

test('an agent in a sandbox has its own files; a failed login with unknown files says that they are hidden', async () => {
  const user = await temporaryFolder('entries-user')
  const login = path.join(user, '.acme/login')
  mkdirSync(path.dirname(login))
  writeFileSync(login, '')
  const file = path.join(user, 'bin/acme-agent')
  mkdirSync(path.dirname(file))
  writeFileSync(file, `#!/bin/sh\nexec '${process.execPath}' '${AGENT}' '--login-file=${login}' "$@"\n`, {
    mode: 0o755,
  })
  const world = await openWorld({ plugins: [auth, identity, sandboxes, settings], env: { ...process.env, HOME: user } })
  await world.agent('ada', { command: file })
  const hidden = await world.prompt((await world.session('ada')).at, 'say in')
  assert.match(
    hidden.at(-1)?.content.error,
    /requires a login.*the sandbox hides its files in the home folder; make them visible: svc config set providers\.local\.own_files/,
  )
  const put = await world.kernel.request('PUT', '/api/settings/providers/acme', {
    settings: { command: 'acme-agent', own_files: ['.acme'] },
  })
  assert.ok(put.status < 300, JSON.stringify(put.body))
  const { at } = await world.session('ada')
  assert.match(agentText(await world.prompt(at, 'say in')), /in\n/)
  assert.is(readFileSync(login, 'utf8'), '')
  await world.close()
  rmSync(user, { recursive: true })
})

test('a session in a sandbox that asks tells its agent the notice of the provider', async () => {
  const user = await temporaryFolder('entries-user')
  const file = path.join(user, 'bin/acme')
  mkdirSync(path.dirname(file))
  writeFileSync(file, `#!/bin/sh\nexec '${process.execPath}' '${AGENT}' "$@"\n`, { mode: 0o755 })
  const world = await openWorld({
    plugins: [auth, identity, sandboxes],
    config: { providers: { acme: { command: 'acme', sandboxed_note: 'Ask before each command.' } } },
    env: { ...process.env, HOME: user },
  })
  await world.agent('asking', { command: file, permissions: 'approve-reads' })
  await world.agent('free', { command: file })
  const contextOf = async (agent: string, body: object) =>
    agentText(await world.prompt((await world.session(agent, body as never)).at, 'echo'))
  assert.match(await contextOf('asking', { sandbox: 'default' }), /Ask before each command\./)
  assert.not.match(await contextOf('asking', { sandbox: 'none' }), /Ask before/)
  assert.not.match(await contextOf('free', {}), /Ask before/)
  await world.close()
  rmSync(user, { recursive: true })
})

test.run()
