import { cp, rm } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, surfaceOf } from '../../../../kernel/plugin.js'
import { ResourceFamilies } from '../../../../plugins/delivery/extensions/api.js'
import {
  agents,
  daemon,
  extensions,
  providers,
  resources,
  skills,
  windowManager,
  workspaces,
} from '../../../../plugins/index.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { isActive, type Scene, scene, type Wire } from './scene.js'

const plugins = [daemon, resources, workspaces, providers, agents, skills, windowManager, extensions]
const CHILD = path.join(import.meta.dirname, '..', 'subprocess-host', 'child.mjs')
const head = 'name = "kit"\nversion = "1.0.0"\n'
const kit = {
  'extension.toml': `${head}[resources]\nskills = ["skills"]\nagents = ["agents"]\n`,
  'skills/brief/SKILL.md': '---\nname: brief\ndescription: Helps\nversion: 1.0.0\n---\nSteps.\n',
  'agents/planner/AGENT.md': '---\nname: planner\n---\nYou plan.\n',
}
const records = async (svc: Scene, kind: string): Promise<Wire[]> =>
  (await svc.request('GET', `/api/resources/${kind}`)).body.records
const live = async (svc: Scene): Promise<string[]> =>
  (await svc.request('GET', '/api/extensions/kit/inventory')).body.items.map(
    ({ kind, name, live }: Wire) => `${kind} ${name} ${live}`,
  )

test('an invalid part of an extension is skipped and named by list, info and doctor', async () => {
  const parts = {
    ...kit,
    'extension.toml': `${kit['extension.toml']}[resources.mcp_servers.both]\ncommand = "x"\nurl = "http://x"\n`,
    'skills/broken/SKILL.md': '---\nname: broken\nname: again\n---\n',
    'agents/odd/AGENT.md': '---\nname: other\n---\nYou do.\n',
    'agents/partly/AGENT.md': '---\nname: partly\ntools: [service__a, "*"]\n---\nYou do.\n',
  }
  const svc = await scene({ kit: parts }, { plugins })
  await svc.until('kit', isActive)
  assert.equal((await live(svc)).sort(), ['agent partly true', 'agent planner true', 'skill brief true'])
  const { extensions: listed, diagnostics: last } = (await svc.request('GET', '/api/extensions')).body
  const [{ diagnostics }] = listed as [Wire]
  // The list ends with each of them, as lists of agents and skills do.
  assert.is(last?.length, 4)
  assert.ok(
    last.every(({ extension, message }: Wire) => extension === 'kit' && diagnostics[0].message.includes(message)),
  )
  assert.equal(
    diagnostics.map(({ code, severity }: Wire) => [code, severity]),
    [['extension_entry_invalid', 'warning']],
  )
  for (const wanted of [
    /extension\.toml:\d+: resources\.mcp_servers\.both: an MCP server has either a command or a url/,
    /skills\/broken\/SKILL\.md: line \d+, column \d+: not valid YAML/,
    /agents\/odd\/AGENT\.md: its name is other/,
    /agents\/partly\/AGENT\.md: line 3, column \d+: tools\.1: /,
  ])
    assert.match(diagnostics[0].message, wanted, diagnostics[0].message)
  const { items } = (await svc.request('GET', '/api/doctor?only=extensions')).body
  assert.ok(items.some(({ code }: Wire) => code === 'extension_entry_invalid'))
  await svc.close()
})

test('a plugin that reads extension contents gets them again when reloaded, and loses them when unloaded', async () => {
  const svc = await scene({ kit }, { plugins })
  const { host } = svc.kernel
  const planner = async () => (await svc.request('GET', '/api/agents/planner')).status
  await svc.until('kit', isActive)
  const all = ['agent planner true', 'skill brief true']
  assert.equal([await planner(), (await live(svc)).sort()], [200, all])

  await host.reload(agents)
  await svc.until('kit', async () => (await planner()) === 200)

  const [{ spec }] = (await records(svc, 'skill')) as [Wire]
  // Its records wait raw, like all whose plugin is gone, and nothing tells that they are in use.
  await host.unload('skills')
  await svc.until('kit', async () => (await live(svc)).includes('skills skills false'))
  const raw = await records(svc, 'skill')
  assert.equal(raw.length === 1 && [raw[0].spec, raw[0].version], [spec, 1], 'it is not written without its schema')
  const again = async (): Promise<void> => {
    await host.load(skills)
    await svc.until('kit', async () => (await live(svc)).includes('skill brief true'))
  }
  await again()
  assert.equal(
    (await records(svc, 'skill')).map(record => record.spec),
    [spec],
    'it is equal',
  )

  // What changed meanwhile is read; what cannot be read is left out and named, and the rest goes on.
  await host.unload('skills')
  await svc.drop('kit', { 'skills/brief/SKILL.md': '---\nname: brief\nmetadata: {\n---\n' })
  await svc.request('POST', '/api/extensions/kit/reload', {})
  await host.load(skills)
  const partly = await svc.until('kit', found => found?.diagnostics[0]?.code === 'extension_entry_invalid')
  assert.match(partly.diagnostics[0].message, /brief\/SKILL\.md: description: /, partly.diagnostics[0].message)
  assert.equal([partly.state, await planner()], ['active', 200])
  await svc.drop('kit', { 'skills/brief/SKILL.md': kit['skills/brief/SKILL.md'].replace('Helps', 'Helps more') })
  await svc.until('kit', async () => (await records(svc, 'skill'))[0]?.spec.description === 'Helps more')

  // Switched off while nobody reads it, it leaves nothing.
  await host.unload('skills')
  await svc.request('POST', '/api/extensions/kit/disable')
  assert.equal(await records(svc, 'skill'), [])
  await svc.close()
})

test('a plugin that returns while another reads finds its records unchanged', async () => {
  const gate = { passed: Promise.resolve(), reached: () => {}, open: () => {} }
  const { contribute } = surfaceOf<object>()
  const slow = definePlugin({
    name: 'slow',
    version: '1.0.0',
    service: async () => class {},
  }).surface({ registries: [contribute(ResourceFamilies, () => [{ name: 'bundles', load }])] })
  const load = async () => {
    gate.reached()
    await gate.passed
    return { brings: [] }
  }
  const files = {
    ...kit,
    'extension.toml': `${head}[resources]\nskills = ["skills"]\nbundles = ["bundles"]\n`,
    'bundles/one/bundle.toml': 'name = "one"\n',
  }
  const svc = await scene({ kit: files }, { plugins: [...plugins, slow] })
  await svc.until('kit', isActive)
  const [before] = await records(svc, 'skill')
  await svc.kernel.host.unload('skills')
  await svc.until('kit', async () => (await live(svc)).includes('skills skills false'))

  gate.passed = new Promise(resolve => {
    gate.open = resolve
  })
  const reached = new Promise<void>(resolve => {
    gate.reached = resolve
  })
  await svc.drop('kit', { 'extension.toml': `${files['extension.toml']}# again\n` })
  await reached
  const loading = svc.kernel.host.load(skills)
  await svc.until('kit', async () => (await svc.request('GET', '/api/skills')).status === 200)
  gate.open()
  await loading
  await svc.until('kit', async () => (await live(svc)).includes('skill brief true'))
  const [after] = await records(svc, 'skill')
  assert.equal([after.created_at, after.version], [before.created_at, before.version])
  await svc.close()
})

test('a kind removed from the manifest of a process is removed at the next load, also after a restart', async () => {
  const home = await temporaryFolder('extensions')
  const root = path.join(home, 'extensions/kit')
  const process_ = `[permissions]\nrequires = ["resources/snapshot"]\n[subprocess]\ncommand = "node"\nargs = ["child.mjs", '{"publish":"desk"}']\n`
  const publishing = { 'extension.toml': `${head}${process_}[resources.publish]\nfamilies = ["window_layouts"]\n` }
  const silent = { 'extension.toml': `${head}${process_}` }
  const layouts = async (svc: Scene) => (await records(svc, 'window_layout')).length
  const one = await scene({}, { home, plugins })
  await cp(CHILD, path.join(root, 'child.mjs'), { recursive: true })
  await one.drop('kit', publishing)
  await one.until('kit', async () => (await layouts(one)) === 1)
  await one.drop('kit', silent)
  await one.until('kit', async () => (await layouts(one)) === 0)
  await one.drop('kit', publishing)
  await one.until('kit', async () => (await layouts(one)) === 1)
  await one.close()
  const two = await scene({ kit: silent }, { home, plugins })
  await two.until('kit', async () => (await layouts(two)) === 0)
  assert.equal(await records(two, 'window_layout'), [])
  await two.close()
  await rm(home, { recursive: true })
})

test.run()
