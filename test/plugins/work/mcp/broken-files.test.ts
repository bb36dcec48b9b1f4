// timeout: 60s
import { readFile, rename, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { mcpScene } from './scene.js'

/** Texts that are no JSON object of servers, and where the fault is. */
const BROKEN: readonly (readonly [text: string, place: RegExp])[] = [
  ['{ "mcpServers": { "mine": {"command": "true"} "other": {} } }', /mcp\.json:1:\d+: not valid JSON/],
  ['{ "mcpServers": {\n  "mine": {', /mcp\.json:2:\d+: not valid JSON/],
  ['<<<<<<< HEAD\n{}\n=======\n', /mcp\.json:1:1: not valid JSON/],
  ['mcpServers:\n  mine: {}\n', /mcp\.json:1:1: not valid JSON/],
  ['[1, 2]', /mcp\.json:1:1: a JSON object is expected/],
  ['"hello"', /mcp\.json:1:1: a JSON object is expected/],
]

test('no write goes into an unreadable mcp.json; the reply names file, line and column', async () => {
  const scene = await mcpScene()
  try {
    const { id, root } = await scene.workspace({ '.svc/mcp.json': '{}' })
    const trust = async () => {
      const { digest } = (await scene.request('GET', `/api/workspaces/${id}/trust`)).body.trust
      await scene.request('PUT', `/api/workspaces/${id}/trust`, { digest })
    }
    for (const [file, query] of [
      [path.join(scene.home, 'mcp.json'), '?target=sidecar'],
      [path.join(root, '.svc/mcp.json'), `?target=sidecar&workspace_id=${id}&scope=workspace`],
    ] as const) {
      for (const [text, place] of BROKEN) {
        await writeFile(file, text)
        await trust()
        const put = await scene.put('new', { command: 'true' }, query)
        assert.equal([put.status, put.body.code], [409, 'config_file_invalid'], text)
        assert.match(put.body.error, place)
        assert.is(await readFile(file, 'utf8'), text)
        const removed = await scene.request('DELETE', `/api/settings/mcp-servers/mine${query}`)
        assert.equal([removed.status, removed.body.code], [409, 'config_file_invalid'], text)
        assert.is(await readFile(file, 'utf8'), text)
      }
      await writeFile(file, '{}')
      await trust()
    }
  } finally {
    await scene.close()
  }
})

test('a servers member of the wrong type is not hidden by a second one', async () => {
  const scene = await mcpScene()
  try {
    const file = path.join(scene.home, 'mcp.json')
    await writeFile(file, '{\n  "mcpServers": []\n}')
    const { status, body } = await scene.put('new', { command: 'true' }, '?target=sidecar')
    assert.equal([status, body.code], [409, 'config_file_invalid'])
    assert.match(body.error, /mcp\.json:2:17: mcpServers: an object is expected/)
    assert.is(await readFile(file, 'utf8'), '{\n  "mcpServers": []\n}')
  } finally {
    await scene.close()
  }
})

test('an mcp.json with a byte order mark and comments is read and written, and both stay', async () => {
  const scene = await mcpScene()
  try {
    const file = path.join(scene.home, 'mcp.json')
    await writeFile(file, '\uFEFF{\n  // mine\n  "mcpServers": {}\n}\n')
    assert.is((await scene.put('new', { command: 'true' }, '?target=sidecar')).status, 200)
    assert.match(await readFile(file, 'utf8'), /^\uFEFF\{\n {2}\/\/ mine\n/)
    const { mcp_servers: servers, problems } = (await scene.request('GET', '/api/settings/mcp-servers')).body
    assert.equal([servers.map(({ name }: { name: string }) => name), problems], [['new'], undefined])
  } finally {
    await scene.close()
  }
})

test('the doctor names each unreadable file with its effect, and a failed server', async () => {
  const scene = await mcpScene()
  try {
    const items = async () =>
      (await scene.request('GET', '/api/doctor')).body.items.filter(({ code }: { code: string }) =>
        /^mcp_/.test(code),
      ) as { id: string; code: string; severity: string; message: string; suggested_command: string }[]
    const { id, root } = await scene.workspace({ '.svc/mcp.json': '{}' })
    assert.equal(await items(), [])
    await writeFile(path.join(scene.home, 'mcp.json'), 'garbage')
    await writeFile(path.join(root, '.svc/mcp.json'), '[]')
    const { digest } = (await scene.request('GET', `/api/workspaces/${id}/trust`)).body.trust
    await scene.request('PUT', `/api/workspaces/${id}/trust`, { digest })
    const [place, home, ...rest] = await items()
    assert.equal(
      [home?.id, home?.code, home?.severity, home?.suggested_command],
      ['mcp:file:mcp.json', 'mcp_file_invalid', 'error', 'svc mcp list'],
    )
    assert.match(home?.message ?? '', /mcp\.json:1:1: not valid JSON.*; no session starts until it is fixed$/)
    assert.equal([place?.id, place?.suggested_command], [`mcp:file:.svc:${id}`, `svc mcp list --workspace ${id}`])
    assert.match(place?.message ?? '', new RegExp(`no session of the workspace ${id} starts`))
    assert.equal(rest, [])

    for (const file of [path.join(scene.home, 'mcp.json'), path.join(root, '.svc/mcp.json')])
      await writeFile(file, '{}')
    await scene.put('broken', { command: '/nonexistent/server' })
    await scene.put('absent', { command: 'no-such-program-at-all' })
    await scene.put('present', { command: 'sh' })
    await writeFile(
      path.join(scene.home, 'mcp.json'),
      JSON.stringify({
        mcpServers: { away: { command: 'sh', cwd: '/nonexistent/folder' }, here: { command: 'sh', cwd: '/' } },
      }),
    )
    // Nobody tried them yet.
    const cannot = await items()
    assert.equal(
      cannot.map(item => [item.id, item.code]),
      ['absent', 'away', 'broken'].map(name => [`mcp:server:${name}`, 'mcp_server_program_missing']),
    )
    assert.match(cannot[0]?.message ?? '', /its program "no-such-program-at-all" is not found in PATH/)
    assert.match(cannot[1]?.message ?? '', /its folder "\/nonexistent\/folder" is not there/)
    assert.match(cannot[2]?.message ?? '', /its program "\/nonexistent\/server" is not an executable file/)
    await scene.request('DELETE', '/api/settings/mcp-servers/absent')
    await writeFile(path.join(scene.home, 'mcp.json'), '{}')
    await scene.request('GET', '/api/settings/mcp-servers/broken?probe=true')
    const [failed, ...more] = await items()
    assert.equal([failed?.id, failed?.code, failed?.severity], ['mcp:server:broken', 'mcp_server_failed', 'warning'])
    assert.match(failed?.message ?? '', /the MCP server "broken" failed when it was last tried: \S/)
    assert.is(failed?.suggested_command, 'svc mcp show broken --probe')
    assert.equal(more, [])
    // What is wrong with a workspace without its folder is said once.
    await writeFile(path.join(root, '.svc/mcp.json'), '[]')
    await rename(root, `${root}-gone`)
    assert.equal(
      (await items()).map(item => item.id),
      ['mcp:server:broken'],
    )
    const others = (await scene.request('GET', '/api/doctor')).body.items as { message: string }[]
    assert.equal(
      others.filter(({ message }) => message.includes('ENOENT')),
      [],
    )
    await rename(`${root}-gone`, root)
  } finally {
    await scene.close()
  }
})

test.run()
