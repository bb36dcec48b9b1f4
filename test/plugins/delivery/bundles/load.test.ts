import { mkdir, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Fault } from '../../../../kernel/plugin.js'
import { type Scene, scene } from './bundles-scene.js'
import { agentFile, bridge, job, type KitOptions, layout, profile, trigger } from './kit.js'

let s: Scene
test.before(async () => {
  s = await scene()
})
test.after(() => s.end())

/** What stands against an extension: details by file and key, the line left out. */
async function problems(kit: KitOptions): Promise<Readonly<Record<string, string>>> {
  return withoutLines(await placedProblems(kit))
}

const withoutLines = (placed: Readonly<Record<string, string>> = {}) =>
  Object.fromEntries(Object.entries(placed).map(([place, what]) => [place.replace(/:\d+(?=:|$)/, ''), what]))

/** The same with the line behind the file. */
async function placedProblems(kit: KitOptions): Promise<Readonly<Record<string, string>>> {
  try {
    await s.kit({ name: 'broken', ...kit })
    // Another bundle of it is valid, and is there.
    const parts = s
      .leftOut()
      .map(line => /^(\S+\.(?:toml|json)(?::\d+)?(?:: [\w.]+(?=: ))?): ([\s\S]*)$/.exec(line) ?? [])
    return Object.fromEntries(parts.map(([, place = '', what = '']) => [place, what]))
  } catch (error) {
    const fault = error as Fault
    assert.equal([fault.code, fault.status], ['bundle_invalid', 422])
    return fault.details ?? {}
  }
}

const KIT = 'bundles/kit.json'
const desktops = (id: string) => ({
  document: { ...layout('x').document, desktops: [{ ...desktop, id: '', order: 3 }] },
  id,
})
const desktop = layout('x').document.desktops[0]

/** Where a profile is wrong, and what is said there. */
const INVALID: readonly (readonly [string, KitOptions, string, RegExp])[] = [
  ['a missing agent', { agents: {} }, `${KIT}: profiles.0.agents.0.path`, /AGENT\.md.* does not exist/],
  [
    'an agent with an unknown field',
    { agents: { planner: agentFile('planner', 'colour: red\n') } },
    `${KIT}: profiles.0.agents.0.path`,
    /colour: unknown field/,
  ],
  [
    'an agent with a command that needs a shell',
    { agents: { planner: agentFile('planner', 'command: "a | b"\n') } },
    `${KIT}: profiles.0.agents.0.command`,
    /needs a shell/,
  ],
  [
    'two agents with one name',
    {
      agents: { planner: agentFile('planner'), again: agentFile('planner') },
      profiles: [profile({ agents: [{ path: 'agents/planner' }, { path: 'agents/again' }] })],
    },
    `${KIT}: profiles.0.agents.1`,
    /another agent of this profile/,
  ],
  [
    'a persona beyond the default limit',
    { files: { 'agents/planner/SOUL.md': `Calm. ${'x'.repeat(40_000)}\n` } },
    `${KIT}: profiles.0.agents.0`,
    /^SOUL\.md: .*(?:long|bytes|most)/,
  ],
  [
    'a heartbeat beyond the default limit',
    { files: { 'agents/planner/HEARTBEAT.md': `Look. ${'x'.repeat(40_000)}\n` } },
    `${KIT}: profiles.0.agents.0`,
    /^HEARTBEAT\.md: .*(?:long|bytes|most)/,
  ],
  [
    'a layout that is text',
    { files: { 'layouts/two-up.json': '"x"' } },
    `${KIT}: profiles.0.layouts.0`,
    /id: required/,
  ],
  [
    'an agent with another name than in the profile',
    { profiles: [profile({ agents: [{ path: 'agents/planner', name: 'other' }] })] },
    `${KIT}: profiles.0.agents.0.name`,
    /its definition has the name "planner"/,
  ],
  [
    'an invalid persona',
    { files: { 'agents/planner/SOUL.md': '---\nmodel: x\n---\nCalm.\n' } },
    `${KIT}: profiles.0.agents.0`,
    /^SOUL\.md: .*line 2: model/,
  ],
  [
    'an invalid heartbeat',
    { files: { 'agents/planner/HEARTBEAT.md': '---\nversion: 1\nspawn: x\n---\nLook.\n' } },
    `${KIT}: profiles.0.agents.0`,
    /^HEARTBEAT\.md: .*line 3: spawn/,
  ],
  [
    'a missing layout',
    { profiles: [profile({ layouts: [{ path: 'layouts/no.json' }] })] },
    `${KIT}: profiles.0.layouts.0.path`,
    /does not exist/,
  ],
  [
    'a layout with invalid JSON',
    { files: { 'layouts/two-up.json': '{' } },
    `${KIT}: profiles.0.layouts.0.path`,
    /JSON/,
  ],
  [
    'a layout without an id',
    { files: { 'layouts/two-up.json': '{"version":1}' } },
    `${KIT}: profiles.0.layouts.0`,
    /id: required/,
  ],
  [
    'a layout with another id than in the profile',
    { profiles: [profile({ layouts: [{ path: 'layouts/two-up.json', id: 'other' }] })] },
    `${KIT}: profiles.0.layouts.0.id`,
    /another id/,
  ],
  [
    'two layouts with one id',
    { profiles: [profile({ layouts: [1, 2].map(() => ({ path: 'layouts/two-up.json' })) })] },
    `${KIT}: profiles.0.layouts.1`,
    /this id/,
  ],
  [
    'a layout of version 2',
    { files: { 'layouts/two-up.json': JSON.stringify(layout('two-up', { version: 2 })) } },
    `${KIT}: profiles.0.layouts.0.version`,
    /version 2 is not supported/,
  ],
  [
    'a layout with an invalid document',
    { files: { 'layouts/two-up.json': JSON.stringify(layout('two-up', desktops('two-up'))) } },
    `${KIT}: profiles.0.layouts.0.document.desktops.0.id`,
    /topology/,
  ],
  [
    'a layout with an unknown member',
    { files: { 'layouts/two-up.json': JSON.stringify(layout('two-up', { colour: 1 })) } },
    `${KIT}: profiles.0.layouts.0.colour`,
    /./,
  ],
  [
    'a job with a schedule of two modes',
    { profiles: [profile({ jobs: [job('a', { schedule: { mode: 'every', interval: '1h', expr: '0 9 * * *' } })] })] },
    `${KIT}: profiles.0.jobs.0.schedule.expr`,
    /not allowed with mode every/,
  ],
  [
    'a job without a prompt',
    { profiles: [profile({ jobs: [job('a', { prompt: '' })] })] },
    `${KIT}: profiles.0.jobs.0.prompt`,
    /required/,
  ],
  [
    'a job with a loop and a prompt',
    { profiles: [profile({ jobs: [job('a', { target_kind: 'loop', loop_target: { loop_name: 'x' } })] })] },
    `${KIT}: profiles.0.jobs.0.loop_target`,
    /must be empty/,
  ],
  [
    'a trigger with an unknown event',
    { profiles: [profile({ triggers: [trigger('a', { event: 'task.done' })] })] },
    `${KIT}: profiles.0.triggers.0.event`,
    /session\.created/,
  ],
  [
    'a trigger with a filter on another key',
    { profiles: [profile({ triggers: [trigger('a', { filter: { name: 'x' } })] })] },
    `${KIT}: profiles.0.triggers.0.filter`,
    /unknown key "name"/,
  ],
  [
    'a trigger with an invalid prompt template',
    { profiles: [profile({ triggers: [trigger('a', { prompt: 'For {{ .Name }}' })] })] },
    `${KIT}: profiles.0.triggers.0.prompt`,
    /unknown template field \{\{ \.Name \}\}/,
  ],
  [
    'a bridge without a platform',
    { profiles: [profile({ bridges: [bridge('a', { platform: undefined })] })] },
    `${KIT}: profiles.0.bridges.0.platform`,
    /./,
  ],
  [
    'a bridge that routes only by threads',
    { profiles: [profile({ bridges: [bridge('a', { routing_policy: { include_thread: true } })] })] },
    `${KIT}: profiles.0.bridges.0.routing_policy`,
    /include_thread needs/,
  ],
  [
    'a bridge with a secret in its configuration',
    { profiles: [profile({ bridges: [bridge('a', { provider_config: { api_token: 'abc' } })] })] },
    `${KIT}: profiles.0.bridges.0.provider_config.api_token`,
    /secret slot/,
  ],
  [
    'a missing path of the manifest',
    { manifest: { resources: { bundles: ['nowhere'] } } },
    'nowhere: resources.bundles.0',
    /does not exist/,
  ],
  ['a file with invalid JSON', { files: { [KIT]: '{"name":' } }, KIT, /not valid JSON/],
  ['a file with invalid TOML', { files: { 'bundles/b.toml': 'name = ' } }, 'bundles/b.toml', /not valid TOML/],
  [
    'two bundles with one name',
    { files: { 'bundles/more/bundle.toml': 'name = "Release-Kit"\n[[profiles]]\nname = "p"\n' } },
    'bundles/more/bundle.toml: name',
    /another bundle of this extension/,
  ],
]

for (const [says, kit, key, expected] of INVALID)
  test(`bundle manifest (3.5): ${says} is reported with file and key`, async () => {
    const found = await problems(kit)
    assert.ok(key in found, `${key} is not among ${JSON.stringify(found)}`)
    assert.match(found[key] ?? '', expected)
  })

test('all problems are reported at once, and earlier loads stay', async () => {
  await s.kit({ name: 'broken' })
  const found = await problems({
    profiles: [profile({ jobs: [job('a', { prompt: '' })], bridges: [bridge('a', { platform: 'No' })] })],
  })
  assert.equal(Object.keys(found), [`${KIT}: profiles.0.jobs.0.prompt`, `${KIT}: profiles.0.bridges.0.platform`])
  const { bundles } = (await s.request('GET', '/api/bundles/catalog')).body
  assert.equal(
    bundles.map((bundle: { extension_name: string }) => bundle.extension_name),
    ['broken'],
  )
  assert.is((await s.request('GET', '/api/resources/bundle')).body.records.length, 1)
})

test('a problem has the line of its key or of the nearest one above', async () => {
  const toml = (...lines: string[]) => ({ profiles: [profile()], files: { 'bundles/b.toml': lines.join('\n') } })
  const lines = async (kit: KitOptions) => Object.keys(await placedProblems(kit))
  const head = [
    '[bundle]',
    'name = "b"',
    '',
    '[[bundle.profiles]]',
    'name = "one"',
    '[[bundle.profiles]]',
    'name = "two"',
  ]
  const job = [
    '[[bundle.profiles.jobs]]',
    'name = "a"',
    'agent = "planner"',
    'prompt = "x"',
    '',
    '[[bundle.profiles.jobs]]',
  ]
  const wrong = ['name = "b"', 'promt = "x"']
  assert.equal(await lines(toml(...head, ...job, ...wrong)), ['bundles/b.toml:15: bundle.profiles.1.jobs.1.promt'])
  // What is found when all is read, with and without [bundle].
  const layouts = ['[[bundle.profiles.layouts]]', 'path = "layouts/no.json"']
  assert.equal(await lines(toml(...head, ...layouts)), ['bundles/b.toml:9: profiles.1.layouts.0.path'])
  const plain = [...head.slice(1), ...layouts].map(line => line.replace('bundle.', ''))
  assert.equal(await lines(toml(...plain)), ['bundles/b.toml:8: profiles.1.layouts.0.path'])
  assert.equal(await lines(toml('name = "b"', 'profiles = [')), ['bundles/b.toml:2'])
  const json = '{\n "name": "b",\n "profiles": [\n  {"name": "x"},\n  {"name": "y",\n   "bridges": [{}]}]\n}'
  assert.equal((await lines({ files: { 'bundles/b.json': json } }))[0], 'bundles/b.json:6: profiles.1.bridges.0.name')
})

test('links out of the extension, pipes and large files are refused for bundles, agents, sidecars and layouts', async () => {
  const outside = path.join(s.home, 'outside')
  await mkdir(outside, { recursive: true })
  await writeFile(path.join(outside, 'AGENT.md'), agentFile('planner'))
  await writeFile(path.join(outside, 'two-up.json'), JSON.stringify(layout('two-up')))
  const folder = await s.kit({ name: 'links' })
  const { rm } = await import('node:fs/promises')
  const load = () =>
    s.extensions.load(folder).then(
      () => ({}) as Readonly<Record<string, string>>,
      error => withoutLines((error as Fault).details),
    )
  const links: readonly (readonly [string, string, string])[] = [
    ['agents/planner', outside, `${KIT}: profiles.0.agents.0.path`],
    ['layouts/two-up.json', path.join(outside, 'two-up.json'), `${KIT}: profiles.0.layouts.0.path`],
    ['agents/planner/SOUL.md', '/etc/hostname', `${KIT}: profiles.0.agents.0.path`],
    ['bundles', outside, 'bundles: resources.bundles.0'],
  ]
  for (const [file, target, key] of links) {
    await s.kit({ name: 'links' })
    await rm(path.join(folder, file), { recursive: true })
    await symlink(target, path.join(folder, file))
    assert.match((await load())[key] ?? '', /leads out of it/, file)
  }
  await s.kit({ name: 'links' })
  await rm(path.join(folder, 'agents/planner'), { recursive: true })
  await mkdir(path.join(folder, 'elsewhere'))
  await writeFile(path.join(folder, 'elsewhere/AGENT.md'), agentFile('planner'))
  await symlink('../elsewhere', path.join(folder, 'agents/planner'))
  assert.equal(await load(), {}, 'a link that stays inside is followed')
  await writeFile(path.join(folder, 'elsewhere/AGENT.md'), agentFile('planner', '', 'x'.repeat(600_000)))
  assert.match((await load())[`${KIT}: profiles.0.agents.0.path`] ?? '', /at most 524288 are read/)
})

test('bundles are .toml and .json files of a folder, a file named by the manifest, and bundle.toml in a subfolder', async () => {
  const toml = (name: string) => `[bundle]\nname = "${name}"\n[[bundle.profiles]]\nname = "p"\n`
  await s.kit({
    name: 'many',
    manifest: { resources: { bundles: ['bundles', 'single.toml'] } },
    files: {
      'bundles/two.toml': toml('two'),
      'bundles/deep/bundle.toml': toml('three'),
      'bundles/deep/other.toml': '!',
      'bundles/read.me': '!',
      'single.toml': toml('four'),
    },
  })
  const { bundles } = (await s.request('GET', '/api/bundles/catalog')).body
  assert.equal(
    bundles.flatMap((bundle: Record<string, string>) => (bundle.extension_name === 'many' ? [bundle.bundle_name] : [])),
    ['four', 'release-kit', 'three', 'two'],
  )
})

test.run()
