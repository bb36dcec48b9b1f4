// timeout: 120s
import { execFileSync } from 'node:child_process'
import { mkdir, readFile, realpath, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { trust, vault } from '../../../../plugins/index.js'
import { agentText, eventually, openWorld, type World } from '../../../fixtures/session-world.js'
import { temporaryFolder } from '../../../harness/kernel.js'

const VALUE = 'a-secret-of-a-server'

test('a session gets the home servers of mcp.json, and those of its trusted workspace', async () => {
  const world = await openWorld({ plugins: [vault, trust] })
  const script = path.join(world.home, 'server.mjs')
  await writeFile(
    script,
    "import { writeFileSync } from 'node:fs'\nwriteFileSync(process.argv[2], String(process.env.TOKEN))\n",
  )
  const server = (file: string, secret_env = {}) => ({
    command: process.execPath,
    args: [script, path.join(world.home, file)],
    secret_env,
  })
  const save = (file: string, mcpServers: unknown) =>
    writeFile(file, `// servers\n${JSON.stringify({ mcpServers, others: true })}`)
  const [ofHome, ofWorkspace] = [path.join(world.home, 'mcp.json'), path.join(world.root, '.svc/mcp.json')]
  const agent = path.join(world.home, 'agents/ada')
  await world.agent('ada')
  // Definitions of the home run whether the workspace is trusted or not.
  await mkdir(path.dirname(agent), { recursive: true })
  await rename(path.join(world.root, '.svc/agents/ada'), agent)

  const names = ['home', 'shadowed', 'both', 'own']
  /** What the servers of a new session wrote, by file; or why it did not start. */
  const run = async () => {
    for (const name of names) await rm(path.join(world.home, name), { force: true })
    const { at } = await world.session('ada', { prompt: 'servers' })
    const end = await world.until(at, ({ type }) => type === 'error' || type === 'done')
    if (end.type === 'error') return JSON.stringify(end)
    const wrote = (name: string) => readFile(path.join(world.home, name), 'utf8').catch(() => '')
    return Promise.all(names.map(wrote))
  }
  const allow = async () => {
    const { body } = await world.kernel.request('GET', `/api/workspaces/${world.workspaceId}/trust`)
    const { digest } = body.trust
    const reply = await world.kernel.request('PUT', `/api/workspaces/${world.workspaceId}/trust`, { digest })
    assert.is(reply.status, 200)
  }
  try {
    const ref = `vault:mcp/ws/${world.workspaceId}/own/env/TOKEN`
    for (const one of [ref, 'vault:mcp/global/home/env/TOKEN'])
      await world.kernel.request('PUT', '/api/vault/secrets', { ref: one, secret_value: VALUE })
    await save(ofHome, { home: server('home', { TOKEN: 'vault:mcp/global/home/env/TOKEN' }), both: server('shadowed') })
    await save(ofWorkspace, { own: server('own', { TOKEN: ref }), both: server('both') })
    assert.equal(await run(), [VALUE, 'undefined', '', ''], 'not trusted: only what the home says')
    await allow()
    assert.equal(await run(), [VALUE, '', 'undefined', VALUE])
    await save(ofWorkspace, { own: server('own', { TOKEN: 'env:HOME' }) })
    assert.equal(await run(), [VALUE, 'undefined', '', ''], 'changed: not trusted any more')
    await allow()
    assert.equal(await run(), [VALUE, 'undefined', '', ''], 'a reference to a variable of the daemon costs its server')
    await save(ofWorkspace, {})
    await allow()
    await writeFile(ofHome, '{ "mcpServers": ')
    assert.match((await run()) as string, /mcp\.json cannot be used: mcp\.json:1:\d+: not valid JSON/)
  } finally {
    await world.close()
  }
})

test('a server over HTTP is given to an agent that supports it; for others the session reports it as omitted', async () => {
  const world = await openWorld({ plugins: [vault] })
  const ref = 'vault:mcp/global/far/headers/TOKEN'
  try {
    await world.kernel.request('PUT', '/api/vault/secrets', { ref, secret_value: VALUE })
    const near = { command: process.execPath }
    const far = { url: 'https://mcp.example/', headers: { 'x-from': 'svc' }, secret_headers: { authorization: ref } }
    await writeFile(path.join(world.home, 'mcp.json'), JSON.stringify({ mcpServers: { near, far } }))
    const handed = async (name: string, flags: string) => {
      await world.agent(name, { flags })
      const events = await world.prompt((await world.session(name)).at, 'handed')
      const warned = events.filter(({ content }) => content.warning === 'mcp_server_left_out')
      return { servers: JSON.parse(agentText(events)), warned: warned.map(({ content }) => content.text) }
    }
    const [first, second] = (await handed('reaches', '--mcp-http')).servers
    assert.is(first.name, 'near')
    assert.equal([second.type, second.name, second.url], ['http', 'far', far.url])
    assert.equal(
      second.headers.map(({ name }: { name: string }) => name),
      ['x-from', 'authorization'],
    )
    const { servers, warned } = await handed('local', '')
    assert.equal(
      servers.map(({ name }: { name: string }) => name),
      ['near'],
    )
    assert.is(warned.length, 1)
    assert.match(warned[0], /over HTTP.* without far/)
    for (const url of ['file:///etc/passwd', 'https://me:secret@mcp.example/', 'nowhere']) {
      await writeFile(path.join(world.home, 'mcp.json'), JSON.stringify({ mcpServers: { far: { url } } }))
      assert.equal((await handed('reaches', '--mcp-http')).servers, [], url)
      const { problems } = (await world.kernel.request('GET', '/api/settings/mcp-servers')).body
      assert.match(
        problems.join(),
        /mcp\.json:1:\d+: .*"far" is left out: mcpServers\.far\.url: a URL starts with http:\/\/ or https:\/\//,
      )
      assert.not.match(problems.join(), 'secret@')
    }
  } finally {
    await world.close()
  }
})

test('an agent that refuses MCP servers starts without them, and each of its sessions says so', async () => {
  const world = await openWorld({ plugins: [vault] })
  try {
    const mcpServers = { near: { command: process.execPath } }
    await writeFile(path.join(world.home, 'mcp.json'), JSON.stringify({ mcpServers }))
    await world.agent('ada', { flags: '--no-mcp' })
    for (let n = 0; n < 2; n++) {
      const events = await world.prompt((await world.session('ada')).at, 'handed')
      assert.equal(JSON.parse(agentText(events)), [])
      const warned = events.filter(({ content }) => content.warning === 'mcp_server_left_out')
      assert.is(warned.length, 1)
      assert.match(warned[0].content.text, /per-session MCP servers are not supported.* without near/)
    }
  } finally {
    await world.close()
  }
})

/** Prompts a session whose agent refuses MCP servers: it has none, and its warnings since a moment ago. */
async function withoutServers(world: World, at: string): Promise<readonly string[]> {
  const before = (await world.events(at)).length
  const turn = await world.prompt(at, 'handed')
  assert.equal(JSON.parse(agentText(turn).trim().split('\n').at(-1) ?? ''), [])
  return (await world.events(at))
    .slice(before)
    .filter(({ content }) => content.warning === 'mcp_server_left_out')
    .map(({ content }) => content.text)
}
const REFUSED = /per-session MCP servers are not supported.* without near/

test('an agent that refuses MCP servers loads its session without them on resume, and says so again', async () => {
  const world = await openWorld({ plugins: [vault] })
  try {
    const mcpServers = { near: { command: process.execPath } }
    await writeFile(path.join(world.home, 'mcp.json'), JSON.stringify({ mcpServers }))
    await world.agent('ada', { flags: '--load --no-mcp' })
    const { at } = await world.session('ada')
    await world.prompt(at, 'say the answer is 42')
    await world.restart()
    const warned = await withoutServers(world, at)
    assert.is(warned.length, 1)
    assert.match(warned[0] ?? '', REFUSED)
    const marker = (await world.events(at)).findLast(event => event.type === 'transcript_marker.created')
    assert.is(marker.content.loaded, true)

    await world.restart()
    const resumed = await world.kernel.request('POST', `${at}/prompt`, {})
    assert.equal([resumed.status, resumed.body.prompt?.status], [200, 'resumed'])
    const isWarned = async () =>
      (await world.events(at)).filter(({ content }) => content.warning === 'mcp_server_left_out').length === 3
    await eventually(isWarned, 'a third warning: when it was made, loaded and resumed')
  } finally {
    await world.close()
  }
})

test('an agent that refuses MCP servers and then fails to load starts a new session without them', async () => {
  const world = await openWorld({ plugins: [vault] })
  try {
    const mcpServers = { near: { command: process.execPath } }
    await writeFile(path.join(world.home, 'mcp.json'), JSON.stringify({ mcpServers }))
    await world.agent('ada', { flags: '--fail-load --no-mcp' })
    const { at } = await world.session('ada')
    await world.prompt(at, 'say the answer is 42')
    await world.restart()
    const warned = await withoutServers(world, at)
    assert.is(warned.length, 1)
    assert.match(warned[0] ?? '', REFUSED)
    const marker = (await world.events(at)).findLast(event => event.type === 'transcript_marker.created')
    assert.is(marker.content.loaded, false)
    assert.match(agentText(await world.prompt(at, 'say here')), /here/)
  } finally {
    await world.close()
  }
})

test('a fork of a session whose agent refuses MCP servers starts without them and says so', async () => {
  const root = path.join(await realpath(await temporaryFolder('fork')), 'work')
  await mkdir(root)
  const world = await openWorld({ root, plugins: [vault] })
  try {
    const mcpServers = { near: { command: process.execPath } }
    await writeFile(path.join(world.home, 'mcp.json'), JSON.stringify({ mcpServers }))
    await world.agent('ada', { flags: '--load --no-mcp' })
    for (const args of [
      ['init', '-q'],
      ['add', '-A'],
      ['commit', '-qm', 'first'],
    ])
      execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.org', ...args], { cwd: root })
    const { at } = await world.session('ada')
    await world.prompt(at, 'say remember this')
    const body = { confirmed: true, new_worktree: { name: 'try-it' } }
    const made = await world.kernel.request('POST', `${at}/worktree-fork`, body)
    assert.is(made.status, 201, JSON.stringify(made.body))
    const { session } = made.body
    const there = `/api/workspaces/${session.workspace_id}/sessions/${session.id}`
    const warned = await withoutServers(world, there)
    assert.is(warned.length, 1)
    assert.match(warned[0] ?? '', REFUSED)
  } finally {
    await world.close()
  }
})

test.run()
