import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Fault } from '../../../../../kernel/plugin.js'
import {
  isAtLeast,
  parseManifest,
  readManifest,
  toolId,
} from '../../../../../plugins/delivery/extensions/manifest/manifest.js'
import { hostMethods } from '../../../../../plugins/delivery/extensions/manifest/permissions.js'

const refusal = (text: string, path = '/x/extension.toml'): Fault => {
  try {
    parseManifest(text, path)
  } catch (error) {
    if (error instanceof Fault) return error
    throw error
  }
  throw new Error(`taken: ${text}`)
}

const HEAD = 'name = "demo"\nversion = "1.0.0"\n'

/** A text, the line and the key that the error names. */
const invalid: [text: string, line: string, key: string][] = [
  ['name = "demo"\nversion = ', '2', ''],
  ['version = "1.0.0"', '1', 'name'],
  ['version = "1.0.0"\nname = "system"', '2', 'name'],
  ['[extension]\nname = "demo"\nversion = "1"', '3', 'version'],
  [`${HEAD}colour = "red"`, '3', 'colour'],
  [`${HEAD}[extension]\nname = "demo"`, '4', 'extension.name'],
  [`${HEAD}[extension]\ntools = []`, '4', 'extension.tools'],
  [`${HEAD}[capabilities]\nprovides = ["tool.provider", "coffee.maker"]`, '4', 'capabilities.provides.1'],
  [`${HEAD}[subprocess]\ncommand = "node"\n[permissions]\nrequires = ["root/shell"]`, '6', 'permissions.requires.0'],
  [`${HEAD}[permissions]\nrequires = ["sessions/list"]`, '1', 'subprocess'],
  [`${HEAD}main = "main.js"\napiVersion = 1`, '1', 'name'],
  ['name = "a.b"\nversion = "1.0.0"\nmain = "main.js"', '3', 'main'],
  ['name = "a.b"\nversion = "1.0.0"\nmain = "main.js"\napiVersion = 3', '4', 'apiVersion'],
  ['name = "a.b"\nversion = "1.0.0"\napiVersion = 1\nmain = "../main.js"', '4', 'main'],
  [`${HEAD}replaces = "workspaces"`, '3', 'replaces'],
  [`${HEAD}[resources]\nskills = ["/etc"]`, '4', 'resources.skills.0'],
  [`${HEAD}[resources]\nagents = [\n  "a",\n  "b/../../c",\n]`, '4', 'resources.agents.1'],
  [
    `${HEAD}[[resources.hooks]]\nname = "a"\nevent = "e"\ncommand = "x"\n[[resources.hooks]]\nname = "b"\nevent = "e"\nrequired = true`,
    '7',
    'resources.hooks.1.command',
  ],
  [`${HEAD}description = "a\\u0000b"`, '3', 'description'],
  [`${HEAD}[resources.publish]\nfamilies = ["agents"]`, '4', 'resources.publish.families.0'],
  [`${HEAD}[network_participation]\nrequired = true`, '3', 'network_participation'],
  [`${HEAD}[network_participation]\nrequired = false\nmode = "live"`, '3', 'network_participation'],
  [`${HEAD}[bridge]\nplatform = "x"\ndisplay_name = "X"`, '3', 'bridge'],
]

for (const [text, line, key] of invalid) {
  test(`refused at line ${line}: ${key || text.split('\n').at(-1)}`, () => {
    const { code, status, message, details } = refusal(text)
    assert.is(code, 'extension_manifest_invalid')
    assert.is(status, 422)
    assert.equal(details, { file: '/x/extension.toml', line, ...(key && { key }) })
    assert.ok(message.startsWith(`/x/extension.toml:${line}: ${key}`), message)
  })
}

test('an invalid tool, hook or MCP server is skipped and named by file, line and key', () => {
  const manifest = parseManifest(
    `${HEAD}[subprocess]
command = "./bin"
[[tools]]
id = "one"
handler = "a"
[[tools]]
id = "two"
[[tools]]
id = "ONE"
handler = "b"
[[tools]]
id = "three"
handler = "c"
colour = "red"
[[resources.hooks]]
name = "a"
event = "e"
[[resources.hooks]]
name = "b"
[resources.mcp_servers.fine]
command = "x"
[resources.mcp_servers.both]
command = "x"
url = "http://x"
`,
    '/x/extension.toml',
  )
  assert.equal(
    manifest.tools.map(({ id }) => id),
    ['one'],
  )
  assert.equal(
    manifest.resources.hooks.map(({ name }) => name),
    ['a'],
  )
  assert.equal(Object.keys(manifest.resources.mcp_servers), ['fine'])
  const leftOut = [...(manifest.leftOut ?? [])]
  assert.is(leftOut.length, 5, leftOut.join('\n'))
  for (const wanted of [
    /^\/x\/extension\.toml:8: tools\.1\.handler: /,
    /^\/x\/extension\.toml:11: tools\.2\.id: another tool before it has this id/,
    /^\/x\/extension\.toml:16: tools\.3\.colour: unknown member/,
    /^\/x\/extension\.toml:20: resources\.hooks\.1\.event: /,
    /^\/x\/extension\.toml:24: resources\.mcp_servers\.both: an MCP server has either/,
  ])
    assert.ok(
      leftOut.some(text => wanted.test(text)),
      `${wanted} is not in ${leftOut.join('\n')}`,
    )
})

test('a byte order mark and null members are valid in a manifest', () => {
  const text = '\uFEFF{"name":"demo","version":"1.0.0","description":null,"tools":null}'
  assert.is(parseManifest(text, '/x/extension.json').description, undefined)
})

test('JSON and TOML are equivalent; core keys stand at the root or in [extension]', () => {
  const toml = parseManifest(
    '[extension]\nname = "demo"\nversion = "0.2.0"\nrequires_env = ["TOKEN"]\n[subprocess]\ncommand = "./bin"\n[permissions]\nrequires = ["resources/snapshot"]\n',
    '/x/extension.toml',
  )
  const json = parseManifest(
    JSON.stringify({
      name: 'demo',
      version: '0.2.0',
      requires_env: ['TOKEN'],
      subprocess: { command: './bin' },
      permissions: { requires: ['resources/snapshot'] },
    }),
    '/x/extension.json',
  )
  assert.equal(toml, json)
})

test('JSON errors have line and key; duplicate keys and comments are refused', () => {
  const { details } = refusal('{\n "name": "demo",\n "version": 3\n}', '/x/extension.json')
  assert.equal(details, { file: '/x/extension.json', line: '3', key: 'version' })
  assert.equal(refusal('{\n "name": "a",\n "name": "b"\n}', '/x/extension.json').details?.line, '3')
  assert.is(refusal('{}//x', '/x/extension.json').code, 'extension_manifest_invalid')
  assert.is(refusal('[]', '/x/extension.json').details?.line, '1')
})

test('no message quotes a value, because it may be a secret', () => {
  const { message } = refusal(`${HEAD}[subprocess]\ncommand = "x"\n[subprocess.secret_env]\nTOKEN = "hunter2"`)
  assert.not.match(message, 'hunter2')
  assert.match(message, 'subprocess.secret_env.TOKEN')
})

test('TOML is read before JSON; a folder without a manifest is named', async () => {
  const files = (map: Record<string, string>) => async (path: string) => map[path]
  const both = { '/x/extension.toml': HEAD, '/x/extension.json': '{"name":"other","version":"1.0.0"}' }
  assert.is((await readManifest('/x', files(both))).name, 'demo')
  const none = await readManifest('/x', files({})).catch(error => error)
  assert.is(none.code, 'extension_manifest_missing')
  const huge = await readManifest('/x', files({ '/x/extension.toml': 'x'.repeat(300_000) })).catch(error => error)
  assert.match(huge.message, '262144')
})

test('a manifest nested too deeply is refused like any other unreadable one', () => {
  const deep = '['.repeat(20_000) + ']'.repeat(20_000)
  for (const text of [deep, `{"name":"demo","version":"1.0.0","resources":${deep}}`]) {
    const { code, message } = refusal(text, '/x/extension.json')
    assert.is(code, 'extension_manifest_invalid')
    assert.match(message, '/x/extension.json:1: it is nested too deeply')
  }
})

test('tool ids, versions, and the size of the Host API are checked', () => {
  assert.is(toolId('Vendor.Demo-Pack', '--Find Things!'), 'ext__vendor_demo_pack__find_things')
  assert.ok(isAtLeast('0.3.0', '0.3.0'))
  assert.ok(isAtLeast('0.10.0', '0.9.9'))
  assert.not(isAtLeast('0.1.0', '0.3.0'))
  assert.not(isAtLeast('0.3.0-rc.1', '0.3.0'))
  assert.is(hostMethods.size, 104)
})

test.run()
