import { stat } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Tx } from '../../../kernel/contract/storage.js'
import { codeOf, inFolder, openAt, rowsById, watchedDisk, withStore, writeThree } from './harness.js'

test('a transaction returns its result, is visible at once and survives a restart', () =>
  inFolder(async folder => {
    const store = await openAt(folder)
    const written = store.db.tx(t => {
      t.run("INSERT INTO kernel_row VALUES (1, 0, 'a'), (1, 1, NULL)")
      return t.all('SELECT id, part, text FROM kernel_row ORDER BY part')
    })
    assert.equal(store.db.row('SELECT count(*) FROM kernel_row'), [2])
    assert.equal(await written, [
      { id: 1, part: 0, text: 'a' },
      { id: 1, part: 1, text: null },
    ])
    await store.close()
    assert.is((await stat(path.join(folder, 'svc.db'))).mode & 0o777, 0o600)
    const again = await openAt(folder)
    assert.equal(again.db.get('SELECT part, text FROM kernel_row WHERE text IS NOT NULL'), { part: 0, text: 'a' })
    assert.is(again.db.get('SELECT 1 FROM kernel_row WHERE id = 7'), undefined)
    await again.close()
  }))

test('the space to grow behind an image is no reason for a garbage collection', () =>
  inFolder(async folder => {
    await (await openAt(folder)).close()
    const { external } = process.memoryUsage()
    const store = await openAt(folder)
    const more = process.memoryUsage().external - external
    await store.close()
    assert.ok(more < 4 * 1024 * 1024, `V8 counts ${more} bytes more`)
  }))

test('values are read back unchanged', () =>
  withStore(async ({ db }) => {
    const values = [null, '', 'ä\u{1f600}', 0, -1, 1.5, 2 ** 40, 2 ** 53, new Uint8Array([0, 255]), -(2 ** 31)]
    const row = await db.tx(t => {
      t.run('INSERT INTO kernel_row (id, part, text) VALUES (?, 0, ?)', [9007199254740993n, 'big'])
      return t.row(`SELECT ${values.map(() => '?').join()}, id FROM kernel_row`, values)
    })
    assert.equal(row, [...values, 9007199254740993n])
  }))

test('a throw rolls back and rejects with the same error', () =>
  withStore(async store => {
    const error = new Error('no')
    const result = store.db.tx(t => {
      t.run("INSERT INTO kernel_row VALUES (1, 0, 'a')")
      throw error
    })
    assert.is(await result.catch(thrown => thrown), error)
    assert.is(rowsById(store).size, 0)
    assert.is(
      await codeOf(() => store.db.tx(t => t.run('INSERT INTO kernel_row VALUES (1, NULL, NULL)'))),
      'constraint_failed',
    )
    await writeThree(store, 2)
    assert.equal([...rowsById(store)], [[2, 3]])
  }))

test('a nested transaction and an asynchronous callback are refused whole', () =>
  withStore(async store => {
    const { db } = store
    const nested = () =>
      db.tx(t => {
        t.run("INSERT INTO kernel_row VALUES (1, 0, 'a')")
        void db.tx(() => 1)
      })
    assert.is(await codeOf(nested), 'tx_nested')
    let late: Promise<unknown> = Promise.resolve()
    const asynchronous = () =>
      db.tx(async t => {
        t.run("INSERT INTO kernel_row VALUES (1, 0, 'a')")
        late = Promise.resolve().then(() => t.run("INSERT INTO kernel_row VALUES (1, 1, 'b')"))
        await late
      })
    assert.is(await codeOf(asynchronous), 'tx_async')
    assert.is(await codeOf(() => late), 'tx_ended')
    assert.is(rowsById(store).size, 0)
  }))

test('a write outside a transaction, through an ended handle or after close is refused', () =>
  withStore(async store => {
    const { db } = store
    assert.is(await codeOf(() => db.all("INSERT INTO kernel_row VALUES (1, 0, 'a') RETURNING id")), 'statement_refused')
    let kept: Tx | undefined
    await db.tx(t => {
      kept = t
    })
    assert.is(await codeOf(() => kept?.get('SELECT 1')), 'tx_ended')
    assert.is(await codeOf(() => db.onDurable(kept as Tx, () => {})), 'tx_ended')
    await store.close()
    assert.is(await codeOf(() => writeThree(store, 1)), 'store_closed')
  }))

test('rolled back and read-only transactions cost no sync, a writing one costs one', () =>
  withStore(async store => {
    const before = store.status().syncs
    await store.db.tx(t => t.get('SELECT count(*) FROM kernel_row'))
    await codeOf(() =>
      store.db.tx(t => {
        t.run("INSERT INTO kernel_row VALUES (1, 0, 'a')")
        throw new Error('no')
      }),
    )
    assert.is(store.status().syncs, before)
    // The header of a new log is synced by itself; after that one sync a transaction.
    await writeThree(store, 1)
    const first = store.status().syncs
    await writeThree(store, 2)
    assert.is(store.status().syncs - first, 1)
  }))

test('transactions of 64 writers share their syncs', () =>
  withStore(async store => {
    const { syncs, transactions } = store.status()
    let id = 0
    const writer = async () => {
      for (let i = 0; i < 20; i++) await writeThree(store, id++)
    }
    await Promise.all(Array.from({ length: 64 }, writer))
    const after = store.status()
    assert.is(after.transactions - transactions, 1280)
    assert.ok(after.syncs - syncs < 1280 / 16, `${after.syncs - syncs} syncs`)
    assert.is(rowsById(store).size, 1280)
  }))

test('a transaction resolves after the sync that covers it; later ones use the next', async () => {
  let release: (() => void) | undefined
  let hold = false
  const disk = watchedDisk(call => {
    if (hold && call.name === 'fsync') return new Promise(resolve => (release = resolve))
  })
  await withStore(
    async store => {
      await writeThree(store, 0)
      hold = true
      const done: string[] = []
      const first = writeThree(store, 1).then(() => done.push('first'))
      while (release === undefined) await new Promise(resolve => setImmediate(resolve))
      const seen = store.db.durable().then(() => done.push('seen'))
      const reading = store.db.tx(t => t.get('SELECT 1')).then(() => done.push('reading'))
      const second = writeThree(store, 2).then(() => done.push('second'))
      await new Promise(resolve => setTimeout(resolve, 20))
      assert.equal(done, [])
      hold = false
      release()
      await Promise.all([first, seen, reading, second])
      assert.equal(done, ['first', 'seen', 'reading', 'second'])
    },
    { disk },
  )
})

test('durability callbacks run in order, after their promise, and not after a rollback', () =>
  withStore(async store => {
    const order: string[] = []
    const write = (name: string, fails = false) =>
      store.db
        .tx(t => {
          t.run('INSERT INTO kernel_row VALUES (?, 0, NULL)', [order.length + store.status().transactions])
          store.db.onDurable(t, () => order.push(`${name} 1`))
          store.db.onDurable(t, () => order.push(`${name} 2`))
          assert.equal(order, [])
          if (fails) throw new Error(name)
        })
        .catch(() => order.push(`${name} rejected`))
    const all = [write('a'), write('b', true), write('c')]
    await Promise.all(all)
    await store.db.tx(t => store.db.onDurable(t, () => order.push('reading')))
    await store.db.durable()
    assert.equal(order, ['b rejected', 'a 1', 'a 2', 'c 1', 'c 2', 'reading'])
  }))

test('statements beyond the cache work with all their values', () =>
  withStore(async ({ db }) => {
    const sums = Array.from({ length: 1000 }, (_, i) => db.row(`SELECT ${i} + ?`, [1])?.[0])
    assert.equal(
      sums,
      Array.from({ length: 1000 }, (_, i) => i + 1),
    )
    assert.equal(db.row('SELECT 0 + ?', [5]), [5])
  }))

test('a checkpoint moves the log into the database and updates the figures', () =>
  withStore(async (store, folder) => {
    for (let id = 0; id < 50; id++) await writeThree(store, id, 'y'.repeat(2000))
    const before = store.status()
    assert.ok(before.walBytes > 0)
    await store.checkpoint()
    const after = store.status()
    assert.is(after.walBytes, 0)
    assert.ok(after.bytes > before.bytes)
    assert.is((await stat(path.join(folder, 'svc.db'))).size, after.bytes)
    assert.is((await stat(path.join(folder, 'svc.db-wal'))).size, 0)
    await writeThree(store, 50)
    assert.is(rowsById(store).size, 51)
  }))

test.run()
