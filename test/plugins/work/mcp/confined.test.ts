// timeout: 180s
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { sandboxes, settings } from '../../../../plugins/index.js'
import { agentText } from '../../../fixtures/session-world.js'
import { type Caller, openScene, type Scene, until } from '../tools/scene.js'

const SERVER = fileURLToPath(new URL('./peeking-server.mjs', import.meta.url))
const test = suite<{ scene: Scene; inside: Caller; outside: Caller; offline: Caller; secret: string }>(
  'confined servers',
)

const bringing = (name: string, more = '') => [
  'mcp_servers:',
  `  - { name: ${name}, command: '${process.execPath}', args: ['${SERVER}'], env: { PEEK: given }${more} }`,
]

test.before(async context => {
  const program = { command: process.execPath, args: [SERVER] }
  const scene = await openScene({
    plugins: [sandboxes, settings],
    config: {
      tools: { policy: { external_default: 'enabled' } },
      sandboxes: {
        offline: { backend: 'bubblewrap', network: { allow_outbound: false }, env: { PEEK: 'of the profile' } },
        cloud: { backend: 'daytona' },
      },
      mcp_servers: {
        plain: program,
        boxed: { ...program, sandbox: 'offline' },
        refused: { ...program, sandbox: 'cloud' },
        unknown: { ...program, sandbox: 'nowhere' },
      },
    },
  })
  context.scene = scene
  context.secret = path.join(scene.world.home, 'secret.txt')
  writeFileSync(context.secret, 'of the home')
  const lines = bringing('own')
  const permissions = 'approve-all'
  context.inside = await scene.agent('inside', { permissions, lines, sandbox: 'default' })
  context.outside = await scene.agent('outside', { permissions, lines })
  context.offline = await scene.agent('offline', { permissions, lines, sandbox: 'offline' })
})
test.after(({ scene }) => scene.close())

/** What a server sees; its code and reasons when it cannot be called. */
async function peek(by: Caller, server: string, what: string, of = ''): Promise<string> {
  const tool = `mcp__${server}__peek`
  const found = await by.ask('POST', `${by.at}/tools/search`, { query: tool })
  assert.is(found.status, 200, JSON.stringify(found.body))
  const { status, body } = await by.call(tool, { what, of })
  if (status !== 200) return `${body.code} ${JSON.stringify(body)}`
  return body.result.content.map(({ text }: { text: string }) => text).join('')
}

test('an agent server of a sandboxed session cannot read the home of the daemon', async context => {
  const { inside, outside, secret, scene } = context
  assert.is(await peek(outside, 'own', 'read', secret), 'of the home')
  assert.is(await peek(inside, 'own', 'read', secret), 'ENOENT')
  assert.is(await peek(inside, 'own', 'there', path.join(scene.world.home, 'config.json')), 'false')
  assert.is(await peek(inside, 'own', 'write', '/etc/made'), 'EROFS')
  assert.is(await peek(inside, 'own', 'env', 'PEEK'), 'given')
  assert.match(await peek(inside, 'own', 'pid'), /^\d$/)
})

test('a confined server works in the session folders, and code to run outside is set aside at the end', async ({
  scene,
}) => {
  const { root } = scene.world
  const leaving = await scene.agent('leaving', {
    permissions: 'approve-all',
    lines: bringing('alone'),
    sandbox: 'default',
  })
  assert.is(await peek(leaving, 'alone', 'cwd'), root)
  assert.is(await peek(leaving, 'alone', 'write', 'made.txt'), 'written')
  assert.is(await peek(leaving, 'alone', 'write', '.mcp.json'), 'written')
  assert.ok(existsSync(path.join(root, '.mcp.json')), readdirSync(root).join(' '))
  await scene.operator('POST', `${leaving.at}/stop`)
  await until(async () => !existsSync(path.join(root, '.mcp.json')), 'the file to be put aside')
  const left = readdirSync(root)
  assert.ok(left.includes('made.txt'), left.join(' '))
  assert.ok(
    left.some(name => name.startsWith('.mcp.json.discarded-')),
    left.join(' '),
  )
})

test('files of a server that run outside every session are set aside at its end', async ({ outside, scene }) => {
  const { root } = scene.world
  const at = '/api/settings/mcp-servers/temporary'
  const server = { name: 'temporary', command: process.execPath, args: [SERVER], sandbox: 'default' }
  assert.is((await scene.operator('PUT', at, { server })).status, 200)
  assert.is(await peek(outside, 'temporary', 'write', 'CLAUDE.local.md'), 'written')
  assert.is(await peek(outside, 'temporary', 'write', '.mcp.json'), 'written')
  const removal = await scene.operator('DELETE', at)
  assert.is(removal.status, 200, JSON.stringify(removal.body))
  await until(async () => readdirSync(root).some(name => name.startsWith('.mcp.json.discarded-mcp_')), 'the file')
  assert.ok(readdirSync(root).includes('CLAUDE.local.md'))
})

test('sessions with other confinement have separate processes, with the network of their sandbox', async ({
  inside,
  offline,
  outside,
}) => {
  assert.is.not(await peek(offline, 'own', 'network'), await peek(outside, 'own', 'network'))
  assert.is(await peek(inside, 'own', 'network'), await peek(outside, 'own', 'network'))
  assert.is(await peek(offline, 'own', 'env', 'PEEK'), 'of the profile')
})

test('a server of the settings runs as its declaration says', async ({ inside, outside, scene, secret }) => {
  assert.is(await peek(inside, 'plain', 'read', secret), 'of the home')
  for (const by of [inside, outside]) {
    assert.is(await peek(by, 'boxed', 'read', secret), 'ENOENT')
    assert.is.not(await peek(by, 'boxed', 'network'), await peek(by, 'plain', 'network'))
  }
  const { body } = await scene.operator('GET', '/api/settings/mcp-servers/boxed')
  assert.is(body.mcp_server.sandbox, 'offline')
})

test('a server of an agent or extension runs in its named sandbox, also without a sandboxed session', async ({
  scene,
  secret,
}) => {
  const folder = path.join(scene.world.home, 'extensions', 'boxes')
  mkdirSync(folder, { recursive: true })
  const lines = ['name = "boxes"', 'version = "1.0.0"', '[resources.mcp_servers.shipped]', 'sandbox = "offline"']
  lines.push(`command = "${process.execPath}"`, `args = ["${SERVER}"]`)
  writeFileSync(path.join(folder, 'extension.toml'), lines.join('\n'))
  await until(async () => {
    const { body } = await scene.operator('GET', '/api/settings/mcp-servers')
    return body.mcp_servers.some(
      ({ name, sandbox }: { name: string; sandbox?: string }) => name === 'shipped' && sandbox,
    )
  }, 'the server of the extension')
  const named = bringing('named', ', sandbox: offline')
  const boxing = await scene.agent('boxing', { permissions: 'approve-all', lines: named })
  for (const server of ['named', 'shipped']) {
    assert.is(await peek(boxing, server, 'read', secret), 'ENOENT', server)
    assert.is.not(await peek(boxing, server, 'network'), await peek(boxing, 'plain', 'network'), server)
  }
  const { body } = await scene.operator('GET', '/api/agents/boxing')
  assert.is(body.agent.mcp_servers[0].sandbox, 'offline')
})

test('a server with a failed sandbox is refused and never started without one', async ({ outside, scene, secret }) => {
  for (const [name, why] of [
    ['refused', 'only bubblewrap is supported'],
    ['unknown', 'there is no sandbox profile nowhere'],
  ] as const) {
    const { body } = await scene.operator('GET', `/api/settings/mcp-servers/${name}?probe=true`)
    const { state, diagnostic, tool_count: tools } = body.mcp_server.runtime_status
    assert.equal([state, tools], ['failed', 0])
    assert.match(diagnostic, why)
    assert.not.match(await peek(outside, name, 'read', secret), 'of the home')
  }
})

test('a server with a sandbox is not handed to an agent that would start it', async ({ scene }) => {
  const at = (await scene.world.session('outside', { sandbox: 'none' })).at
  const handed = JSON.parse(agentText(await scene.world.prompt(at, 'handed'))).map(({ name }: { name: string }) => name)
  assert.ok(handed.includes('plain') && handed.includes('own'))
  assert.not.ok(handed.includes('boxed') || handed.includes('refused'))
})

test('only a server with a command has a sandbox', async ({ scene }) => {
  const put = (server: object) =>
    scene.operator('PUT', '/api/settings/mcp-servers/far', { server: { name: 'far', ...server } })
  const { status, body } = await put({ url: 'https://mcp.example/', sandbox: 'default' })
  assert.equal([status, body.code], [400, 'mcp_server_invalid'])
  assert.is((await put({ command: 'true', sandbox: '../x' })).status, 400)
})

test.run()
