// timeout: 120s
import { readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'
import { EVERYTHING, FILESYSTEM, mcpScene } from './scene.js'

test('an added server is listed, its tools are found and called, and it is removed', async () => {
  const scene = await mcpScene()
  try {
    const added = await scene.put('everything', { command: process.execPath, args: [EVERYTHING] })
    assert.equal(
      [added.status, added.body.lifecycle, added.body.applied],
      [200, 'live-add', true],
      JSON.stringify(added.body),
    )
    const ids = await eventually(async () => {
      const tools = await scene.tools()
      return tools.length > 0 && tools.map(({ descriptor }) => descriptor.id)
    }, 'tools of the server')
    assert.ok(ids.includes('mcp__everything__echo'), ids.join(' '))
    // The server may say once more that its tools changed, when it has just begun.
    await eventually(async () => {
      const once = await scene.tools()
      return (await scene.tools()) === once
    }, 'the same list for as long as nothing changed')
    assert.match((await scene.call('mcp__everything__echo', { message: 'hello there' })).text ?? '', 'hello there')
    const { mcp_servers: servers } = (await scene.request('GET', '/api/settings/mcp-servers')).body
    assert.equal(
      servers.map((one: Reply) => [one.name, one.transport, one.declared_in, one.runtime_status.state]),
      [['everything', 'stdio', 'config.json', 'ready']],
    )
    const status = (await scene.request('GET', '/api/status')).body
    assert.is(status.mcp_servers[0].name, 'everything')
    const removed = await scene.request('DELETE', '/api/settings/mcp-servers/everything')
    assert.equal([removed.status, removed.body.lifecycle], [200, 'live-remove-if-unused'])
    assert.equal(await scene.tools(), [])
    assert.is((await scene.request('DELETE', '/api/settings/mcp-servers/everything')).status, 404)
  } finally {
    await scene.close()
  }
})

test('a name whose tool ids conflict with another server is refused, and named where a file has it', async () => {
  const scene = await mcpScene()
  try {
    const put = async (name: string) => {
      const { status, body } = await scene.put(name, { command: 'true' })
      return [status, body.code]
    }
    assert.is((await put('a b'))[0], 200)
    assert.equal(await put('a--b'), [409, 'mcp_server_name_taken'])
    assert.equal(await put('A_B'), [409, 'mcp_server_name_taken'])
    assert.equal(await put('my.server'), [400, 'mcp_server_invalid'])
    assert.equal(await put('--'), [400, 'mcp_server_invalid'])
    assert.equal(await put('x'.repeat(65)), [400, 'mcp_server_invalid'])
    assert.is((await put('a b'))[0], 200, 'a server may be changed')
    const { mcpServers } = { mcpServers: { 'a-b': { command: 'true' } } }
    await writeFile(path.join(scene.home, 'mcp.json'), JSON.stringify({ mcpServers }))
    const { problems = [] } = (await scene.request('GET', '/api/settings/mcp-servers')).body
    assert.match(problems.join(), /"a b".*"a-b".*mcp__a_b__/)
  } finally {
    await scene.close()
  }
})

test('a saved mcp.json applies to the next request, however soon and similar', async () => {
  const scene = await mcpScene()
  try {
    const file = path.join(scene.home, 'mcp.json')
    const listed = async () => {
      const { mcp_servers: servers } = (await scene.request('GET', '/api/settings/mcp-servers')).body
      return servers.map(({ name }: Reply) => name)
    }
    assert.equal(await listed(), [])
    for (let n = 10; n < 40; n++) {
      await writeFile(file, JSON.stringify({ mcpServers: { [`server-${n}`]: { command: 'true' } } }))
      assert.equal(await listed(), [`server-${n}`])
      assert.equal(await listed(), [`server-${n}`])
    }
    // Old enough to be kept, and then another file of the same size in its place.
    const { mtime } = await stat(file)
    await eventually(async () => Date.now() - mtime.getTime() > 2000, 'the file to be old')
    assert.equal(await listed(), ['server-39'])
    const other = path.join(scene.home, 'other.json')
    await writeFile(other, (await readFile(file, 'utf8')).replace('39', '40'))
    await utimes(other, mtime, mtime)
    await rename(other, file)
    assert.equal(await listed(), ['server-40'])
    await rm(file)
    assert.equal(await listed(), [])
  } finally {
    await scene.close()
  }
})

test('a workspace server overrides one of its name, its files apply when trusted, and secrets are only names', async () => {
  const scene = await mcpScene()
  try {
    const { id, root } = await scene.workspace({ '.svc/mcp.json': '{}' })
    const files = { command: process.execPath, args: [FILESYSTEM, scene.home] }
    assert.is((await scene.put('files', files, '?target=sidecar')).status, 200)
    const trust = async () => {
      const { digest } = (await scene.request('GET', `/api/workspaces/${id}/trust`)).body.trust
      assert.is((await scene.request('PUT', `/api/workspaces/${id}/trust`, { digest })).status, 200)
    }
    await trust()
    const body = {
      server: { name: 'files', command: process.execPath, args: [FILESYSTEM, root] },
      secret_values: { secret_env: { TOKEN: 'a-secret-of-a-server' } },
    }
    const at = `/api/settings/mcp-servers/files?workspace_id=${id}`
    const put = await scene.request('PUT', `${at}&target=sidecar`, body)
    assert.equal([put.status, put.body.lifecycle, put.body.write_target], [200, 'live-add', 'workspace-mcp-sidecar'])
    const text = await readFile(path.join(root, '.svc/mcp.json'), 'utf8')
    assert.ok(text.includes(`vault:mcp/ws/${id}/files/env/TOKEN`) && !text.includes('a-secret-of'), text)
    const { mcp_server: shown } = (await scene.request('GET', at)).body
    assert.equal([shown.scope, shown.declared_in, shown.secret_env_keys], ['workspace', '.svc/mcp.json', ['TOKEN']])
    assert.equal(shown.source_metadata.shadowed_sources, [{ kind: 'global-mcp-sidecar', scope: 'global' }])
    const place = { workspaceId: id }
    await eventually(async () => (await scene.tools(place)).length > 0, 'tools of the workspace')
    await writeFile(path.join(root, 'note.txt'), 'written by a test')
    const read = { path: path.join(root, 'note.txt') }
    assert.match((await scene.call('mcp__files__read_text_file', read, place)).text ?? '', 'written by a test')
    await writeFile(path.join(root, '.svc/mcp.json'), text.replace('files', 'others'))
    const names = async () =>
      (await scene.request('GET', `/api/settings/mcp-servers?workspace_id=${id}`)).body.mcp_servers.map(
        ({ name, scope }: { name: string; scope: string }) => [name, scope],
      )
    assert.equal(await names(), [['files', 'global']], 'changed: not trusted any more')
    await trust()
    assert.equal(await names(), [
      ['files', 'global'],
      ['others', 'workspace'],
    ])
  } finally {
    await scene.close()
  }
})

test.run()
