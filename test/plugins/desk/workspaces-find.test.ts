import { cp, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { parse } from 'smol-toml'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ulid } from '../../../plugins/desk/workspaces/identity.js'
import { add, encoded, names, outcome, resolve, scene } from './workspace-scene.js'

test('a workspace is found by id, then name, then the nearest enclosing root', async () => {
  const { host, folder, root, api, end } = await scene()
  const outer = await add(host, await root('outer'))
  const inner = await add(host, await root('outer/deep/inner'))
  await root('outer/deep/inner/src')
  const find = async (reference: string) => {
    const { status, body } = await host.request('GET', encoded(reference))
    return status === 200 ? body.workspace.id : `${status} ${body.code}`
  }
  assert.is(await find(outer.id), outer.id)
  assert.is(await find('inner'), inner.id)
  assert.is(await find(inner.root_dir), inner.id)
  assert.is(await find(path.join(inner.root_dir, 'src')), inner.id)
  assert.is(await find(path.join(inner.root_dir, 'not', 'yet', 'there')), inner.id)
  assert.is(await find(path.join(outer.root_dir, 'deep')), outer.id)
  assert.is(await find(`${outer.root_dir}-not`), '404 workspace_not_found')
  assert.is(await find(path.join(outer.root_dir, '..')), '404 workspace_not_found')
  assert.is(await find('nobody'), '404 workspace_not_found')
  assert.is(await find('ws_0000000000000001'), '404 workspace_not_found')
  for (const relative of ['outer/deep', './outer', '~/outer'])
    assert.is(await find(relative), '400 workspace_path_relative')
  await symlink('/', path.join(outer.root_dir, 'escape'))
  assert.is(await find(path.join(outer.root_dir, 'escape', 'etc')), '404 workspace_not_found', 'a link leads out')
  await symlink(inner.root_dir, path.join(folder, 'shortcut'))
  assert.is(await find(path.join(folder, 'shortcut', 'src')), inner.id, 'a link leads in')
  assert.is((await api().find('outer')).id, outer.id)
  assert.is(api().get(outer.id)?.name, 'outer')
  assert.is(api().get('outer'), undefined)
  await end()
})

test('resolve finds the enclosing workspace, or registers the directory', async () => {
  const { host, root, end } = await scene()
  const here = await root('auto')
  const first = await resolve(host, here)
  assert.is(first.status, 200)
  assert.is(first.body.workspace.root_dir, here)
  assert.is((await resolve(host, await root('auto/sub'))).body.workspace.id, first.body.workspace.id)
  assert.is((await resolve(host, 'auto')).body.workspace.id, first.body.workspace.id)
  assert.is(await outcome(host, 'POST', '/api/workspaces/resolve', { path: 'auto/sub' }), '400 workspace_path_relative')
  assert.is(
    await outcome(host, 'POST', '/api/workspaces/resolve', { path: '/no/such/place' }),
    '400 workspace_root_invalid',
  )
  assert.is(await outcome(host, 'POST', '/api/workspaces/resolve', { path: 'nobody' }), '404 workspace_not_found')
  assert.equal(await names(host), ['auto'])
  await end()
})

test('a missing root is 410 and a doctor item; the registration can be changed and removed', async () => {
  const { host, root, end } = await scene()
  const here = await root('gone')
  const { id } = await add(host, here)
  await rm(here, { recursive: true })
  assert.is(await outcome(host, 'GET', `/api/workspaces/${id}`), '410 workspace_root_missing')
  assert.is(
    await outcome(host, 'POST', '/api/workspaces/resolve', { path: path.join(here, 'src') }),
    '410 workspace_root_missing',
  )
  const { body: report } = await host.request('GET', '/api/doctor?only=workspaces')
  assert.equal(
    report.items.map((item: { id: string; code: string }) => [item.id, item.code]),
    [[`workspaces.roots.${id}`, 'workspace_root_missing']],
  )
  assert.is(report.items[0].suggested_command, `svc workspace remove ${id}`)
  assert.is(await outcome(host, 'PATCH', `/api/workspaces/${id}`, { name: 'lost' }), '200')
  assert.is(await outcome(host, 'DELETE', encoded(here)), '204')
  assert.equal(await names(host), [])
  await end()
})

test('a root moved behind a link is followed; a moved folder keeps its workspace', async () => {
  const { host, folder, root, end } = await scene()
  const old = await root('first')
  const { id } = await add(host, old)
  await rename(old, path.join(folder, 'second'))
  await symlink(path.join(folder, 'second'), old)
  const followed = await host.request('GET', encoded(path.join(old, 'src')))
  assert.equal([followed.body.workspace.id, followed.body.workspace.root_dir], [id, path.join(folder, 'second')])
  await rm(old)
  await rename(path.join(folder, 'second'), path.join(folder, 'third'))
  const moved = await resolve(host, path.join(folder, 'third'))
  assert.equal([moved.body.workspace.id, moved.body.workspace.root_dir], [id, path.join(folder, 'third')])
  assert.equal(await names(host), ['first'])
  await end()
})

test('a root is looked at each time, also shortly after it was found on the disk of the home', async () => {
  const { host, folder, root, api, end } = await scene()
  const here = await root('here')
  const { id } = await add(host, here)
  const inner = path.join(here, 'src')
  const find = async (reference: string) => {
    const { status, body } = await host.request('GET', encoded(reference))
    return status === 200 ? [body.workspace.id, body.workspace.root_dir] : `${status} ${body.code}`
  }
  const isLocal = (folder: string) => api().isLocal?.(folder) ?? true // a replacement need not know
  while (!isLocal(here) || !isLocal(inner))
    for (const reference of [here, inner]) assert.equal(await find(reference), [id, here])
  for (const reference of [id, here, inner]) assert.equal(await find(reference), [id, here])
  await symlink('/', inner)
  assert.is(await find(inner), '404 workspace_not_found', 'a link leads out')
  await rm(inner)
  await rename(here, path.join(folder, 'there'))
  for (const reference of [id, here, inner]) assert.is(await find(reference), '410 workspace_root_missing')
  await writeFile(here, '')
  for (const reference of [id, here]) assert.is(await find(reference), '410 workspace_root_missing')
  await rm(here)
  await symlink(path.join(folder, 'there'), here)
  assert.equal(await find(here), [id, path.join(folder, 'there')], 'the root follows')
  assert.not(api().isLocal?.(path.join(folder, 'elsewhere')))
  await end()
})

test('a copy of a workspace is another workspace with its own identity', async () => {
  const { host, folder, root, end } = await scene()
  const original = await root('original')
  const { id } = await add(host, original)
  const copy = path.join(folder, 'copy')
  await cp(original, copy, { recursive: true })
  const second = await add(host, copy)
  assert.is.not(second.id, id)
  const identity = async (at: string) =>
    parse(await readFile(path.join(at, '.svc/workspace.toml'), 'utf8')).workspace_id
  assert.is.not(await identity(copy), await identity(original))
  await end()
})

test('an identity file survives a removal, a broken one is rewritten, a symbolic link is not followed', async () => {
  const { host, folder, root, end } = await scene()
  const file = (at: string) => path.join(at, '.svc', 'workspace.toml')
  const kept = await root('kept')
  await add(host, kept)
  const before = await readFile(file(kept), 'utf8')
  assert.is(await outcome(host, 'DELETE', '/api/workspaces/kept'), '204')
  await add(host, kept)
  assert.is(await readFile(file(kept), 'utf8'), before)

  const broken = await root('broken/.svc')
  await writeFile(path.join(broken, 'workspace.toml'), 'workspace_id = [[[')
  await add(host, path.dirname(broken))
  assert.match(await readFile(path.join(broken, 'workspace.toml'), 'utf8'), /^workspace_id = "[0-9A-Z]{26}"/)

  const outside = await root('outside')
  await symlink(outside, path.join(await root('trap'), '.svc'))
  await add(host, path.join(folder, 'trap'))
  assert.equal(await stat(path.join(outside, 'workspace.toml')).catch(error => error.code), 'ENOENT')
  assert.ok(host.log.some(line => line.msg.includes('leads out of the workspace')))

  await writeFile(path.join(outside, 'precious'), 'keep me')
  const linked = await root('linked/.svc')
  await symlink(path.join(outside, 'precious'), path.join(linked, 'workspace.toml'))
  await add(host, path.dirname(linked))
  assert.is(await readFile(path.join(outside, 'precious'), 'utf8'), 'keep me')
  await end()
})

test('a directory that cannot hold an identity file can be a workspace', async () => {
  const { host, root, end } = await scene()
  const here = await root('odd')
  await writeFile(path.join(here, '.svc'), 'a file where the folder should be')
  await add(host, here)
  assert.equal(await names(host), ['odd'])
  assert.ok(host.log.some(line => line.msg.includes('has no identity file')))
  await end()
})

test('ULIDs sort by time and contain all random bits', () => {
  const early = ulid(Date.UTC(2030, 0, 1), 'f'.repeat(20))
  const late = ulid(Date.UTC(2030, 0, 2), '0'.repeat(20))
  assert.ok(early < late)
  assert.is(early.slice(10), 'ZZZZZZZZZZZZZZZZ')
  assert.is(late.slice(10), '0000000000000000')
  assert.is(early.length, 26)
})

test.run()
