import { cp, mkdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, type PluginKernel } from '../../../../kernel/plugin.js'
import {
  agents,
  daemon,
  extensions,
  providers,
  resources,
  sessions,
  skills,
  tools,
  windowManager,
  workspaces,
} from '../../../../plugins/index.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { isActive, isGone, type Scene, scene, type Wire } from './scene.js'

const seen: { kernel?: PluginKernel } = {}
class Seer {
  constructor(kernel: PluginKernel) {
    seen.kernel = kernel
  }
}
const seer = definePlugin({ name: 'seer', version: '1', service: async () => Seer }).surface({})
const plugins = [
  seer,
  daemon,
  resources,
  workspaces,
  providers,
  agents,
  sessions,
  skills,
  tools,
  windowManager,
  extensions,
]
const CHILD = path.join(import.meta.dirname, '..', 'subprocess-host', 'child.mjs')
const HASH = 'a'.repeat(64)

/** An extension with a skill, an agent and a process that publishes the layout of its argument. */
const kit = (layout: string, more = '') => ({
  'extension.toml': `name = "kit"
version = "1.0.0"
[resources]
skills = ["skills"]
agents = ["agents"]
[resources.publish]
families = ["window_layouts"]
[permissions]
requires = ["resources/snapshot"]
[subprocess]
command = "node"
args = ["main.mjs", '{ "publish": "${layout}" }']
[subprocess.secret_env]
TOKEN = "env:TOKEN"
${more}`,
  'main.mjs': `console.error('it speaks for ${layout}', process.env.TOKEN === 'own-token-0123')\nawait import('./child.mjs')\n`,
  'skills/brief/SKILL.md': `---\nname: brief\ndescription: ${layout}\nversion: 1.0.0\n---\nSteps.\n`,
  'agents/planner/AGENT.md': `---\nname: planner\n---\nYou are ${layout}.\n`,
})
const tool = '[[tools]]\nid = "look"\nhandler = "look"\n'

async function folderOf(files: Readonly<Record<string, string>>): Promise<string> {
  const root = await temporaryFolder('build')
  await write(root, files)
  await cp(CHILD, path.join(root, 'child.mjs'))
  return root
}

async function write(root: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(root, name)), { recursive: true })
    await writeFile(path.join(root, name), text)
  }
}

const records = async (svc: Scene, kind: string): Promise<string[]> =>
  (await svc.request('GET', `/api/resources/${kind}`)).body.records.map(
    ({ source, scope }: Wire) => `${source.id} ${scope.id ?? scope.kind}`,
  )

const alive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test('several workspaces link one name beside the installed extension, separately and with their workspace', async () => {
  const home = await temporaryFolder('extensions')
  const env = { PATH: process.env.PATH, HOME: home, SVC_HOME: home, TOKEN: 'a-token-0123', OWN: 'own-token-0123' }
  const svc = await scene({ kit: kit('installed') }, { home, plugins, env })
  await cp(CHILD, path.join(home, 'extensions/kit/child.mjs'))
  const folders = await Promise.all([kit('one'), kit('two')].map(folderOf))
  const ids: string[] = []
  for (const name of ['one', 'two']) {
    const root_dir = await temporaryFolder('place')
    folders.push(root_dir)
    ids.push((await svc.request('POST', '/api/workspaces', { root_dir, name })).body.workspace.id)
  }
  const get = async (what: string) => (await svc.request('GET', `/api/extensions/kit${what}`)).body
  const post = (what: string, body?: object) => svc.request('POST', `/api/extensions/${what}`, body)
  const link = (n: number, workspace: string) =>
    post(`dev?workspace=${workspace}`, { origin_path: folders[n], generation_hash: HASH })
  const until = async (what: string, wanted: (found: Wire) => boolean) => {
    await svc.until('kit', async () => wanted((await get(what)).extension))
    return (await get(what)).extension
  }

  await post('kit/reload')
  const installed = await svc.until('kit', isActive)
  for (const [n, name] of ['one', 'two'].entries()) {
    const made = await link(n, name)
    assert.equal([made.status, made.body.extension?.overrides_published], [201, true], JSON.stringify(made.body))
    await until(`?workspace=${name}`, isActive)
  }
  // Three processes, three sources, each in its own scope.
  const pids = [
    installed.pid,
    ...(await Promise.all(['one', 'two'].map(async w => (await get(`?workspace=${w}`)).extension.pid))),
  ]
  assert.is(new Set(pids).size, 3)
  const own = [`kit global`, `kit@${ids[0]} ${ids[0]}`, `kit@${ids[1]} ${ids[1]}`].sort()
  assert.equal((await records(svc, 'skill')).sort(), own)
  const layouts = () => records(svc, 'window_layout')
  await svc.until('kit', async () => (await layouts()).length === 3)
  assert.equal((await layouts()).sort(), own)
  const list = (await svc.request('GET', '/api/extensions')).body.extensions
  assert.equal(
    list.map(({ name, workspace_id, source }: Wire) => [name, workspace_id, source]),
    [['kit', undefined, 'user'], ...[...ids].sort().map(id => ['kit', id, 'workspace'])],
  )
  // In its workspace a link comes first.
  const promptIn = async (workspace: string) =>
    (await svc.request('GET', `/api/agents/planner?workspace=${workspace}`)).body.agent?.prompt
  assert.match(await promptIn('one'), 'You are one.')
  assert.match(await promptIn('two'), 'You are two.')
  // Logs and secrets are each one's own.
  const logText = async (query: string) =>
    (await get(`/logs${query}`)).logs.map(({ message }: Wire) => message).join('\n')
  assert.match(await logText('?workspace=one'), 'it speaks for one false')
  assert.match(await logText(''), 'it speaks for installed false')
  const bindings = [{ env_name: 'TOKEN', vault_ref: 'env:OWN' }]
  assert.is((await svc.request('PUT', '/api/extensions/kit/secrets?workspace=one', { bindings })).status, 200)
  assert.equal((await get('/secrets')).bindings, [])
  await post('kit/reload?workspace=one')
  await svc.until('kit', async () => (await logText('?workspace=one')).includes('it speaks for one true'))
  assert.is((await get('')).extension.pid, installed.pid)

  // Switched off by its workspace, the others run on.
  assert.is((await post('kit/disable?workspace=two')).body.extension.state, 'disabled')
  assert.not(alive(pids[2] as number))
  assert.equal(
    await records(svc, 'skill').then(all => all.sort()),
    own.filter(text => !text.includes(ids[1] as string)),
  )
  assert.is((await get('')).extension.pid, installed.pid)
  await until('?workspace=one', isActive)
  assert.is((await svc.request('GET', '/api/extensions/kit?workspace=nowhere')).body.code, 'workspace_not_found')

  // A tool has one id: of two builds with it the installed one has it, and of two links the first.
  await write(folders[0] as string, kit('one', tool))
  await svc.until('kit', async () => (await records(svc, 'tool')).length === 1)
  assert.equal(await records(svc, 'tool'), [`kit@${ids[0]} ${ids[0]}`])
  await write(folders[1] as string, kit('two', tool))
  const second = (await post('kit/enable?workspace=two')).body.extension
  assert.match(
    second.last_error,
    `tool ext__kit__look of kit can exist only once, and the link kit@${ids[0]} already has it`,
  )
  await write(path.join(home, 'extensions/kit'), kit('installed', tool))
  await until('?workspace=one', found => found.state === 'error')
  await until('', found => found.items.some(({ kind, live }: Wire) => kind === 'tool' && live))
  assert.equal(await records(svc, 'tool'), ['kit global'])
  assert.equal(await records(svc, 'skill'), ['kit global'], 'what gives way goes whole')

  // Without what is installed the links are loaded again, and without their workspace it is not clear which is meant.
  await svc.remove('kit')
  await svc.until('kit', isGone)
  await until('?workspace=one', isActive)
  const unclear = await svc.request('GET', '/api/extensions/kit')
  assert.equal([unclear.status, unclear.body.code], [409, 'extension_ambiguous'], JSON.stringify(unclear.body))
  await svc.request('DELETE', '/api/extensions/kit?workspace=one')
  assert.is((await get('')).extension.workspace_id, ids[1])
  await svc.until('kit', isActive)
  assert.equal(await records(svc, 'tool'), [`kit@${ids[1]} ${ids[1]}`])
  // Of a link whose end was cut short the records are left, its process's too.
  const { kernel } = seen
  const spec = kernel?.records.list({ kind: 'window_layout' })[0]?.spec as object
  const ghost = { kind: 'extension', id: 'ghost@*' }
  const actor = { kind: 'daemon', id: 'ghost', owner: ghost, source: ghost } as const
  const left = {
    kind: 'window_layout',
    id: 'ghost',
    scope: { kind: 'global' },
    spec: { ...spec, id: 'ghost' },
  } as const
  await kernel?.db.tx(t => kernel.records.put(t, actor, left))
  assert.ok((await layouts()).includes('ghost@* global'))
  await svc.close()

  // After a restart it is linked, and what is linked no longer has left nothing.
  const next = await scene({}, { home, plugins, env })
  await next.until('kit', isActive)
  for (const kind of ['skill', 'tool', 'window_layout']) {
    const sources = (await records(next, kind)).filter(text => !text.startsWith(`kit@${ids[1]} `))
    assert.equal(sources, kind === 'window_layout' ? ['kit global'] : [], kind)
  }
  await next.close()
  for (const folder of [home, ...folders]) await rm(folder, { recursive: true })
})

test.run()
