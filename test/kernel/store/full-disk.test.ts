import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Room } from '../../../kernel/contract/storage.js'
import { openStore } from '../../../kernel/store/index.js'
import { codeOf, inFolder, openAt, rowsById, smallDisk, writeThree } from './harness.js'

test('a short write continues at its end without an error', () =>
  inFolder(async folder => {
    const disk = smallDisk()
    const store = await openAt(folder, { disk })
    disk.pieces = 7
    await writeThree(store, 1)
    disk.pieces = Infinity
    await store.close()
    const again = await openAt(folder)
    assert.is(rowsById(again).get(1), 3)
    await again.close()
  }))

test('the reserve for a full disk is used by the write that needs it, without an error', () =>
  inFolder(async folder => {
    const disk = smallDisk()
    const spent: number[] = []
    const room: Room = {
      spend(bytes) {
        spent.push(bytes)
        disk.left += bytes
        return true
      },
      again: async () => assert.unreachable('nothing waits while something is left'),
    }
    const store = await openAt(folder, { disk, room })
    disk.left = 5000
    for (let id = 0; id < 5; id++) await writeThree(store, id)
    assert.ok(spent.length > 0)
    await store.close()
    const again = await openAt(folder)
    assert.is(rowsById(again).size, 5)
    await again.close()
  }))

test('a full disk refuses writes, serves reads, loses nothing and recovers by itself', () =>
  inFolder(async folder => {
    const disk = smallDisk()
    const store = await openAt(folder, { disk })
    await writeThree(store, 1)
    disk.left = 100
    const notices: number[] = []
    const waiting = [2, 3].map(id =>
      codeOf(() =>
        store.db.tx(t => {
          t.run('INSERT INTO kernel_row VALUES (?, 0, NULL)', [id])
          store.db.onDurable(t, () => notices.push(id))
        }),
      ),
    )
    assert.equal(await Promise.all(waiting), ['disk_full', 'disk_full'])
    assert.match(store.status().stalled ?? '', /disk is full/)
    assert.is(await codeOf(() => writeThree(store, 4)), 'disk_full')
    assert.is(await codeOf(() => store.db.durable()), 'disk_full', 'what is read may not be on the disk')
    assert.is(await codeOf(() => store.checkpoint()), 'disk_full')
    assert.equal([...rowsById(store).keys()], [1, 2, 3])
    assert.equal(notices, [])
    assert.is(store.status().failed, undefined)

    disk.left = Infinity
    while (store.status().stalled) await new Promise(resolve => setTimeout(resolve, 10))
    await store.db.durable()
    assert.equal(notices, [2, 3], 'what was under way is on the disk, and what follows from it has happened')
    await writeThree(store, 5)
    await store.close()
    const again = await openAt(folder)
    assert.equal([...rowsById(again).keys()], [1, 2, 3, 5])
    await again.close()
  }))

test('a store closed on a full disk keeps acknowledged writes', () =>
  inFolder(async folder => {
    const disk = smallDisk()
    const store = await openAt(folder, { disk })
    for (let id = 0; id < 9; id++) await writeThree(store, id)
    disk.left = 0
    assert.is(await codeOf(() => writeThree(store, 10, 'x'.repeat(9000))), 'disk_full')
    await store.close()
    const again = await openAt(folder)
    assert.equal([...rowsById(again).keys()].slice(0, 9), [0, 1, 2, 3, 4, 5, 6, 7, 8])
    await again.close()
  }))

test('a store opens on a full disk: it reads, and names the pending migration', () =>
  inFolder(async folder => {
    // It stays open, as a killed process leaves its files, and must not keep the second one out.
    const left = { ...smallDisk(), unlink: () => {}, exclude: () => 'unsupported' as const }
    const first = await openAt(folder, { autocheckpointPages: 100_000, disk: left })
    for (let id = 0; id < 9; id++) await writeThree(first, id, 'x'.repeat(3000))
    const disk = smallDisk()
    disk.left = 0
    const store = await openStore({ path: `${folder}/svc.db`, disk, now: () => 0 })
    assert.is(rowsById(store).size, 9)
    store.migrate('kernel', [
      {
        id: 'rows',
        sql: 'CREATE TABLE kernel_row (id INTEGER NOT NULL, part INTEGER NOT NULL, text TEXT, PRIMARY KEY (id, part))',
      },
    ])
    const missing = () => store.migrate('more', [{ id: 'things', sql: 'CREATE TABLE more_thing (id INTEGER)' }])
    await codeOf(missing).then(code => assert.is(code, 'disk_full'))
    try {
      missing()
    } catch (error) {
      assert.match((error as Error).message, /migration things of more/)
    }
    disk.left = Infinity
    while (store.status().stalled) await new Promise(resolve => setTimeout(resolve, 10))
    missing()
    await store.db.durable()
    await store.close()
  }))

test.run()
