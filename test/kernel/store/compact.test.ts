import { cp, mkdir, stat } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { codeOf, inFolder, openAt, rowsById, stockCheck, watchedDisk, writeThree } from './harness.js'

const SMALL = 64 * 1024
const KEPT = [1, 2, 3, 400]

/** A database of some 500 KB of which most pages are free. */
async function sparse(folder: string): Promise<number> {
  const store = await openAt(folder, { compactedBytes: Number.POSITIVE_INFINITY })
  await Promise.all(Array.from({ length: 400 }, (_, n) => writeThree(store, n + 1)))
  await store.db.tx(t => t.run(`DELETE FROM kernel_row WHERE id NOT IN (${KEPT.join(', ')})`))
  await store.close()
  return (await stat(path.join(folder, 'svc.db'))).size
}

const content = (store: Awaited<ReturnType<typeof openAt>>) => [...rowsById(store)]
const EXPECTED = KEPT.map(id => [id, 3])

test('a mostly free database shrinks when it is opened, and stays usable', () =>
  inFolder(async folder => {
    const before = await sparse(folder)
    const store = await openAt(folder, { compactedBytes: SMALL })
    assert.ok(before > 8 * store.status().bytes, `${before} and ${store.status().bytes}`)
    assert.equal(content(store), EXPECTED)
    await writeThree(store, 500)
    await store.close()
    assert.is(await stockCheck(folder), 'ok')
    const next = await openAt(folder, { compactedBytes: SMALL })
    assert.equal(content(next), [...EXPECTED, [500, 3]])
    await next.close()
  }))

test('a small database or one with less than a third free is not shrunk', () =>
  inFolder(async folder => {
    const before = await sparse(folder)
    const store = await openAt(folder)
    assert.is(store.status().bytes, before)
    for (let id = 401; id <= 760; id++) await writeThree(store, id)
    await store.close()
    const next = await openAt(folder, { compactedBytes: SMALL })
    assert.ok(next.status().bytes >= before)
    await next.close()
  }))

test('a kill at any file call of the shrinking loses nothing', () =>
  inFolder(async folder => {
    const copies: string[] = []
    const home = path.join(folder, 'home')
    await mkdir(home)
    await sparse(home)
    const disk = watchedDisk(async ({ name }) => {
      if (!['pwrite', 'truncate', 'fsync', 'unlink', 'close'].includes(name)) return
      const copy = path.join(folder, `copy${copies.length}`)
      copies.push(copy)
      await cp(home, copy, { recursive: true })
    })
    const store = await openAt(home, { compactedBytes: SMALL, disk })
    const { bytes } = store.status()
    await store.close()
    const sizes = new Set<boolean>()
    for (const copy of copies) {
      const found = await openAt(copy, { compactedBytes: Number.POSITIVE_INFINITY })
      assert.equal(content(found), EXPECTED, copy)
      sizes.add(found.status().bytes <= bytes)
      await found.close()
    }
    assert.equal([...sizes].toSorted(), [false, true], 'there are kills before and after it shrank')
  }))

test('a disk error during the shrinking fails the open, and the next open finds everything', () =>
  inFolder(async folder => {
    const base = path.join(folder, 'base')
    await mkdir(base)
    await sparse(base)
    let calls = 0
    let failing = Number.POSITIVE_INFINITY
    const disk = watchedDisk(({ name }) => {
      if (['pwrite', 'fsync', 'truncate'].includes(name) && ++calls >= failing) throw new Error('EIO: i/o error')
    })
    for (failing = 3; failing < 9; failing += 2) {
      calls = 0
      const home = path.join(folder, `${failing}`)
      await cp(base, home, { recursive: true })
      const failed = await codeOf(async () => (await openAt(home, { compactedBytes: SMALL, disk })).close())
      assert.ok(failed !== undefined, `${failing}`)
      const store = await openAt(home, { compactedBytes: Number.POSITIVE_INFINITY })
      assert.equal(content(store), EXPECTED)
      await store.close()
    }
  }))

test.run()
