// timeout: 120s
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'
import { EVERYTHING, mcpScene } from './scene.js'

const SECRET = 'the-value-of-a-variable'

/** A home with an `mcp.json`, and what is listed of it. */
async function world(text: string) {
  const scene = await mcpScene({ env: { MY_TOKEN: SECRET, MY_HOST: 'a.example', EMPTY: '' } })
  const file = path.join(scene.home, 'mcp.json')
  await writeFile(file, text)
  const list = async (query = '') => (await scene.request('GET', `/api/settings/mcp-servers${query}`)).body
  return {
    ...scene,
    file,
    names: async (query = '') => (await list(query)).mcp_servers.map(({ name }: Reply) => name).sort(),
    problems: async (query = ''): Promise<string> => ((await list(query)).problems ?? []).join('\n'),
    show: async (name: string) => (await scene.request('GET', `/api/settings/mcp-servers/${name}`)).body.mcp_server,
    async trust(id: string) {
      const { digest } = (await scene.request('GET', `/api/workspaces/${id}/trust`)).body.trust
      assert.is((await scene.request('PUT', `/api/workspaces/${id}/trust`, { digest })).status, 200)
    },
    [Symbol.asyncDispose]: () => scene.close(),
  }
}

const SPELLINGS = {
  numbers: { command: 'x', args: ['-p', 1, true], env: { PORT: 3100, NOT: null }, cwd: null },
  nulls: { command: 'x', args: null, env: null, url: null, headers: null },
  url: { serverUrl: 'https://b.example/mcp', alwaysAllow: ['a'] },
  typed: { type: 'http', httpUrl: 'https://c.example/mcp' },
  off: { command: 'x', disabled: true },
  sse: { type: 'sse', url: 'https://d.example/sse' },
  neither: { args: [] },
  wrong: { command: 'x', env: { A: ['b'] } },
  text: 'x',
}

test('the mcp.json of the home is read with a byte order mark, in all dialects; a bad server is skipped', async () => {
  const text = (holder: string) => `\uFEFF{\n  "${holder}": ${JSON.stringify(SPELLINGS, undefined, 2)}\n}`
  await using scene = await world(text('mcpServers'))
  for (const holder of ['mcpServers', 'servers']) {
    await writeFile(scene.file, text(holder))
    assert.equal(await scene.names(), ['nulls', 'numbers', 'typed', 'url'])
    const { args, env_keys: keys } = await scene.show('numbers')
    assert.equal([args, keys], [['-p', '1', 'true'], ['PORT']])
    assert.is((await scene.show('url')).url, 'https://b.example/mcp')
    const lines = (await readFile(scene.file, 'utf8')).split('\n')
    const lineOf = (part: string) => lines.findIndex(line => line.includes(part)) + 1
    const problems = await scene.problems()
    for (const one of [
      `mcp.json:${lineOf('"sse",')}:13: the server "sse" is left out: ${holder}.sse.type: its type is "sse"`,
      `mcp.json:${lineOf('"neither":')}:14: the server "neither" is left out: it has neither a command nor a URL`,
      `the server "wrong" is left out: ${holder}.wrong.env.A: a text is expected`,
      'the server "text" is left out: an object is expected',
      'the server "off" is disabled in the file',
      'the server "url" has members that are not read: alwaysAllow',
    ])
      assert.ok(problems.includes(one), `${one}\nis not in\n${problems}`)
  }
  const many = Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`s${n}`, { command: 'true' }]))
  await writeFile(scene.file, JSON.stringify({ mcpServers: many }))
  assert.is((await scene.names()).length, 64)
  assert.match(await scene.problems(), /mcp\.json has 65 servers; the first 64 are read/)
})

test('variables of home files come from the daemon and are never shown; a server without one is refused by name', async () => {
  const env = { WHOLE: `\${MY_TOKEN}`, PART: `x \${MY_TOKEN}`, DEFAULT: `\${NO_SUCH:-standard}` }
  const args = [EVERYTHING, 'stdio', `--token=\${env:MY_TOKEN}`]
  const servers = {
    everything: { command: process.execPath, args, env },
    far: { url: `https://\${MY_HOST}/mcp?key=\${MY_TOKEN}`, headers: { Authorization: `Bearer \${MY_TOKEN}` } },
    missing: { command: 'x', env: { A: `\${NO_SUCH}` } },
    within: { url: `https://x.example/\${EMPTY}` },
  }
  await using scene = await world(JSON.stringify({ mcpServers: servers }))
  assert.equal(await scene.names(), ['everything', 'far'])
  const problems = await scene.problems()
  assert.match(problems, /"missing" is left out: mcpServers\.missing\.env\.A: \$\{NO_SUCH\} has no value: .*NO_SUCH/)
  assert.match(problems, /"within" is left out: mcpServers\.within\.url: \$\{EMPTY\} has no value/)
  await eventually(async () => (await scene.tools()).length > 0, 'tools of the server')
  const tools = (await scene.tools()).map(({ descriptor }) => descriptor.id)
  const { text = '' } = await scene.call(tools.find(id => /env/i.test(id)) ?? '', {})
  const seen = JSON.parse(text.slice(text.indexOf('{')))
  assert.equal([seen.WHOLE, seen.PART, seen.DEFAULT], [SECRET, `x ${SECRET}`, 'standard'])
  const shown = JSON.stringify([await scene.show('everything'), await scene.show('far'), problems])
  assert.not.match(shown, SECRET)
  assert.equal((await scene.show('everything')).args.at(-1), `--token=\${env:MY_TOKEN}`)
  assert.is((await scene.show('far')).url, `https://\${MY_HOST}/mcp?key=\${MY_TOKEN}`)
  const kept = { server: { name: 'everything', command: 'x' }, preserve_env: ['PART'] }
  const put = await scene.request('PUT', '/api/settings/mcp-servers/everything?target=sidecar', kept)
  assert.is(put.status, 200, JSON.stringify(put.body))
  const written = await readFile(scene.file, 'utf8')
  assert.ok(written.includes(`x \${MY_TOKEN}`) && !written.includes(SECRET), written)
})

test('.svc/mcp.json and .svc/config.json of a workspace are read like .mcp.json, and a bad server is skipped', async () => {
  await using scene = await world('{}')
  const good = { command: 'x', env: { PORT: 3100, TOKEN: `\${MY_TOKEN}` } }
  const { id } = await scene.workspace({
    '.svc/mcp.json': JSON.stringify({
      servers: { good, 'a name': { command: 'x' }, bad: {}, stolen: { command: `\${MY_TOKEN}` } },
    }),
    '.svc/config.json': JSON.stringify({
      mcp_servers: { plain: { command: 'true' }, number: { command: 5, args: [{}] } },
    }),
  })
  const query = `?workspace_id=${id}`
  await scene.trust(id)
  assert.equal(await scene.names(query), ['a name', 'good', 'plain'])
  const problems = await scene.problems(query)
  assert.match(problems, /\.svc\/mcp\.json:1:\d+: the server "bad" is left out: it has neither/)
  assert.match(
    problems,
    /"stolen" is left out: servers\.stolen\.command: \$\{MY_TOKEN\} has no value: .*svc vault put vault:mcp/,
  )
  assert.match(problems, /\.svc\/config\.json:1:\d+: .*"number" is left out: mcp_servers\.number\.args\[0\]: a text/)
  assert.match(problems, `svc vault put vault:mcp/ws/${id}/good/env/MY_TOKEN`)
  assert.not.match(problems, SECRET)
})

test.run()
