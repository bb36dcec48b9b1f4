import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { isInside } from '../../plugins/workspaces/api.js'
import { ancestorsOf } from '../../plugins/workspaces/paths.js'
import { add, encoded, outcome, resolve, scene } from './workspace-scene.js'

test('paths with odd characters are registered, found by every reference and removed', async () => {
  const { host, root, end } = await scene()
  for (const name of [
    'a b',
    "it's",
    'per%cent',
    'ha#sh?',
    'line\nbreak',
    'ünï✓',
    '$(x)`y`',
    '-dash',
    'a;b&c',
    '[1]*',
  ]) {
    const here = await root(name)
    const { id, root_dir } = await add(host, here)
    assert.is(root_dir, here)
    assert.is((await host.request('GET', encoded(path.join(here, 'deep')))).body.workspace.id, id, name)
    assert.is((await resolve(host, path.join(here, 'deep', 'er'))).body.workspace.id, id, name)
    assert.is(await outcome(host, 'PATCH', encoded(here), { default_agent: 'x' }), '200', name)
    assert.is(await outcome(host, 'PATCH', encoded(path.join(here, 'deep')), { name: 'x' }), '404 workspace_not_found')
    assert.is(await outcome(host, 'DELETE', encoded(path.join(here, 'deep'))), '404 workspace_not_found')
    assert.is(await outcome(host, 'DELETE', encoded(here)), '204', name)
  }
  await end()
})

test('a root that became a file, or that cannot be reached, is told of for what it is; others go on', async () => {
  const { host, root, end } = await scene()
  const [file, loop, fine] = [await root('file'), await root('loop'), await root('fine')]
  for (const one of [file, loop, fine]) await add(host, one)
  await rm(file, { recursive: true })
  await writeFile(file, '')
  await rm(loop, { recursive: true })
  await symlink(loop, loop)
  assert.is(await outcome(host, 'GET', '/api/workspaces/file'), '410 workspace_root_missing')
  assert.is(await outcome(host, 'GET', encoded(file)), '410 workspace_root_missing')
  assert.is(await outcome(host, 'GET', '/api/workspaces/loop'), '410 workspace_root_missing')
  assert.is(await outcome(host, 'GET', '/api/workspaces/fine'), '200')
  const { items } = (await host.request('GET', '/api/doctor?only=workspaces')).body
  const told = items.map((item: { code: string; message: string }) => `${item.code} ${path.basename(item.message)}`)
  assert.equal(told.length, 2)
  assert.match(told.join('\n'), /workspace_root_missing .*file is not a directory any more/)
  assert.match(told.join('\n'), /workspace_root_unreachable .*loop cannot be reached \(ELOOP\)/)
  await end()
})

test('nested roots: the nearest wins through many levels, also when an inner one is removed', async () => {
  const { host, folder, root, end } = await scene()
  const ids: string[] = []
  let at = folder
  for (let i = 0; i < 20; i++) {
    at = path.join(at, `in-${i}`)
    await mkdir(at)
    ids.push((await add(host, at)).id)
  }
  const deep = path.join(at, 'src', 'x')
  const nearest = async () => (await resolve(host, deep)).body.workspace.id
  assert.is(await nearest(), ids[19])
  await host.request('DELETE', `/api/workspaces/${ids[19]}`)
  assert.is(await nearest(), ids[18])
  assert.is((await resolve(host, await root('in-0'))).body.workspace.id, ids[0])
  await end()
})

test('the root of the file system encloses all', () => {
  assert.equal(ancestorsOf('/a/b'), ['/a/b', '/a', '/'])
  assert.ok(isInside('/a', '/') && isInside('/', '/') && !isInside('/ab', '/a'))
})

test.run()
