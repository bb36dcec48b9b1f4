import { mkdir, realpath, rename, rm, symlink } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { SCRATCH_ID } from '../../../plugins/desk/workspaces/api.js'
import { temporaryFolder } from '../../harness/kernel.js'
import { add, encoded, names, outcome, resolve, scene } from './workspace-scene.js'

/** A user's home with the daemon's home in it. */
async function userHome() {
  const user = await realpath(await temporaryFolder('user'))
  return { user, home: path.join(user, '.svc'), env: { HOME: user, PATH: process.env.PATH } }
}

test('a fresh home registers no folder of the user', async () => {
  const { user, home, env } = await userHome()
  const { host, end } = await scene({ home, env })
  assert.equal(await names(host), [])
  await end()
  await rm(user, { recursive: true })
})

test('scratch is created at its first use, once, in the home of the daemon', async () => {
  const { host, api, end } = await scene()
  assert.equal(await names(host), [])
  const [one, two] = await Promise.all([api().scratch(), api().scratch()])
  assert.equal([one.id, one.name, one.rootDir], [SCRATCH_ID, 'scratch', path.join(host.home, 'scratch')])
  assert.equal(two, one)
  assert.equal(await names(host), ['scratch'])
  for (const reference of ['scratch', SCRATCH_ID, one.rootDir, path.join(one.rootDir, 'below')])
    assert.is((await api().find(reference)).id, SCRATCH_ID)
  await end()
})

test('a reference to scratch creates it', async () => {
  const { host, end } = await scene()
  const { status, body } = await host.request('GET', '/api/workspaces/scratch')
  assert.equal([status, body.workspace.id], [200, SCRATCH_ID])
  await end()
})

test('scratch keeps its name, and a folder with that name gets the next one', async () => {
  const { host, root, end } = await scene()
  const mine = await add(host, await root('scratch'))
  assert.is(mine.name, 'scratch-2')
  const body = { root_dir: await root('other'), name: 'scratch' }
  assert.is(await outcome(host, 'POST', '/api/workspaces', body), '409 workspace_name_taken')
  assert.is(await outcome(host, 'PATCH', encoded(mine.root_dir), { name: 'scratch' }), '409 workspace_name_taken')
  assert.is(await outcome(host, 'PATCH', '/api/workspaces/scratch', { name: 'mine' }), '409 workspace_reserved')
  const changed = await host.request('PATCH', '/api/workspaces/scratch', { default_agent: 'report', name: null })
  assert.equal([changed.body.workspace.name, changed.body.workspace.default_agent], ['scratch', 'report'])
  await end()
})

test('scratch can neither be removed nor registered again', async () => {
  const { host, api, end } = await scene()
  for (const reference of ['scratch', SCRATCH_ID])
    assert.is(await outcome(host, 'DELETE', `/api/workspaces/${reference}`), '409 workspace_reserved')
  const { rootDir } = await api().scratch()
  assert.is(await outcome(host, 'DELETE', encoded(rootDir)), '409 workspace_reserved')
  assert.is(await outcome(host, 'POST', '/api/workspaces', { root_dir: rootDir }), '409 workspace_exists')
  assert.is((await resolve(host, rootDir)).body.workspace.id, SCRATCH_ID)
  await end()
})

test('scratch moves with the home of the daemon', async () => {
  const folder = await realpath(await temporaryFolder('moved'))
  const first = await scene({ home: path.join(folder, 'one') })
  await first.api().scratch()
  await first.end()
  await rename(path.join(folder, 'one'), path.join(folder, 'two'))
  const second = await scene({ home: path.join(folder, 'two') })
  assert.is(second.api().get(SCRATCH_ID)?.rootDir, path.join(folder, 'two', 'scratch'))
  await second.end()
  await rm(folder, { recursive: true })
})

test('a symbolic link at the path of scratch is refused', async () => {
  const { host, root, end } = await scene()
  await symlink(await root('elsewhere'), path.join(host.home, 'scratch'))
  assert.is(await outcome(host, 'GET', '/api/workspaces/scratch'), '400 workspace_root_invalid')
  await end()
})

test('a workspace that contains a home encloses only its own root', async () => {
  const { user, home, env } = await userHome()
  const { host, end } = await scene({ home, env })
  const app = path.join(user, 'code', 'app')
  await mkdir(app, { recursive: true })
  const wide = await add(host, user)
  assert.is((await host.request('GET', encoded(user))).body.workspace.id, wide.id)
  assert.is(await outcome(host, 'GET', encoded(app)), '404 workspace_not_found')
  assert.is(await outcome(host, 'GET', encoded(path.join(home, 'agents'))), '404 workspace_not_found')
  const code = await add(host, path.join(user, 'code'))
  assert.is((await host.request('GET', encoded(app))).body.workspace.id, code.id)
  assert.is((await resolve(host, app)).body.workspace.id, code.id)
  await end()
  await rm(user, { recursive: true })
})

test.run()
