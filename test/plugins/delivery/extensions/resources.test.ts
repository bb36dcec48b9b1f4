import { rm } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  agents,
  daemon,
  extensions,
  hooks,
  mcp,
  providers,
  resources,
  sessions,
  skills,
  tools,
  workspaces,
} from '../../../../plugins/index.js'
import { eventually } from '../../../fixtures/session-world.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { hasFailed, isActive, type Scene, scene, type Wire } from './scene.js'

const plugins = [daemon, resources, workspaces, providers, agents, sessions, skills, mcp, hooks, tools, extensions]

const agent = (name: string) => `---\nname: ${name}\n---\nYou are ${name}.\n`
const skill = (name: string, about = 'Helps') =>
  `---\nname: ${name}\ndescription: ${about}\nversion: 1.0.0\n---\nSteps.\n`
const head = (name: string) => `name = "${name}"\nversion = "1.0.0"\n`

const kit = (name = 'demo-kit') => ({
  'extension.toml': `${head(name)}
[resources]
agents = ["agents"]
skills = ["skills"]
[resources.mcp_servers.git]
command = "./bin/git-server"
args = ["--root", "{{config_dir}}"]
[[resources.hooks]]
name = "ready"
event = "session.post_create"
command = "/usr/bin/env"
args = ["bash", "{{config_dir}}/ready.sh"]
`,
  'agents/planner/AGENT.md': agent('planner'),
  'skills/group/brief/SKILL.md': skill('brief'),
  'skills/review/SKILL.md': skill('review'),
  'bin/git-server': '',
})

async function shipped(svc: Scene): Promise<Wire[]> {
  const { records } = (await svc.request('GET', '/api/resources')).body
  return records.filter((record: Wire) => record.source.kind === 'extension')
}
const names = async (svc: Scene) =>
  (await shipped(svc)).map(({ kind, spec }) => `${kind} ${spec.name ?? spec.id}`).sort()
const known = async (svc: Scene): Promise<string[]> =>
  (await svc.request('GET', '/api/agents')).body.agents.map(({ name }: Wire) => name)

test('the contents of a static extension are available while it is loaded, and equal records keep their version', async () => {
  const home = await temporaryFolder('extensions')
  const svc = await scene({ 'demo-kit': kit() }, { home, plugins })
  await svc.until('demo-kit', isActive)
  const all = ['hook.binding ready', 'mcp_server git', 'skill brief', 'skill review']
  assert.equal(await names(svc), all)
  assert.ok((await known(svc)).includes('planner'))
  const before = await shipped(svc)
  for (const { source, owner, scope, version } of before) {
    const own = { kind: 'extension', id: 'demo-kit' }
    assert.equal([source, owner, scope.kind, version], [own, own, 'global', 1])
  }
  const root = path.join(home, 'extensions', 'demo-kit')
  const spec = (kind: string) => before.find(record => record.kind === kind)?.spec
  assert.is(spec('hook.binding').priority, 300)
  assert.equal(spec('hook.binding').args, ['bash', `${root}/ready.sh`])
  assert.equal([spec('mcp_server').command, spec('mcp_server').args], [`${root}/bin/git-server`, ['--root', root]])
  assert.equal([spec('skill').body, spec('skill').source_path], ['Steps.', 'skills/group/brief/SKILL.md'])

  const { items } = (await svc.request('GET', '/api/extensions/demo-kit/inventory')).body
  assert.equal(items.map(({ kind, name, live }: Wire) => `${kind} ${name} ${live}`).sort(), [
    'agent planner true',
    ...all.map(one => `${one} true`),
  ])
  const planner = await svc.request('DELETE', '/api/agents/planner')
  assert.is(planner.status, 409)

  // A change changes what changed.
  await svc.drop('demo-kit', { 'skills/review/SKILL.md': skill('review', 'Looks twice') })
  // A change of plugins that is under way refuses it with 503.
  const reload = async () => (await svc.request('POST', '/api/extensions/demo-kit/reload')).status
  await eventually(async () => (await reload()) === 200, 'a reload')
  const versions = async () => (await shipped(svc)).map(({ kind, spec, version }) => `${kind} ${spec.name} ${version}`)
  await eventually(async () => (await versions()).includes('skill review 2'), 'the changed skill')
  assert.equal((await versions()).sort(), [
    'hook.binding ready 1',
    'mcp_server git 1',
    'skill brief 1',
    'skill review 2',
  ])
  await svc.close()

  // After a restart all is as it was, and what went meanwhile is taken away.
  const again = await scene(
    { other: { 'extension.toml': `${head('other')}[resources]\nskills = ["gone"]\n` } },
    { home, plugins },
  )
  await again.until('demo-kit', isActive)
  assert.is((await shipped(again)).find(({ spec: { name } }) => name === 'review').version, 2)
  // A key that the manifest drops takes along what it had.
  const less = `${head('demo-kit')}[resources]\nskills = ["skills"]\n`
  await again.drop('demo-kit', { 'extension.toml': less })
  await again.request('POST', '/api/extensions/demo-kit/reload')
  assert.equal(await names(again), ['skill brief', 'skill review'])
  assert.not.ok((await known(again)).includes('planner'))
  await again.drop('demo-kit', kit())
  await again.request('POST', '/api/extensions/demo-kit/reload')
  assert.equal(await names(again), all)
  await again.request('POST', '/api/extensions/demo-kit/disable')
  assert.equal(await shipped(again), [])
  assert.not.ok((await known(again)).includes('planner'))
  await again.request('POST', '/api/extensions/demo-kit/enable')
  assert.equal(await names(again), all)
  await again.close()

  await rm(root, { recursive: true })
  const last = await scene({}, { home, plugins })
  await last.until('other', hasFailed)
  for (let tries = 0; (await shipped(last)).length > 0 && tries < 3000; tries++)
    await new Promise(r => setTimeout(r, 10))
  assert.equal(await shipped(last), [])
  await last.close()
  await rm(home, { recursive: true })
})

test('an invalid part is skipped, is named with its file, and affects no other', async () => {
  const tool = `[subprocess]\ncommand = "sh"\nargs = ["-c", "exec cat"]\n[[tools]]\nid = "look up"\nhandler = "look"\nread_only = true\n`
  const svc = await scene(
    {
      'demo-kit': kit(),
      'bad-agent': {
        'extension.toml': `${head('bad-agent')}[resources]\nagents = ["agents"]\n`,
        'agents/planner/AGENT.md': agent('another'),
      },
      'bad-skill': {
        'extension.toml': `${head('bad-skill')}[resources]\nskills = ["skills"]\n`,
        'skills/group/brief/SKILL.md': '---\nname: brief\nname: again\n---\n',
      },
      'bad-hook': {
        'extension.toml': `${head('bad-hook')}[[resources.hooks]]\nname = "x"\nevent = "never.heard"\ncommand = "true"\n`,
      },
      twice: { ...kit('twice'), 'skills/again/SKILL.md': skill('brief') },
      'acme.demo': { 'extension.toml': head('acme.demo') + tool },
      'acme-demo': { 'extension.toml': head('acme-demo') },
    },
    { plugins },
  )
  const expected: Record<string, RegExp> = {
    'bad-agent': /agents\/planner\/AGENT\.md: its name is another/,
    'bad-skill': /skills\/group\/brief\/SKILL\.md: line 3, column 1: not valid YAML/,
    'bad-hook': /hook\.binding x: .*event/,
  }
  for (const [name, says] of Object.entries(expected)) {
    const found = await svc.until(name, one => says.test(one?.diagnostics[0]?.message))
    assert.equal([found.diagnostics[0].code, found.last_error], ['extension_entry_invalid', undefined])
  }
  const two = await svc.until('twice', one => /twice has two skill brief/.test(one?.last_error))
  assert.is(two.state, 'error')
  await svc.until('demo-kit', isActive)
  await svc.until('acme.demo', one => one?.state !== 'enabled')
  const own = ['hook.binding ready', 'mcp_server git', 'skill brief', 'skill review', 'tool ext__acme_demo__look_up']
  assert.equal(await names(svc), own)
  const record = (await shipped(svc)).find(({ kind }) => kind === 'tool')
  assert.equal(
    [record.id, record.spec.backend],
    ['ext__acme_demo__look_up', { kind: 'extension_host', extension_id: 'acme.demo', handler: 'look' }],
  )
  assert.is(record.spec.risk, 'read')

  // The id is taken: the later one is told who has it, and keeps what it was. A manifest may be read while it is written,
  // which is another error for a moment.
  const taken = /tool ext__acme_demo__look_up: extension\/acme\.demo has one/
  await svc.drop('acme-demo', { 'extension.toml': head('acme-demo') + tool })
  const later = await svc.until('acme-demo', one => taken.test(one?.last_error))
  assert.is(later.state, 'active')

  // A part of a change that is not valid is left out of it. Looks that the start began are over when it is loaded anew.
  assert.is((await svc.request('POST', '/api/extensions/demo-kit/reload', {})).status, 200)
  const text = kit()['extension.toml'].replace('"session.post_create"', '"never.heard"')
  await svc.drop('demo-kit', { 'extension.toml': text, 'skills/new/SKILL.md': skill('new') })
  await svc.until('demo-kit', one => /hook\.binding ready: /.test(one?.diagnostics[0]?.message))
  const without = own.filter(name => name !== 'hook.binding ready')
  assert.equal(await names(svc), [...without, 'skill new'].sort())
  await svc.close()
})

test('contents for a missing plugin are shown as waiting', async () => {
  const svc = await scene({ 'demo-kit': kit() }, { plugins: plugins.filter(({ name }) => name !== 'skills') })
  await svc.until('demo-kit', isActive)
  const { items } = (await svc.request('GET', '/api/extensions/demo-kit/inventory')).body
  assert.ok(items.some(({ kind, name, live }: Wire) => kind === 'skills' && name === 'skills' && live === false))
  await svc.close()
})

test.run()
