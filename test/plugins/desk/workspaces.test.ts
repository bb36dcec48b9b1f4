import { readFile, stat, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { parse } from 'smol-toml'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { testCases } from '../../fixtures/cases.js'
import { add, names, outcome, resolve, scene } from './workspace-scene.js'

test('registering a directory gives it an id, the name of the folder and an identity file', async () => {
  const { host, root, end } = await scene()
  const here = await root('project')
  const workspace = await add(host, `${here}/../project/`)
  assert.match(workspace.id, /^ws_[0-9a-f]{16}$/)
  assert.equal([workspace.name, workspace.root_dir, workspace.add_dirs], ['project', here, []])
  const identity = parse(await readFile(path.join(here, '.svc', 'workspace.toml'), 'utf8'))
  assert.match(String(identity.workspace_id), /^[0-9A-HJKMNP-TV-Z]{26}$/)
  assert.is(identity.realpath_at_creation, here)
  assert.ok(!Number.isNaN(Date.parse(String(identity.created_at))))
  assert.equal(await names(host), ['project'])
  await end()
})

test('roots are canonical and registered once', async () => {
  const { host, folder, root, end } = await scene()
  const here = await root('real')
  await symlink(here, path.join(folder, 'link'))
  const { id } = await add(host, path.join(folder, 'link'))
  assert.is((await host.request('GET', `/api/workspaces/${id}`)).body.workspace.root_dir, here)
  assert.is(await outcome(host, 'POST', '/api/workspaces', { root_dir: here }), '409 workspace_exists')
  await end()
})

test('names are unique: a default name gets a number, a duplicate chosen name is refused', async () => {
  const { host, root, end } = await scene()
  await add(host, await root('a/app'))
  await add(host, await root('b/app'))
  await add(host, await root('c/app'))
  assert.equal(await names(host), ['app', 'app-2', 'app-3'])
  const other = await root('other')
  assert.is(
    await outcome(host, 'POST', '/api/workspaces', { root_dir: other, name: 'app-2' }),
    '409 workspace_name_taken',
  )
  assert.is(await outcome(host, 'PATCH', '/api/workspaces/app-3', { name: 'app' }), '409 workspace_name_taken')
  assert.equal(await names(host), ['app', 'app-2', 'app-3'])
  await stat(path.join(other, '.svc')).then(
    () => assert.unreachable('a refused directory is left as it was'),
    error => assert.is(error.code, 'ENOENT'),
  )
  await end()
})

test('two concurrent requests for one directory create one workspace', async () => {
  const { host, root, end } = await scene()
  const here = await root('race')
  const statuses = await Promise.all(
    Array.from({ length: 8 }, () => host.request('POST', '/api/workspaces', { root_dir: here })),
  )
  assert.equal(statuses.map(reply => reply.status).sort(), [201, ...Array(7).fill(409)])
  const same = await Promise.all(Array.from({ length: 4 }, () => resolve(host, here)))
  assert.is(new Set(same.map(reply => reply.body.workspace.id)).size, 1)
  await end()
})

interface Folders {
  readonly here: string
  readonly folder: string
}
const INVALID: readonly [string, (at: Folders) => object, string][] = [
  ['no root', () => ({}), '400 invalid_request'],
  ['unknown member', ({ here }) => ({ root_dir: here, colour: 'red' }), '400 invalid_request'],
  ['relative', () => ({ root_dir: 'here' }), '400 workspace_path_relative'],
  ['empty', () => ({ root_dir: '  ' }), '400 workspace_invalid'],
  ['missing', ({ folder }) => ({ root_dir: path.join(folder, 'nowhere') }), '400 workspace_root_invalid'],
  ['a file', ({ folder }) => ({ root_dir: path.join(folder, 'file') }), '400 workspace_root_invalid'],
  ['NUL', ({ here }) => ({ root_dir: `${here}\0` }), '400 workspace_invalid'],
  ['too long', () => ({ root_dir: `/${'x'.repeat(4096)}` }), '400 workspace_invalid'],
  ['name with a slash', ({ here }) => ({ root_dir: here, name: 'a/b' }), '400 workspace_invalid'],
  ['name with a control character', ({ here }) => ({ root_dir: here, name: 'a\u001b[2J' }), '400 workspace_invalid'],
  ['empty name', ({ here }) => ({ root_dir: here, name: ' ' }), '400 workspace_invalid'],
  ['long name', ({ here }) => ({ root_dir: here, name: 'n'.repeat(129) }), '400 workspace_invalid'],
  ['name like an id', ({ here }) => ({ root_dir: here, name: 'ws_0123456789abcdef' }), '400 workspace_invalid'],
  ['name like a path', ({ here }) => ({ root_dir: here, name: '../..' }), '400 workspace_invalid'],
  ['relative further directory', ({ here }) => ({ root_dir: here, add_dirs: ['lib'] }), '400 workspace_path_relative'],
  [
    'missing further directory',
    ({ here, folder }) => ({ root_dir: here, add_dirs: [path.join(folder, 'lib')] }),
    '400 workspace_root_invalid',
  ],
  [
    '65 further directories',
    ({ here, folder }) => ({ root_dir: here, add_dirs: Array(65).fill(folder) }),
    '400 workspace_invalid',
  ],
  ['odd agent', ({ here }) => ({ root_dir: here, default_agent: 'a/b' }), '400 workspace_invalid'],
]

testCases({
  open: async () => {
    const s = await scene()
    await writeFile(path.join(s.folder, 'file'), '')
    return { ...s, here: await s.root('here') }
  },
  close: ({ end }) => end(),
  cases: INVALID,
  name: ([what, , refusal]) => `a workspace is refused: ${what} (${refusal})`,
  run: async (s, [, body, refusal]) => assert.is(await outcome(s.host, 'POST', '/api/workspaces', body(s)), refusal),
  after: ['a refused workspace is not stored', async ({ host }) => assert.equal(await names(host), [])],
})

test('PATCH changes the given members, null resets one, and an empty change is none', async () => {
  const { host, folder, root, end } = await scene()
  const here = await root('app')
  const lib = await root('lib')
  await symlink(lib, path.join(folder, 'lib-link'))
  const { id } = await add(host, here, { name: ' main ', add_dirs: [lib, path.join(folder, 'lib-link'), here] })
  const patch = async (body: object) => (await host.request('PATCH', `/api/workspaces/${id}`, body)).body.workspace
  const first = await patch({})
  assert.equal([first.name, first.add_dirs, first.created_at], ['main', [lib], first.updated_at])
  const changed = await patch({ name: 'web', default_agent: 'coder', sandbox_ref: 'box' })
  assert.equal(
    [changed.name, changed.default_agent, changed.sandbox_ref, changed.add_dirs],
    ['web', 'coder', 'box', [lib]],
  )
  assert.equal(await patch({ name: 'web' }), changed)
  const back = await patch({ name: null, add_dirs: null, default_agent: null, sandbox_ref: null })
  assert.equal([back.name, back.default_agent, back.sandbox_ref, back.add_dirs], ['app', '', '', []])
  assert.is(await outcome(host, 'PATCH', `/api/workspaces/${id}`, { root_dir: lib }), '400 invalid_request')
  assert.is(await outcome(host, 'PATCH', '/api/workspaces/nobody', { name: 'x' }), '404 workspace_not_found')
  await end()
})

test('the detail has members of other plugins; a failing plugin leaves its member empty', async () => {
  const { host, root, end } = await scene({}, [
    [
      { member: 'skills', read: async workspace => [{ name: 'greet', dir: workspace.rootDir, source: 'workspace' }] },
      {
        member: 'agents',
        read: () => {
          throw new Error('lost the agents')
        },
      },
    ],
  ])
  const { id, root_dir } = await add(host, await root('app'))
  const { body } = await host.request('GET', `/api/workspaces/${id}`)
  assert.equal(body.skills, [{ name: 'greet', dir: root_dir, source: 'workspace' }])
  assert.equal([body.agents, body.providers, body.sessions], [[], [], []])
  assert.ok(host.log.some(line => line.msg.includes('lost the agents')))
  await end()
})

test.run()
