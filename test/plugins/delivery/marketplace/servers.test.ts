// timeout: 120s
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { mcp, sessions, vault } from '../../../../plugins/index.js'
import { feed, openMarketplace, serveCatalog } from './scene.js'

const entry = (id: string, mcp: object, more: object = {}) => ({ id, name: id, description: 'A server', mcp, ...more })
const STARTED = {
  transport: 'stdio',
  command: '/usr/bin/true',
  args: ['--serve'],
  env: [
    { name: 'ROOT', required: true, secret: false },
    { name: 'TOKEN', required: true, secret: true },
    { name: 'LEVEL', required: false, secret: false, default: 'low' },
  ],
}
const REACHED = { transport: 'http', url: 'https://mcp.example.com/mcp', oauth: { client_id: '' } }
const ALL = [
  entry('notes', STARTED, { version: '1.0.0' }),
  entry('far', REACHED),
  entry('plain', { transport: 'http', url: 'https://mcp.example.com/plain' }),
  entry('both', { transport: 'stdio', command: 'x', url: 'https://mcp.example.com' }),
  entry('odd', { ...STARTED, env: [{ name: 'A=B', required: false, secret: false }] }),
  entry('none', { transport: 'http', url: 'file:///etc/passwd' }),
]

async function open() {
  const catalog = await serveCatalog()
  const world = await openMarketplace(undefined, [sessions, mcp, vault])
  catalog.files.set('mcp.json', feed(ALL))
  await world.use(catalog.url)
  const install = (entry_id: string, env?: object, more: object = {}) =>
    world.kernel.request('POST', '/api/settings/mcp-servers/install', {
      entry_id,
      scope: 'global',
      values: env === undefined ? null : { env },
      ...more,
    })
  return {
    catalog,
    world,
    install,
    list: async () => (await world.kernel.request('GET', '/api/settings/mcp-servers')).body,
  }
}

test('an entry becomes a server with values in the file, secrets in the vault, and its source', async () => {
  const { catalog, world, install } = await open()
  const { status, body } = await install('notes', { ROOT: { value: '/tmp' }, TOKEN: { value: 'hush-hush-hush' } })
  assert.is(status, 200, JSON.stringify(body))
  const { mcp_server: server } = body
  assert.equal(
    [server.name, server.command, server.args, server.env_keys, server.secret_env_keys, body.next_step],
    ['notes', '/usr/bin/true', ['--serve'], ['ROOT', 'LEVEL'], ['TOKEN'], 'none'],
  )
  assert.equal([server.catalog_entry, server.catalog_version], ['notes', '1.0.0'])
  assert.not.match(JSON.stringify(body), 'hush-hush')
  const again = await install('notes', { LEVEL: { value: 'high' } })
  assert.is(again.status, 200, JSON.stringify(again.body))
  assert.equal(again.body.mcp_server.secret_env_keys, ['TOKEN'], 'what was given before stays')
  const { body: detail } = await world.kernel.request('GET', '/api/marketplace/mcp/notes')
  assert.equal([detail.entry.installed, detail.entry.installed_version], [true, '1.0.0'])
  const referenced = await install(
    'notes',
    { ROOT: { value: '/' }, TOKEN: { vault_ref: 'vault:mcp/global/notes/env/token' } },
    { name: 'second' },
  )
  assert.is(referenced.status, 200, JSON.stringify(referenced.body))
  await catalog[Symbol.asyncDispose]()
  await world[Symbol.asyncDispose]()
})

test('a server with a login names the login command, and one without does not', async () => {
  const { catalog, world, install } = await open()
  assert.is((await install('far')).body.next_step, 'authorize')
  assert.is((await install('plain')).body.next_step, 'none')
  await catalog[Symbol.asyncDispose]()
  await world[Symbol.asyncDispose]()
})

test('missing, unknown or foreign values are refused, and nothing is written', async () => {
  const { catalog, world, install, list } = await open()
  const refused = async (expected: readonly unknown[], ...args: Parameters<typeof install>) => {
    const { status, body } = await install(...args)
    assert.equal([status, body.code], expected, JSON.stringify(body))
    return body.error
  }
  assert.match(await refused([422, 'mcp_install_values_missing'], 'notes'), /needs ROOT, TOKEN$/)
  const given = { ROOT: { value: '/' }, TOKEN: { value: 'x' } }
  await refused([400, 'mcp_install_invalid'], 'notes', { ...given, LD_PRELOAD: { value: '/x.so' } })
  await refused([400, 'mcp_install_invalid'], 'notes', { ...given, TOKEN: { vault_ref: 'hush-hush-hush' } })
  await refused([400, 'mcp_install_invalid'], 'both')
  await refused([400, 'mcp_install_invalid'], 'odd')
  await refused([404, 'marketplace_entry_not_found'], 'nothing')
  await refused([400, 'mcp_scope_invalid'], 'plain', undefined, { scope: 'workspace' })
  const { status } = await install('none')
  assert.ok(status >= 400 && status < 500, `a file: ${status}`)
  assert.equal((await list()).mcp_servers, [])
  const put = { server: { name: 'plain', command: '/bin/true' } }
  assert.is((await world.kernel.request('PUT', '/api/settings/mcp-servers/plain', put)).status, 200)
  await refused([409, 'mcp_server_exists'], 'plain')
  await catalog[Symbol.asyncDispose]()
  await world[Symbol.asyncDispose]()
})

test.run()
