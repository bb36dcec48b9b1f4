// timeout: 180s
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseManifest } from '../../../../plugins/delivery/extensions/api.js'
import { publishTo } from '../../../../plugins/delivery/extensions/authoring/publish.js'
import {
  automation,
  bundles,
  extensions,
  hooks,
  marketplace,
  sandboxes,
  settings,
  skills,
  tools,
  vault,
} from '../../../../plugins/index.js'
import { openWorld, type World } from '../../../fixtures/session-world.js'
import { type Reply, temporaryFolder } from '../../../harness/kernel.js'
import { until } from '../../work/tools/scene.js'

const MANIFEST = `name = "peek"
version = "1.0.0"
requires_env = ["KEY"]
[capabilities]
provides = ["tool.provider"]
[permissions]
requires = ["state/get", "state/put"]
[subprocess]
command = "node"
args = ["{{config_dir}}/main.mjs"]
[[tools]]
id = "look"
handler = "look"
description = "Tells what it sees"
risk = "read"
input_schema = '{"type":"object","properties":{"what":{"type":"string"},"of":{"type":"string"}}}'
`

/** A program that tells what it sees and can do. */
const MAIN = `import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
let data
let asked = 0
const waiting = new Map()
const send = message => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
const ask = (method, params) => new Promise((resolve, reject) => {
  waiting.set(++asked, { resolve, reject })
  send({ id: asked, method, params })
})
const looks = {
  put: async key => JSON.stringify(await ask('state/put', { key, value: 'kept' })),
  get: async key => JSON.stringify(await ask('state/get', { key })),
  data: () => data,
  read: file => readFileSync(file, 'utf8'),
  there: file => String(existsSync(file)),
  write: file => writeFileSync(file, 'written') ?? 'written',
  env: name => process.env[name] ?? 'unset',
  names: () => Object.keys(process.env).sort().join(' '),
}
const methods = {
  initialize: ({ protocol_version, extension, capabilities, runtime }) => ({
    protocol_version: (data = runtime.data_dir, protocol_version),
    extension_info: { name: extension.name, version: extension.version },
    accepted_capabilities: { provides: capabilities.provides, permissions: capabilities.granted_permissions },
    implemented_methods: ['health_check', 'shutdown', 'provide_tools', 'tools/call'],
    supported_hook_events: [],
    supports: { health_check: true },
  }),
  health_check: () => ({ healthy: true }),
  shutdown: () => (setImmediate(() => process.exit(0)), { acknowledged: true }),
  provide_tools: () => ({ tools: [{ id: 'look', handler: 'look' }] }),
  'tools/call': async ({ input: { what, of } }) => {
    try {
      return { seen: await looks[what](of) }
    } catch (error) {
      return { seen: error.code }
    }
  },
}
createInterface({ input: process.stdin })
  .on('line', async line => {
    const { id, method, params, result, error } = JSON.parse(line)
    if (method) return send({ id, result: await methods[method](params) })
    const { resolve, reject } = waiting.get(id)
    error ? reject(Object.assign(new Error(error.message), { code: error.message })) : resolve(result)
  })
  .on('close', () => process.exit(0))
`

type Ask = (method: string, url: string, body?: unknown) => Promise<Reply>
const test = suite<{
  world: World
  ask: Ask
  install: () => Promise<void>
  look: (what: string, of?: string) => Promise<string>
}>('confined process')

test.before(async context => {
  const catalog = await temporaryFolder('catalog')
  const world = await openWorld({
    plugins: [automation, bundles, extensions, hooks, marketplace, sandboxes, settings, skills, tools, vault],
    config: {
      marketplace: { catalog: { base_url: catalog } },
      tools: { policy: { external_default: 'enabled' } },
    },
    env: { ...process.env, SECRET_OF_THE_DAEMON: 'value-of-the-daemon', SVC_MASTER_KEY: undefined },
  })
  context.world = world
  const ask: Ask = async (method, url, body) => {
    const reply = await world.kernel.request(method, url, body)
    if (reply.status >= 300) throw new Error(`${method} ${url}: ${reply.status} ${JSON.stringify(reply.body)}`)
    return reply.body
  }
  const folder = await temporaryFolder('peek')
  await writeFile(path.join(folder, 'extension.toml'), MANIFEST)
  await writeFile(path.join(folder, 'main.mjs'), MAIN)
  await publishTo(catalog, folder, parseManifest(MANIFEST, 'extension.toml'), {})
  // Another extension, and secrets of both.
  await mkdir(path.join(world.home, 'extensions', 'other'), { recursive: true })
  await writeFile(path.join(world.home, 'extensions', 'other', 'extension.toml'), 'name = "other"\nversion = "1.0.0"\n')
  for (const [ref, value] of [
    ['vault:extensions/peek/env/KEY', 'value-of-its-own'],
    ['vault:extensions/other/env/KEY', 'value-of-another'],
  ])
    await ask('PUT', '/api/vault/secrets', { ref, secret_value: value })
  await ask('POST', '/api/marketplace/refresh?kind=extension')
  context.ask = ask
  context.install = async () => {
    const source = { source: 'curated', slug: 'peek' }
    const { preview } = await ask('POST', '/api/extensions/preview', source)
    assert.is(preview.sandboxed, true)
    await ask('POST', '/api/extensions', { ...source, consent_digest: preview.consent_digest })
    const state = async () => (await ask('GET', '/api/extensions/peek')).extension
    await until(async () => ['active', 'error'].includes((await state()).state), 'the start')
    assert.is((await state()).state, 'active', JSON.stringify(await state()))
  }
  await context.install()
  context.look = async (what, of = '') => {
    const { result } = await ask('POST', '/api/tools/ext__peek__look/invoke', { input: { what, of } })
    const { seen } = result.structured ?? JSON.parse(result.content[0].text)
    return seen
  }
})
test.after(({ world }) => world.close())

test('a catalog extension process answers tool calls in its sandbox, and reads its own folder', async ({
  world,
  look,
}) => {
  const own = path.join(world.home, 'extensions', 'peek', 'extension.toml')
  assert.is(await look('read', own), MANIFEST)
  // It has the value; what it tells is redacted under the name of its own secret.
  assert.is(await look('env', 'KEY'), '[redacted:vault:extensions/peek/env/KEY]')
})

test('a confined process cannot read the vault, the configuration, the database or another extension', async ({
  world,
  look,
}) => {
  const inHome = readdirSync(world.home, { withFileTypes: true }).filter(entry => entry.isFile())
  const files = inHome.map(({ name }) => name)
  assert.ok(files.includes('config.json') && files.some(name => name.startsWith('vault')), files.join(' '))
  for (const name of [...files, 'extensions/other/extension.toml'])
    assert.is(await look('read', path.join(world.home, name)), 'ENOENT', name)
  assert.is(await look('there', world.root), 'false', 'a workspace')
})

test('a confined process has only the standard variables of the daemon', async ({ look }) => {
  assert.is(await look('env', 'SECRET_OF_THE_DAEMON'), 'unset')
  assert.is(await look('env', 'SVC_HOME'), 'unset')
  const environ = await look('read', '/proc/1/environ')
  assert.not.match(environ, 'value-of-the-daemon')
  assert.not.match(await look('names'), /SECRET|TOKEN|MASTER/)
})

test('a confined process keeps files in its own folder, and sees no folder of another extension', async ({
  world,
  look,
}) => {
  const data = await look('data')
  assert.is(data, path.join(world.home, 'extension-data', 'peek'))
  const file = path.join(data, 'kept')
  assert.is(await look('write', file), 'written')
  assert.is(readFileSync(file, 'utf8'), 'written', 'it is there after the sandbox')
  const other = path.join(world.home, 'extension-data', 'other')
  await mkdir(other, { recursive: true })
  await writeFile(path.join(other, 'kept'), 'of another')
  assert.is(await look('read', path.join(other, 'kept')), 'ENOENT')
})

test('a confined process writes only to its data folder and its temporary folder', async ({ world, look }) => {
  const own = path.join(world.home, 'extensions', 'peek', 'made')
  for (const file of [own, '/etc/made', '/usr/made']) assert.is(await look('write', file), 'EROFS', file)
  // What lies beside its folder is one of the sandbox, which goes with it.
  for (const file of [path.join(world.home, 'made'), path.join(world.root, 'made')]) {
    await look('write', file)
    assert.not(existsSync(file), file)
  }
  assert.not(existsSync(own))
  const temporary = `/tmp/made-${path.basename(world.home)}`
  assert.is(await look('write', temporary), 'written')
  assert.is(await look('read', temporary), 'written')
  assert.not(existsSync(temporary), 'that of the daemon is another one')
})

test('a removal keeps files and state for the next installation, a purge deletes both', async ({
  world,
  ask,
  install,
  look,
}) => {
  const file = path.join(await look('data'), 'kept')
  await look('put', 'cursor')
  const kept = JSON.stringify({ key: 'cursor', found: true, value: 'kept' })
  assert.is(await look('get', 'cursor'), kept)
  await ask('DELETE', '/api/extensions/peek')
  await install()
  assert.equal([await look('get', 'cursor'), await look('read', file)], [kept, 'written'])
  await ask('DELETE', '/api/extensions/peek?purge=true')
  assert.not(existsSync(path.join(world.home, 'extension-data', 'peek')))
  await install()
  assert.is(await look('get', 'cursor'), JSON.stringify({ key: 'cursor', found: false, value: null }))
  assert.is(await look('read', file), 'ENOENT')
})

test.run()
