// proof, timeout: 240s: an agent in a sandbox, in a daemon of its own
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Installed, until } from '../../../e2e/installed.js'
import { type ScriptedModel, scriptedModel } from '../../../fixtures/scripted-model.js'
import { EXTENSION } from '../tools/scene.js'
import { EVERYTHING } from './scene.js'

/** What a model is told of our tools at most, in bytes. */
const MOST_SCHEMA_BYTES = 8000
const PATIENCE_MS = 60_000
const REMOVED = 'removable'

const svc = new Installed({
  http: { port: 0 },
  defaults: { provider: 'svc' },
  tools: { policy: { external_default: 'enabled' } },
})
let model: ScriptedModel

test.before(async () => {
  model = await scriptedModel([{ id: 'tiny' }])
  const { code, stderr } = await svc.run(['init', '--yes', '--endpoint', model.url])
  if (code !== 0) throw new Error(stderr)
  const server = { command: process.execPath, args: [EVERYTHING] }
  svc.writeHome('mcp.json', JSON.stringify({ mcpServers: { everything: server } }))
  for (const [name, text] of Object.entries(EXTENSION)) svc.writeHome(path.join('extensions/clock', name), text)
  svc.writeHome(
    path.join('agents', REMOVED, 'AGENT.md'),
    `---\nname: ${REMOVED}\nprovider: svc\n---\nYou are removed in a moment.\n`,
  )
})
test.after(async () => {
  await svc.remove()
  await model.close()
})

const call = (tool: string, input: object) => ({ calls: [{ name: `mcp__svc__${tool}`, input }] })
const callTool = (id: string, input: object) => call('tool_call', { id, input })

test('an agent in a sandbox finds tools, calls a native, an extension and an MCP one, and waits for a user', async () => {
  const work = path.join(svc.folder, 'work')
  mkdirSync(work)
  writeFileSync(path.join(work, 'README.md'), 'Work.\n')
  await svc.svc('daemon', 'start')
  // Servers start when somebody asks for their tools; that of the test has its time.
  await until(
    async () => (await svc.svc('tool', 'list')).includes('mcp__everything__echo') || undefined,
    PATIENCE_MS,
    () => 'the tools of the server',
  )
  model.script([
    call('tool_search', { query: 'echo' }),
    callTool('service__agent_list', {}),
    callTool('ext__clock__now', { zone: 'UTC' }),
    callTool('mcp__everything__echo', { message: 'from inside' }),
    callTool('service__agent_delete', { name: REMOVED }),
    { text: 'all done' },
  ])
  const ask = async (method: string, url: string, body?: unknown) => {
    const { status, text } = await svc.request('socket', method, url, body)
    if (status >= 300) throw new Error(`${method} ${url}: ${status} ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }
  const { session } = await ask('POST', '/api/sessions', {
    workspace_path: work,
    sandbox: 'default',
    permissions: 'approve-all',
    prompt: 'Use tools',
  })
  assert.is(session.sandbox.backend, 'bubblewrap')
  const ended = async () => {
    const { events } = await ask('GET', `/api/workspaces/${session.workspace_id}/sessions/${session.id}/events`)
    return events.find(({ type }: { type: string }) => type === 'done' || type === 'error')
  }
  const item = await until(
    async () => (await ask('GET', '/api/inbox')).items[0] ?? (await ended()),
    PATIENCE_MS,
    () => 'a question',
  )
  assert.match(item.title ?? '', 'service__agent_delete (destructive)', JSON.stringify(model.results()))
  await ask('POST', `/api/tool-approvals/${item.interaction_id}/decide`, { decision: 'allow' })
  await until(ended, PATIENCE_MS, () => 'the end of the turn')
  const [found = '', agents = '', time = '', echo = '', removed = ''] = model.results()
  assert.match(found, 'mcp__everything__echo')
  assert.match(agents, REMOVED)
  assert.match(time, '12:00')
  assert.match(echo, 'from inside')
  assert.not.match(removed, 'tool_denied')
  assert.not.match(await svc.svc('agent', 'list'), REMOVED)
})

test('svc mcp add and svc mcp install pass on arguments, variables and references', async () => {
  await svc.svc('mcp', 'add', 'added', '--env', 'A=1', '--', process.execPath, '--flag', 'x y')
  type Shown = { mcp_server: { args: string[]; env_keys: string[]; secret_env_keys?: string[] } }
  const added = (await svc.json<Shown>('mcp', 'show', 'added')).mcp_server
  assert.equal([added.args, added.env_keys], [['--flag', 'x y'], ['A']])
  const env = [
    { name: 'A', required: true, secret: false },
    { name: 'B', required: true, secret: true },
  ]
  const mcp = { transport: 'stdio', command: process.execPath, args: ['-v'], env }
  const catalog = path.join(svc.folder, 'catalog')
  mkdirSync(catalog)
  const local = { transport: 'stdio', command: process.execPath, default_scope: 'workspace' }
  const entries = [
    { id: 'listed', name: 'listed', description: 'A server', mcp },
    { id: 'local', name: 'local', description: 'A server for one workspace', mcp: local },
  ]
  writeFileSync(path.join(catalog, 'mcp.json'), JSON.stringify({ version: 1, entries }))
  await svc.svc('config', 'set', 'marketplace.catalog.base_url', catalog)
  await svc.svc('mcp', 'install', 'listed', '--env', 'A=1', '--secret', 'B=vault:mcp/global/listed/env/b')
  const listed = (await svc.json<Shown>('mcp', 'show', 'listed')).mcp_server
  assert.equal([listed.args, listed.env_keys, listed.secret_env_keys], [['-v'], ['A'], ['B']])
  const unseen = await svc.run(['mcp', 'install', 'listed', '--secret', 'B'])
  assert.is(unseen.code, 2, unseen.stderr)
})

test('svc mcp install creates a workspace server where its entry asks for one', async () => {
  const work = path.join(svc.folder, 'work')
  const scopes = async () => {
    const { mcp_servers: all } = await svc.json<{ mcp_servers: { name: string; scope: string }[] }>('mcp', 'list')
    return all.filter(({ name }) => name === 'local').map(({ scope }) => scope)
  }
  const elsewhere = await svc.run(['mcp', 'install', 'local'])
  assert.is.not(elsewhere.code, 0)
  assert.equal(await scopes(), [])
  const { code, stdout, stderr } = await svc.run(['mcp', 'install', 'local'], work)
  assert.is(code, 0, stderr)
  assert.match(stdout, `installed MCP server local for ${work}`)
  assert.equal(await scopes(), [], 'no other place has it')
  await svc.svc('mcp', 'show', 'local', '--workspace', work)
  assert.is((await svc.run(['mcp', 'install', 'local', '--global', '--workspace', work])).code, 2)
  await svc.svc('mcp', 'install', 'local', '--global')
  assert.equal(await scopes(), ['global'])
})

test('the description of our tools for a model has at most 8,000 bytes', () => {
  const [first] = model.asked
  const ours = (first?.toolSchemas ?? []).filter(text => text.includes('mcp__svc__'))
  assert.is(ours.length, 3)
  assert.ok(Buffer.byteLength(ours.join('')) <= MOST_SCHEMA_BYTES, `${Buffer.byteLength(ours.join(''))} bytes`)
})

test.run()
