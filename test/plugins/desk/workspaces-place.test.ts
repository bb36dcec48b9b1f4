import { mkdir, realpath, rm, symlink } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { SCRATCH_ID } from '../../../plugins/desk/workspaces/api.js'
import { type TestKernel, temporaryFolder } from '../../harness/kernel.js'
import { add, names, scene } from './workspace-scene.js'

const folder = async (...parts: string[]) => {
  const made = path.join(...parts)
  await mkdir(made, { recursive: true })
  return made
}

async function place(host: TestKernel, at: string) {
  const { status, body } = await host.request('POST', '/api/workspaces/place', { path: at })
  return status === 200 ? `${body.registered ? 'new' : 'known'} ${body.workspace.root_dir}` : `${status} ${body.code}`
}

test('a command runs in the nearest root added by the user', async () => {
  const { host, root, end } = await scene()
  const outer = await root('outer')
  await add(host, outer)
  await folder(outer, 'app', '.git')
  assert.is(await place(host, await folder(outer, 'app', 'src')), `known ${outer}`)
  await add(host, path.join(outer, 'app'))
  assert.is(await place(host, path.join(outer, 'app', 'src')), `known ${path.join(outer, 'app')}`)
  await end()
})

test('a path outside a workspace registers the top level of its git repository, else its folder', async () => {
  const { host, root, folder: roots, end } = await scene()
  const app = await root('app')
  await folder(app, '.git')
  assert.is(await place(host, await folder(app, 'src', 'deep')), `new ${app}`)
  assert.is(await place(host, path.join(app, 'src')), `known ${app}`)
  const notes = await root('notes')
  assert.is(await place(host, notes), `new ${notes}`)
  assert.is(await place(host, notes), `known ${notes}`)
  await symlink(notes, path.join(roots, 'link'))
  assert.is(await place(host, path.join(roots, 'link')), `known ${notes}`)
  assert.equal(await names(host), ['app', 'notes'])
  await end()
})

test('a folder registered by a command encloses no folder below it until the user adds it', async () => {
  const { host, root, end } = await scene()
  const code = await root('code')
  await place(host, code)
  const app = await folder(code, 'app')
  assert.is(await place(host, app), `new ${app}`)
  const added = await add(host, code, { name: 'all' })
  assert.is(added.name, 'all')
  const other = await folder(code, 'other')
  assert.is(await place(host, other), `known ${code}`)
  await end()
})

test('a home, its parents, daemon folders and temporary folders are not registered without a question', async () => {
  const user = await realpath(await temporaryFolder('user'))
  const home = path.join(user, 'code', 'daemon')
  const { host, end } = await scene({ home, env: { HOME: user, PATH: process.env.PATH } })
  const wide = ['/', user, path.dirname(user), path.join(user, 'code'), home, path.join(home, 'logs'), os.homedir()]
  for (const at of [...wide, '/tmp', '/var/tmp', os.tmpdir()])
    assert.is(await place(host, at), '409 workspace_too_wide', at)
  const nextOf = async (at: string) =>
    (await host.request('POST', '/api/workspaces/place', { path: at })).body.details.next
  assert.match(await nextOf(user), 'or svc workspace add')
  for (const at of [home, path.join(home, 'logs')]) assert.is(await nextOf(at), 'cd <folder of a project>')
  const refused = await host.request('POST', '/api/workspaces', { root_dir: home })
  assert.match(refused.body.error, /^the folder .* is the home of the daemon, which is no workspace$/)
  assert.equal(await names(host), [])
  assert.is(await place(host, await folder(user, 'app')), `new ${path.join(user, 'app')}`)
  await end()
  await rm(user, { recursive: true })
})

test('a home that is a git repository is not the project of a folder below it', async () => {
  const user = await realpath(await temporaryFolder('user'))
  const { host, end } = await scene({ home: path.join(user, '.svc'), env: { HOME: user, PATH: process.env.PATH } })
  await folder(user, '.git')
  const notes = await folder(user, 'notes')
  assert.is(await place(host, notes), `new ${notes}`)
  await end()
  await rm(user, { recursive: true })
})

test('the folder scratch is the workspace scratch; no other daemon folder can be registered', async () => {
  const { host, api, end } = await scene()
  const scratch = path.join(host.home, 'scratch')
  assert.is(await place(host, scratch), `known ${scratch}`)
  assert.is((await api().find(await folder(scratch, 'below'))).id, SCRATCH_ID)
  for (const root_dir of [host.home, path.join(host.home, 'logs')]) {
    const { status, body } = await host.request('POST', '/api/workspaces', { root_dir })
    assert.equal([status, body.code], [400, 'workspace_root_invalid'])
  }
  await end()
})

test('the list filters by the workspace of a path', async () => {
  const { host, root, end } = await scene()
  const app = await add(host, await root('app'))
  await add(host, await root('other'))
  const of = async (at: string) => {
    const { status, body } = await host.request('GET', `/api/workspaces?path=${encodeURIComponent(at)}`)
    return status === 200 ? body.workspaces.map(({ id }: { id: string }) => id) : `${status} ${body.code}`
  }
  assert.equal(await of(path.join(app.root_dir, 'src')), [app.id])
  assert.equal(await of(path.dirname(app.root_dir)), [])
  assert.is(await of('src'), '400 workspace_path_relative')
  await end()
})

test.run()
