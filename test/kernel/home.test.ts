import { existsSync } from 'node:fs'
import { chown, mkdir, readdir, rm, truncate, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { daemon, resources } from '../../plugins/index.js'
import { openWorld } from '../fixtures/session-world.js'
import { boot, type Reply, temporaryFolder } from '../harness/kernel.js'

const plugins = [daemon, resources]

/** What a start is refused with. */
async function refusalOf(home: string, more: { newCatalog?: boolean } = {}) {
  try {
    const host = await boot({ home, plugins, ...more })
    await host.close()
  } catch (error) {
    return error as Error & { code: string; next: string }
  }
  throw new Error('it started')
}

test('a home with data and without a catalog is not new; a new catalog starts on request', async () => {
  const world = await openWorld()
  try {
    await world.agent('plain')
    const { id, at } = await world.session('plain')
    await world.prompt(at, 'say x')
    await world.kernel.close()
    const database = path.join(world.home, 'svc.db')
    await truncate(database)
    const empty = await refusalOf(world.home)
    assert.is(empty.code, 'catalog_missing')
    assert.match(empty.message, 'is empty')
    for (const name of ['svc.db', 'svc.db-wal']) await rm(path.join(world.home, name), { force: true })
    const marked = await refusalOf(world.home)
    assert.match(marked.message, /svc\.db is missing.*svc\.db-mark/)
    await rm(path.join(world.home, 'svc.db-mark'))
    const bare = await refusalOf(world.home)
    assert.is(bare.code, 'catalog_missing')
    assert.match(bare.message, `sessions/${id}/`)
    assert.match(bare.next, '--new-catalog')
    assert.not(existsSync(database), 'a refused start makes none')

    await writeFile(path.join(world.home, 'svc.db-mark'), 'what is left')
    // As a kill leaves one between its file and the catalog: nobody was told of it.
    const session = path.join(world.home, 'sessions', 'ses_0123456789abcdef')
    await mkdir(session)
    await writeFile(path.join(session, 'meta.json'), '{}')
    await world.restart({ newCatalog: true })
    const aside = (await readdir(world.home)).find(name => name.startsWith('catalog-'))
    assert.equal(await readdir(path.join(world.home, aside ?? '')), ['svc.db-mark'])
    assert.ok(existsSync(path.join(world.home, 'sessions', id, 'events-1.log')), 'sessions stay')
    const { body } = await world.kernel.request('GET', '/api/doctor?only=sessions')
    const orphans = body.items.find((item: Reply) => item.code === 'session_rows_missing')
    assert.equal(orphans?.evidence, { session_ids: [id] })
    await world.restart()
    await world.kernel.close()
    assert.is((await refusalOf(world.home, { newCatalog: true })).code, 'catalog_present')
    await world.restart()
  } finally {
    await world.close()
  }
})

test('a home without data starts', async () => {
  const home = await temporaryFolder('bare')
  for (const folder of ['logs', 'cache', 'extensions/x', 'agents'])
    await mkdir(path.join(home, folder), { recursive: true })
  await writeFile(path.join(home, 'config.json'), '{}')
  await writeFile(path.join(home, 'svc.db'), '')
  await writeFile(path.join(home, 'agents', 'a.md'), 'x')
  const host = await boot({ home, plugins })
  assert.is((await host.request('GET', '/api/status')).status, 200)
  await host.close()
  await rm(home, { recursive: true })
})

test('the home of another user is refused with its owner, and nothing is created in it', async () => {
  if (os.userInfo().uid !== 0) return console.log('not run: only root can give a home away')
  const home = await temporaryFolder('foreign')
  await chown(home, 12345, 12345)
  const refused = await refusalOf(home)
  assert.is(refused.code, 'home_owner_mismatch')
  assert.match(refused.message, 'uid 12345')
  assert.match(refused.next, "sudo -u '#12345' svc daemon start")
  assert.equal(await readdir(home), [])
  await rm(home, { recursive: true })
})

test.run()
