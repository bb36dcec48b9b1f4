import { chmod, mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { isInside } from '../../../plugins/desk/workspaces/api.js'
import { ancestorsOf } from '../../../plugins/desk/workspaces/paths.js'
import { testCases } from '../../fixtures/cases.js'
import { add, encoded, outcome, resolve, scene } from './workspace-scene.js'

testCases({
  open: () => scene(),
  close: ({ end }) => end(),
  cases: ['a b', "it's", 'per%cent', 'ha#sh?', 'line\nbreak', 'ünï✓', '$(x)`y`', '-dash', 'a;b&c', '[1]*'],
  name: name => `the path ${JSON.stringify(name)} is registered, found by every reference and removed`,
  run: async ({ host, root }, name) => {
    const here = await root(name)
    const { id, root_dir } = await add(host, here)
    assert.is(root_dir, here)
    assert.is((await host.request('GET', encoded(path.join(here, 'deep')))).body.workspace.id, id)
    assert.is((await resolve(host, path.join(here, 'deep', 'er'))).body.workspace.id, id)
    assert.is(await outcome(host, 'PATCH', encoded(here), { default_agent: 'x' }), '200')
    assert.is(await outcome(host, 'PATCH', encoded(path.join(here, 'deep')), { name: 'x' }), '404 workspace_not_found')
    assert.is(await outcome(host, 'DELETE', encoded(path.join(here, 'deep'))), '404 workspace_not_found')
    assert.is(await outcome(host, 'DELETE', encoded(here)), '204')
  },
})

test('a root that became a file or is unreachable is reported as such; other workspaces work', async () => {
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
  const reports = items.map((item: { code: string; message: string }) => `${item.code} ${item.message}`)
  assert.equal(reports.length, 2)
  assert.match(reports.join('\n'), /workspace_root_missing .*file is no longer a directory/)
  assert.match(reports.join('\n'), /workspace_root_unreachable .*loop cannot be reached \(ELOOP\)/)
  await end()
})

/** Does something without the rights of root, for which no permission counts; others are refused as they are. */
async function withoutRights<T>(work: () => Promise<T>): Promise<T> {
  const nobody = 65534
  if (process.geteuid?.() !== 0) return work()
  process.seteuid?.(nobody)
  try {
    return await work()
  } finally {
    process.seteuid?.(0)
  }
}

test('a root without permission is reported as such, and works again with it', async () => {
  const { host, root, end } = await scene()
  const [locked, inside, fine] = [await root('locked'), await root('around/inside'), await root('fine')]
  await add(host, locked)
  await add(host, inside)
  await add(host, fine)
  const around = path.dirname(inside)
  for (const folder of [locked, around]) await chmod(folder, 0)
  await chmod(fine, 0o755)
  for (let at = path.dirname(fine); at !== tmpdir(); at = path.dirname(at)) await chmod(at, 0o755)
  await withoutRights(async () => {
    for (const reference of ['locked', 'inside', locked, path.join(locked, 'deep'), inside]) {
      const { status, body } = await host.request('GET', encoded(reference))
      assert.equal([status, body.code], [410, 'workspace_root_missing'], reference)
      assert.match(body.error, /EACCES.*give the user of the daemon access/)
      assert.is(body.details.next, 'svc doctor --only workspaces')
    }
    assert.is(await outcome(host, 'GET', '/api/workspaces/fine'), '200')
    const refused = await host.request('POST', '/api/workspaces', { root_dir: path.join(locked, 'new') })
    assert.equal([refused.status, refused.body.code], [400, 'workspace_root_invalid'])
    const { items } = (await host.request('GET', '/api/doctor?only=workspaces')).body
    assert.equal(
      items.map((item: { code: string }) => item.code),
      ['workspace_root_unreachable', 'workspace_root_unreachable'],
    )
  })
  for (const folder of [locked, around]) await chmod(folder, 0o755)
  await withoutRights(async () => assert.is(await outcome(host, 'GET', '/api/workspaces/inside'), '200'))
  await end()
})

test('nested roots: the nearest wins at many levels, also after the removal of an inner one', async () => {
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

test('the root of the file system encloses every path', () => {
  assert.equal(ancestorsOf('/a/b'), ['/a/b', '/a', '/'])
  assert.ok(isInside('/a', '/') && isInside('/', '/') && !isInside('/ab', '/a'))
})

test.run()
