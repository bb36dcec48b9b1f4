import { execFileSync } from 'node:child_process'
import { readFile, rename, rm, truncate, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { codeOf, type DiskCall, inFolder, openAt, rowsById, stockCheck, watchedDisk, writeThree } from './harness.js'

/** A disk whose calls of one name fail from the moment `arm` is called, and the names of all calls since then. */
function failing(name: DiskCall['name']) {
  let armed = false
  const since: string[] = []
  const disk = watchedDisk(call => {
    if (!armed) return
    since.push(call.name)
    if (call.name === name) throw Object.assign(new Error('EIO: i/o error'), { code: 'EIO' })
  })
  return { disk, since, arm: () => (armed = true) }
}

for (const name of ['fsync', 'pwrite'] as const) {
  test(`after a failed ${name} nothing is acknowledged and nothing is retried`, () =>
    inFolder(async folder => {
      const fault = failing(name)
      const store = await openAt(folder, { disk: fault.disk })
      await writeThree(store, 1)
      fault.arm()
      let called = false
      const waiting = [1, 2, 3].map(i =>
        codeOf(() =>
          store.db.tx(t => {
            t.run('INSERT INTO kernel_row VALUES (?, 0, NULL)', [10 + i])
            store.db.onDurable(t, () => (called = true))
          }),
        ),
      )
      assert.equal(await Promise.all(waiting), ['store_failed', 'store_failed', 'store_failed'])
      assert.is((await store.failed).code, 'store_failed')
      assert.is(fault.since.filter(call => call === name).length, 1)
      for (const write of [() => writeThree(store, 20), () => store.db.durable(), () => store.checkpoint()]) {
        assert.is(await codeOf(write), 'store_failed')
      }
      assert.is(await codeOf(() => store.migrate('kernel', [])), 'store_failed')
      assert.not(called)
      assert.match(store.status().failed ?? '', /can no longer be written/)
      // Reads go on, of all that ran in memory.
      assert.is(rowsById(store).size, 4)
      await store.close()
      assert.is(fault.since.filter(call => call === name).length, 1)
      const again = await openAt(folder)
      assert.is(rowsById(again).get(1), 3)
      await again.close()
    }))
}

test('a log removed by another program is noticed before the next acknowledgment', () =>
  inFolder(async folder => {
    const store = await openAt(folder)
    await writeThree(store, 1)
    await rm(path.join(folder, 'svc.db-wal'))
    assert.is(await codeOf(() => writeThree(store, 2)), 'store_failed')
    assert.match((await store.failed).message, /another program removed the write-ahead log/)
    await store.close()
  }))

/** Files of a store as a kill leaves them: transactions in the log, nothing closed. */
async function abandoned(folder: string): Promise<void> {
  const store = await openAt(folder, { autocheckpointPages: 100_000 })
  for (let id = 0; id < 10; id++) await writeThree(store, id)
  await Promise.all(['svc.db', 'svc.db-wal'].map(async name => keep(path.join(folder, name))))
  await store.close()
  await Promise.all(['svc.db', 'svc.db-wal'].map(async name => restore(path.join(folder, name))))
}
const keep = async (file: string): Promise<void> => writeFile(`${file}.kept`, await readFile(file))
const restore = async (file: string): Promise<void> => writeFile(file, await readFile(`${file}.kept`))

test('a log left by a kill is recovered; its torn tail is cut', () =>
  inFolder(async folder => {
    await abandoned(folder)
    const wal = path.join(folder, 'svc.db-wal')
    const bytes = await readFile(wal)
    for (const [cut, tail] of [
      [0, 0],
      [1, 0],
      [5000, 0],
      [0, 10_000],
    ] as const) {
      await restore(path.join(folder, 'svc.db'))
      await writeFile(wal, Buffer.concat([bytes.subarray(0, bytes.length - cut), Buffer.alloc(tail, 0xa5)]))
      const store = await openAt(folder)
      const rows = rowsById(store)
      assert.equal(
        [...rows.values()].filter(count => count !== 3),
        [],
      )
      assert.is(rows.size, cut === 0 ? 10 : 9)
      assert.is(store.status().walBytes, 0)
      await writeThree(store, 100)
      await store.close()
    }
  }))

test('a copy made by VACUUM INTO is opened with a log of its own', () =>
  inFolder(async folder => {
    const first = await openAt(folder)
    await writeThree(first, 1)
    await first.close()
    const file = path.join(folder, 'svc.db')
    execFileSync('sqlite3', [file, `VACUUM INTO '${file}.copy'`])
    assert.is((await readFile(`${file}.copy`)).readUInt8(18), 1)
    await rename(`${file}.copy`, file)
    const store = await openAt(folder)
    await writeThree(store, 2)
    assert.equal(
      [...rowsById(store)],
      [
        [1, 3],
        [2, 3],
      ],
    )
    assert.is(await stockCheck(folder), 'ok')
    await store.close()
  }))

test('damage is reported: a file that is no database, a missing one beside its log, a foreign journal', () =>
  inFolder(async folder => {
    const file = path.join(folder, 'svc.db')
    await writeFile(file, 'this is no database, and it is longer than a header of one hundred bytes. '.repeat(99))
    assert.is(await codeOf(() => openAt(folder)), 'store_damaged')
    await rm(file)
    await writeFile(`${file}-wal`, 'x')
    assert.is(await codeOf(() => openAt(folder)), 'store_damaged')
    await truncate(`${file}-wal`)
    await writeFile(`${file}-journal`, 'x')
    assert.is(await codeOf(() => openAt(folder)), 'store_damaged')
    await rm(`${file}-journal`)
    await (await openAt(folder)).close()
    assert.is(await codeOf(() => openAt(path.join(folder, 'missing'))), 'store_open_failed')
  }))

test.run()
