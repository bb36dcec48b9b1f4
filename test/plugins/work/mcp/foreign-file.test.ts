// timeout: 120s
import { readFile, rm, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'
import { EVERYTHING, mcpScene } from './scene.js'

const VALUE = 'a-secret-of-a-server'

/** A workspace with a `.mcp.json`, and what is listed of it. */
async function world(servers: object, more: Readonly<Record<string, string>> = {}) {
  const scene = await mcpScene({ env: { LEAKED: 'of-the-daemon' } })
  const { id, root } = await scene.workspace({ '.mcp.json': JSON.stringify({ mcpServers: servers }), ...more })
  const list = async () => (await scene.request('GET', `/api/settings/mcp-servers?workspace_id=${id}`)).body
  return {
    ...scene,
    id,
    root,
    list,
    names: async () => (await list()).mcp_servers.map(({ name }: Reply) => name),
    problems: async (): Promise<string> => ((await list()).problems ?? []).join('\n'),
    show: async (name: string) =>
      (await scene.request('GET', `/api/settings/mcp-servers/${name}?workspace_id=${id}`)).body.mcp_server,
    async trust() {
      const { digest } = (await scene.request('GET', `/api/workspaces/${id}/trust`)).body.trust
      assert.is((await scene.request('PUT', `/api/workspaces/${id}/trust`, { digest })).status, 200)
    },
    [Symbol.asyncDispose]: () => scene.close(),
  }
}

test('.mcp.json of a workspace is listed before the trust, read in place after it, and never written', async () => {
  await using scene = await world(
    { everything: { type: 'stdio', command: process.execPath, args: [EVERYTHING] }, both: { command: 'weaker' } },
    { '.svc/mcp.json': JSON.stringify({ mcpServers: { both: { command: 'stronger' } } }) },
  )
  const file = path.join(scene.root, '.mcp.json')
  const before = await readFile(file, 'utf8')
  assert.equal(await scene.names(), [])
  assert.match(await scene.problems(), /\.mcp\.json of .* is not read.*not trusted: svc workspace trust /)
  assert.is((await scene.tools({ workspaceId: scene.id })).length, 0, 'nothing of it was started')
  await scene.trust()
  assert.equal((await scene.names()).sort(), ['both', 'everything'])
  assert.is(await scene.problems(), '')
  const shown = await scene.show('everything')
  assert.equal(
    [shown.scope, shown.declared_in, shown.source_metadata.available_targets],
    ['workspace', '.mcp.json', []],
  )
  const both = await scene.show('both')
  assert.equal([both.command, both.declared_in], ['stronger', '.svc/mcp.json'])
  assert.is(both.source_metadata.shadowed_sources.length, 1)
  await eventually(async () => (await scene.tools({ workspaceId: scene.id })).length > 0, 'tools of the server')
  const reply = await scene.call('mcp__everything__echo', { message: 'in place' }, { workspaceId: scene.id })
  assert.match(reply.text ?? '', 'in place')
  const removed = await scene.request('DELETE', `/api/settings/mcp-servers/everything?workspace_id=${scene.id}`)
  assert.equal([removed.status, removed.body.code], [409, 'mcp_server_read_only'], JSON.stringify(removed.body))
  assert.is(await readFile(file, 'utf8'), before)
  await writeFile(file, before.replace('weaker', 'changed'))
  assert.equal(await scene.names(), [], 'changed: not trusted any more')
  await rm(file)
})

test('each dialect is read, and an invalid server is skipped', async () => {
  await using scene = await world({
    numbers: { command: 'x', args: [1, true, `\${N:-two}`], env: { PORT: 3100, ON: true, NOT: null } },
    list: { command: ['uvx', 'tool'], args: null },
    there: { command: 'x', cwd: `sub/\${workspaceFolder}` },
    http: { type: 'streamable-http', url: `\${HOST:-https://a.example}/mcp` },
    gemini: { httpUrl: 'https://b.example/mcp' },
    windsurf: { serverUrl: 'https://c.example/mcp', alwaysAllow: ['a'] },
    off: { command: 'x', disabled: true },
    sse: { type: 'sse', url: 'https://d.example/sse' },
    builtin: { type: 'constructor', url: 'https://f.example' },
    odd: { type: { toString: 1 }, command: 'x' },
    neither: { args: [] },
    two: { command: 'x', url: 'https://e.example' },
    env: { command: 'x', env: { A: `pre-\${LEAKED}` } },
    stolen: { command: 'x', secret_env: { A: 'env:LEAKED' } },
    'bad name!': { command: 'x' },
    text: 'x',
  })
  await scene.trust()
  assert.equal((await scene.names()).sort(), ['gemini', 'http', 'list', 'numbers', 'there', 'windsurf'])
  const { args, env_keys: keys } = await scene.show('numbers')
  assert.equal(
    [args, keys],
    [
      ['1', 'true', 'two'],
      ['PORT', 'ON'],
    ],
  )
  assert.equal((await scene.show('list')).args, ['tool'])
  const { command, args: words } = await scene.show('there')
  assert.equal([command, words.at(-2)], ['sh', path.join(scene.root, 'sub', scene.root)])
  assert.is((await scene.show('http')).url, 'https://a.example/mcp')
  assert.is((await scene.show('windsurf')).url, 'https://c.example/mcp')
  const problems = await scene.problems()
  for (const one of [
    /"sse" is left out: mcpServers\.sse\.type: its type is "sse"/,
    /"builtin" is left out: mcpServers\.builtin\.type: its type is "constructor"; stdio and http are known/,
    /"odd" is left out: mcpServers\.odd\.type: a text is expected/,
    /"neither" is left out: it has neither a command nor a URL/,
    /"two" is left out: it has a command and a URL/,
    /"env" is left out: mcpServers\.env\.env\.A: \$\{LEAKED\} has no value: .*\$\{LEAKED:-.*svc vault put vault:mcp\/ws\/\w+\/env\/env\/LEAKED/,
    /server stolen may name only secrets vault:mcp\/ws/,
    /"bad name!" is left out: its name/,
    /"text" is left out: an object/,
    /"off" is disabled in the file/,
    /"windsurf" has members that are not read: alwaysAllow/,
  ])
    assert.match(problems, one)
  assert.not.match(problems, 'of-the-daemon')
  for (const broken of ['{"mcpServers": [', '[]', '{"mcpServers": 5}', '']) {
    await writeFile(path.join(scene.root, '.mcp.json'), broken)
    await scene.trust()
    assert.equal(await scene.names(), [], broken)
    if (broken !== '') assert.match(await scene.problems(), /\.mcp\.json cannot be used/, broken)
  }
})

test('a variable is a workspace secret: the list names the command that stores it, never the daemon value', async () => {
  await using scene = await world({
    gh: { command: process.execPath, args: [EVERYTHING], env: { TOKEN: `\${LEAKED}` } },
  })
  await scene.trust()
  const ref = `vault:mcp/ws/${scene.id}/gh/env/LEAKED`
  assert.match(await scene.problems(), `svc vault put ${ref}`)
  assert.is((await scene.request('PUT', '/api/vault/secrets', { ref, secret_value: VALUE })).status, 200)
  assert.is(await scene.problems(), '')
  const place = { workspaceId: scene.id }
  await eventually(async () => (await scene.tools(place)).length > 0, 'tools of the server')
  const tools = (await scene.tools(place)).map(({ descriptor }) => descriptor.id)
  const { text = '' } = await scene.call(tools.find(id => /env/i.test(id)) ?? tools.join(), {}, place)
  assert.match(text, 'TOKEN', text.slice(0, 300))
  assert.not.match(text, 'of-the-daemon')
})

test('a .mcp.json that is a circular link or nested too deeply is reported', async () => {
  await using scene = await world({})
  const file = path.join(scene.root, '.mcp.json')
  await rm(file)
  await symlink('.mcp.json', file)
  await scene.trust()
  assert.match(await scene.problems(), /\.mcp\.json cannot be used: .*links/)
  await rm(file)
  await writeFile(file, `{"mcpServers":{"a":{"command":"x","args":${'['.repeat(100_000)}${']'.repeat(100_000)}}}}`)
  await scene.trust()
  assert.match(await scene.problems(), /\.mcp\.json cannot be used: .*nested too deeply/)
})

test('a request for a skipped server gives its own fault', async () => {
  await using scene = await world({ first: { type: 'sse', url: 'https://d.example' }, second: { args: [] } })
  await scene.trust()
  const { status, body } = await scene.request('GET', `/api/settings/mcp-servers/second?workspace_id=${scene.id}`)
  assert.is(status, 404)
  assert.match(body.error, /neither a command nor a URL/)
  assert.not.match(body.error, /sse/)
})

test('servers below the member of another dialect are reported with the expected member', async () => {
  await using scene = await world({})
  const misspelt = JSON.stringify({ mcp_servers: { one: { command: 'x' } } })
  await writeFile(path.join(scene.root, '.mcp.json'), misspelt)
  await writeFile(path.join(scene.home, 'mcp.json'), misspelt)
  await scene.trust()
  const problems = await scene.problems()
  assert.match(problems, /\.mcp\.json.*:1:\d+: "?mcp_servers"? is not read; write mcpServers/, problems)
  assert.is(problems.match(/is not read; write mcpServers/g)?.length, 2, problems)
})

test.run()
