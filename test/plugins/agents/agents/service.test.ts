import { mkdir, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, Fault } from '../../../../kernel/plugin.js'
import { Agents, type AgentsApi } from '../../../../plugins/agents/agents/api.js'
import agents from '../../../../plugins/agents/agents/index.js'
import providers from '../../../../plugins/agents/providers/index.js'
import daemon from '../../../../plugins/desk/daemon/index.js'
import { type Workspace, Workspaces, type WorkspacesApi } from '../../../../plugins/desk/workspaces/api.js'
import workspaces from '../../../../plugins/desk/workspaces/index.js'
import { boot, type TestKernel, temporaryFolder } from '../../../harness/kernel.js'
import { FULL } from './full-definition.js'

/** Hands the services under test to the test. */
function peek() {
  const seen = {} as { agents: AgentsApi; workspaces: WorkspacesApi }
  const plugin = definePlugin({
    name: 'peek',
    version: '1.0.0',
    requires: { agents: Agents, workspaces: Workspaces },
    service: async () =>
      class {
        constructor(kernel: { needs: typeof seen }) {
          Object.assign(seen, kernel.needs)
        }
      },
  }).surface({})
  return { seen, plugin }
}

interface Bench extends TestKernel {
  readonly workspaces: WorkspacesApi
  readonly agents: AgentsApi
  readonly root: string
  readonly workspace: Workspace
  /** Writes an AGENT.md below a folder of agents. */
  write(folder: string, name: string, lines?: readonly string[]): Promise<string>
  end(): Promise<void>
}

async function bench(
  options: { env?: Record<string, string>; add?: readonly string[]; config?: unknown } = {},
): Promise<Bench> {
  const home = await temporaryFolder('agents-home')
  const root = await temporaryFolder('agents-root')
  if (options.config) await writeFile(path.join(home, 'config.json'), JSON.stringify(options.config))
  const { seen, plugin } = peek()
  const env = { PATH: process.env.PATH ?? '', HOME: home, SVC_HOME: home, ...options.env }
  const kernel = await boot({ home, env, plugins: [daemon, workspaces, providers, agents, plugin] })
  const made = await kernel.request('POST', '/api/workspaces', {
    root_dir: root,
    name: 'w',
    add_dirs: options.add ?? [],
  })
  assert.is(made.status, 201)
  return {
    ...kernel,
    agents: seen.agents,
    workspaces: seen.workspaces,
    root,
    workspace: await seen.workspaces.find('w'),
    async write(folder, name, lines = []) {
      const file = path.join(folder, name, 'AGENT.md')
      await mkdir(path.dirname(file), { recursive: true })
      await writeFile(file, ['---', `name: ${name}`, ...lines, '---', `From ${folder}.`].join('\n'))
      return file
    },
    async end() {
      await kernel.close()
      await rm(home, { recursive: true, force: true })
      await rm(root, { recursive: true, force: true })
    },
  }
}

const own = (root: string) => path.join(root, '.svc', 'agents')
const names = (body: { agents: { name: string }[] }) => body.agents.map(agent => agent.name)

test('the folder of agents of a workspace is seen as soon as it is there, and its end', async () => {
  const b = await bench()
  const names = async () => (await b.agents.list(await b.workspaces.find(b.workspace.id))).map(({ name }) => name)
  const none = await names()
  while (!b.workspaces.isLocal?.(b.workspace.rootDir)) assert.equal(await names(), none)
  const own = path.join(b.root, '.svc')
  const folders = [path.join(own, 'agents'), own]
  for (const folder of folders) {
    await b.write(path.join(own, 'agents'), 'fresh')
    assert.equal(await names(), ['fresh', ...none])
    await rm(folder, { recursive: true })
    assert.equal(await names(), none)
  }
  await b.write(path.join(b.root, 'other', 'agents'), 'linked')
  await symlink('other', own)
  assert.equal(await names(), [...none, 'linked'].sort())
  await b.end()
})

test('agents of a workspace are found with a replacement that does not know which folders are local', async () => {
  const b = await bench()
  Object.defineProperty(b.workspaces, 'isLocal', { value: undefined })
  await b.agents.list(b.workspace)
  await b.write(own(b.root), 'mine')
  assert.ok((await b.agents.list(b.workspace)).some(({ name }) => name === 'mine'))
  await b.end()
})

test('precedence is workspace, its additional folders, home, contributions; the first wins', async () => {
  const more = await temporaryFolder('agents-more')
  const share = await temporaryFolder('agents-share')
  const b = await bench({ add: [more], env: { SVC_SHARE_DIR: share } })
  const folders = {
    share: path.join(share, 'agents'),
    home: path.join(b.home, 'agents'),
    more: own(more),
    root: own(b.root),
  }
  const expected = { share: 'builtin', home: 'home', more: 'workspace', root: 'workspace' } as const
  for (const [where, folder] of Object.entries(folders)) {
    await b.write(folder, 'same', ['command: node x.js'])
    const found = await b.agents.find('same', b.workspace)
    assert.is(found.prompt, `From ${folder}.`)
    assert.is(found.source, expected[where as keyof typeof expected])
  }
  assert.is((await b.agents.find('same')).source, 'home')
  const seen = (await b.request('GET', '/api/agents?workspace=w')).body
  assert.equal(names(seen), ['general', 'same'])
  assert.is(seen.agents[1].origin, 'workspace')
  assert.is(seen.agents[1].workspace_id, b.workspace.id)
  const detail = (await b.request('GET', `/api/workspaces/${b.workspace.id}`)).body
  assert.equal(names(detail), ['general', 'same'])
  assert.equal(detail.providers.map((p: { name: string }) => p.name)[0], 'local')
  await b.end()
  await rm(more, { recursive: true })
  await rm(share, { recursive: true })
})

test('a changed file is reread without a watcher', async () => {
  const b = await bench()
  const file = await b.write(own(b.root), 'a', ['model: one'])
  assert.is((await b.agents.find('a', b.workspace)).model, 'one')
  const at = new Date()
  await b.write(own(b.root), 'a', ['model: two'])
  await utimes(file, at, at)
  assert.is((await b.agents.find('a', b.workspace)).model, 'two')
  await rm(path.dirname(file), { recursive: true })
  assert.is((await b.request('GET', '/api/agents/a?workspace=w')).status, 404)
  await b.end()
})

test('an invalid file hides no other; it gives 422 and is reported by doctor and log', async () => {
  const b = await bench()
  await b.write(own(b.root), 'good')
  await b.write(path.join(b.home, 'agents'), 'bad', ['command: node fine.js'])
  const file = await b.write(own(b.root), 'bad', ['nonsense: 1'])
  assert.equal(names((await b.request('GET', '/api/agents?workspace=w')).body), ['general', 'good'])
  const reply = await b.request('GET', '/api/agents/bad?workspace=w')
  assert.is(reply.status, 422)
  assert.is(reply.body.code, 'agent_invalid')
  assert.match(reply.body.error, 'nonsense: unknown field')
  assert.is(reply.body.details.path, file)
  assert.is((await b.request('GET', '/api/agents/bad')).status, 200)
  const { items } = (await b.request('GET', '/api/doctor?only=agents')).body
  assert.equal(
    items.map((item: { code: string }) => item.code),
    ['agent_invalid'],
  )
  assert.match(items[0].message, file)
  assert.is(b.log.filter(line => line.msg.includes(file)).length, 1)
  await b.end()
})

test('links are confined to the root of their definition', async () => {
  const b = await bench()
  const outside = await temporaryFolder('agents-outside')
  await b.write(outside, 'far')
  await b.write(path.join(b.root, 'tools'), 'near')
  await mkdir(own(b.root), { recursive: true })
  await symlink(path.join(outside, 'far'), path.join(own(b.root), 'far'))
  await symlink('../../tools/near', path.join(own(b.root), 'near'))
  await symlink('nowhere', path.join(own(b.root), 'broken'))
  await mkdir(path.join(own(b.root), 'folder', 'AGENT.md'), { recursive: true })
  assert.equal(names((await b.request('GET', '/api/agents?workspace=w')).body), ['general', 'near'])
  assert.is((await b.request('GET', '/api/agents/far?workspace=w')).body.details.error_kind, 'outside_root')
  assert.is((await b.request('GET', '/api/agents/broken?workspace=w')).status, 404)
  assert.is((await b.request('GET', '/api/agents/folder?workspace=w')).status, 422)
  for (const name of ['..', '%2e%2e', 'a%2Fb', 'A', '.svc', 'x'.repeat(65)]) {
    assert.is((await b.request('GET', `/api/agents/${name}?workspace=w`)).status, 404, name)
  }
  assert.is((await b.request('GET', '/api/agents?workspace=nope')).status, 404)
  await b.end()
  await rm(outside, { recursive: true })
})

test('an agent is shown with its effective runtime and sources, without secrets', async () => {
  const b = await bench()
  const folder = own(b.root)
  await mkdir(path.join(folder, 'reviewer'), { recursive: true })
  await writeFile(path.join(folder, 'reviewer', 'AGENT.md'), FULL)
  const { agent } = (await b.request('GET', '/api/agents/reviewer?workspace=w')).body
  assert.equal(agent.effective_runtime, {
    provider: 'codex',
    model: 'some-model',
    reasoning_effort: 'high',
    sources: { provider: 'agent', model: 'agent', reasoning_effort: 'agent' },
  })
  assert.equal(agent.mcp_servers[0].env, { GIT_TOKEN: '[redacted]', MODE: 'fast' })
  assert.equal(agent.mcp_servers[0].auth, { type: 'oauth', client_secret_configured: true })
  assert.equal(agent.diagnostics, undefined)
  await b.write(folder, 'lost', ['provider: nobody'])
  const lost = (await b.request('GET', '/api/agents/lost?workspace=w')).body.agent
  assert.is(lost.effective_runtime, null)
  assert.is(lost.diagnostics[0].error_kind, 'provider_unresolved')
  await b.end()
})

async function refused(work: Promise<unknown>): Promise<Fault> {
  const error = await work.then(
    () => undefined,
    thrown => thrown,
  )
  assert.instance(error, Fault)
  return error as Fault
}

test('plan: the command is split into words, permissions come from the file or the configuration', async () => {
  const b = await bench({ config: { permissions: { mode: 'approve-reads' } } })
  await b.write(own(b.root), 'a', ['command: node "my agent.js"'])
  await b.write(own(b.root), 'b', ['command: node b.js', 'permissions: deny-all', 'model: m'])
  const a = await b.agents.plan('a', b.workspace)
  assert.equal([a.provider, a.argv, a.permissions, a.model], ['local', ['node', 'my agent.js'], 'approve-reads', ''])
  const other = await b.agents.plan('b', b.workspace)
  assert.equal([other.permissions, other.model], ['deny-all', 'm'])
  await b.end()
})

test('general: no installed provider gives 422 with an install command; an installed one is used', async () => {
  const bin = await temporaryFolder('agents-bin')
  const b = await bench({ env: { PATH: bin } })
  const fault = await refused(b.agents.plan('general', b.workspace))
  assert.equal([fault.code, fault.status], ['agent_not_runnable', 422])
  assert.match(fault.message, 'npm install -g')
  assert.match(fault.next ?? '', '--agent report')
  const before = (await b.request('GET', '/api/agents/general')).body.agent
  assert.is(before.effective_runtime, null)
  await writeFile(path.join(bin, 'codex-acp'), '#!/bin/sh\n', { mode: 0o755 })
  assert.equal((await b.agents.plan('general', b.workspace)).argv, ['codex-acp'])
  await writeFile(path.join(bin, 'claude-agent-acp'), '#!/bin/sh\n', { mode: 0o755 })
  const plan = await b.agents.plan('general')
  assert.equal([plan.provider, plan.argv], ['claude', ['claude-agent-acp']])
  const after = (await b.request('GET', '/api/agents/general')).body.agent
  assert.equal([after.effective_runtime.provider, after.effective_runtime.sources.provider], ['claude', 'detected'])
  // One that says that it is not logged in comes last.
  await writeFile(path.join(bin, 'claude-agent-acp'), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
  await b.request('POST', '/api/providers/claude/auth/probe')
  assert.is((await b.agents.plan('general')).provider, 'codex')
  await b.end()
  await rm(bin, { recursive: true })
})

test('plan: a provider that is missing, unknown or without a command is refused', async () => {
  const b = await bench({ env: { PATH: '/nowhere' }, config: { defaults: { provider: 'codex' } } })
  await b.write(own(b.root), 'mine', ['provider: local'])
  await b.write(own(b.root), 'lost', ['provider: nobody'])
  await b.write(own(b.root), 'default')
  assert.match(
    (await refused(b.agents.plan('mine', b.workspace))).message,
    'requires a command in the agent definition',
  )
  assert.match((await refused(b.agents.plan('lost', b.workspace))).message, 'not in the catalog')
  const fault = await refused(b.agents.plan('default', b.workspace))
  assert.is(fault.code, 'agent_not_runnable')
  assert.match(fault.message, '@zed-industries/codex-acp')
  assert.is((await refused(b.agents.plan('absent', b.workspace))).code, 'agent_not_found')
  await b.end()
})

test('doctor names missing commands of definitions', async () => {
  const b = await bench()
  await b.write(own(b.root), 'ok', ['command: node a.js'])
  await b.write(own(b.root), 'gone', ['command: no-such-program --x'])
  const { items } = (await b.request('GET', '/api/doctor?only=runtime.providers')).body
  assert.equal(
    items.map((item: { id: string }) => item.id),
    ['runtime.providers', 'runtime.providers:no-such-program'],
  )
  assert.equal(items[1].evidence.used_by, ['gone'])
  await b.end()
})

test.run()
