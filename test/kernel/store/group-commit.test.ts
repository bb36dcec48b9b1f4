import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Core, DbHandle } from '../../../kernel/store/db.js'
import { loadEngine } from '../../../kernel/store/engine.js'
import { Mirror, type MirrorDisk } from '../../../kernel/store/mirror.js'
import { Note } from '../../../kernel/store/note.js'
import { recover, seedImage } from '../../../kernel/store/recover.js'
import { codeOf, inFolder, openAt, rowsById, withStore, writeThree } from './harness.js'

const COUNT = 'SELECT count(*) FROM kernel_row'

test('a transaction that throws in a shared commit leaves nothing, the others everything', () =>
  inFolder(async folder => {
    const store = await openAt(folder)
    const failing = new Set([0, 3, 4, 9])
    const results = await Promise.allSettled(
      Array.from({ length: 10 }, (_, id) =>
        store.db.tx(t => {
          for (const part of [0, 1, 2]) t.run('INSERT INTO kernel_row (id, part) VALUES (?, ?)', [id, part])
          if (failing.has(id)) throw new Error(`no ${id}`)
          // What an earlier one of the same commit wrote is seen, what one wrote that threw is not.
          return t.row(COUNT)?.[0]
        }),
      ),
    )
    assert.equal(
      results.map(result => (result.status === 'fulfilled' ? result.value : result.reason.message)),
      ['no 0', 3, 6, 'no 3', 'no 4', 9, 12, 15, 18, 'no 9'],
    )
    await store.close()
    const again = await openAt(folder)
    assert.equal(
      [...rowsById(again)],
      [1, 2, 5, 6, 7, 8].map(id => [id, 3]),
    )
    await again.close()
  }))

test('a transaction that breaks a constraint half way leaves nothing in the shared commit', () =>
  withStore(async store => {
    const [before, broken, after] = await Promise.all([
      codeOf(() => writeThree(store, 1)),
      codeOf(() => store.db.tx(t => t.run("INSERT INTO kernel_row VALUES (2, 0, 'a'), (1, 0, 'twice')"))),
      codeOf(() => writeThree(store, 3)),
    ])
    assert.equal([before, broken, after], [undefined, 'constraint_failed', undefined])
    assert.equal(
      [...rowsById(store)],
      [
        [1, 3],
        [3, 3],
      ],
    )
  }))

test('transactions of one turn share one sync, and durable() waits for open ones', () =>
  withStore(async store => {
    await writeThree(store, 0)
    const { syncs, transactions } = store.status()
    const settled: string[] = []
    const writes = [1, 2, 3].map(id => writeThree(store, id).then(() => settled.push(`write ${id}`)))
    await store.db.durable().then(() => settled.push('durable'))
    await Promise.all(writes)
    assert.equal(settled, ['write 1', 'write 2', 'write 3', 'durable'])
    assert.is(store.status().transactions - transactions, 3)
    assert.is(store.status().syncs - syncs, 1)
  }))

test('the number of transactions tells whether a row may have changed', () =>
  withStore(async store => {
    const db = store.db.bind({ name: 'other', tables: 'other' })
    const before = db.transactions
    store.db.rows('SELECT id FROM kernel_row')
    await db.durable()
    assert.is(db.transactions, before)
    await writeThree(store, 0)
    assert.ok(db.transactions > before, 'also one of another owner')
    const after = db.transactions
    store.migrate('late', [{ id: '1', sql: 'CREATE TABLE late_row (id INTEGER)' }])
    assert.ok(db.transactions > after)
  }))

test('a checkpoint and a migration in the same turn include the open commit', () =>
  inFolder(async folder => {
    const store = await openAt(folder)
    const written = writeThree(store, 1)
    store.migrate('late', [{ id: '1', sql: 'CREATE TABLE late_row (id INTEGER)' }])
    const after = store.db.tx(t => t.run('INSERT INTO kernel_row (id, part) VALUES (2, 0)'))
    await store.checkpoint()
    assert.is(store.status().walBytes, 0)
    await Promise.all([written, after])
    await store.close()
    const again = await openAt(folder)
    assert.equal(
      [...rowsById(again)],
      [
        [1, 3],
        [2, 1],
      ],
    )
    await again.close()
  }))

test('a deferred foreign key is refused because the commit is shared', () =>
  withStore(async store => {
    store.migrate('child', [
      {
        id: '1',
        sql: `CREATE TABLE child_parent (id INTEGER PRIMARY KEY);
          CREATE TABLE child_other (id INTEGER PRIMARY KEY);
          CREATE TABLE child_late (parent INTEGER REFERENCES child_other (id) DEFERRABLE INITIALLY DEFERRED);
          CREATE TABLE child_row (parent INTEGER REFERENCES child_parent (id))`,
      },
    ])
    const db = store.db.bind({ name: 'child', tables: 'child' })
    assert.is(await codeOf(() => db.tx(t => t.run('INSERT INTO child_late VALUES (1)'))), 'statement_refused')
    assert.is(await codeOf(() => db.tx(t => t.run('INSERT INTO child_row VALUES (1)'))), 'constraint_failed')
    await db.tx(t => {
      t.run('INSERT INTO child_parent VALUES (1)')
      t.run('INSERT INTO child_row VALUES (1)')
    })
  }))

test('when SQLite aborts the shared commit, none of it is acknowledged, and the store ends', async () => {
  const engine = await loadEngine()
  const image = seedImage(engine)
  const db = recover(engine, { image, wal: new Uint8Array(0) })
  const disk: MirrorDisk = {
    pwrite: (_handle, bytes) => bytes.length,
    truncate: () => {},
    fsync: async () => {},
    stat: () => ({ size: 0, links: 1 }),
  }
  const mirror = new Mirror(disk, { main: 0, wal: 1, mark: 2 }, { main: image.length, wal: 0 }, new Note(disk, 2))
  engine.watchers.set(db.filename, mirror)
  db.run('CREATE TABLE row (id INTEGER)')
  const core = new Core(db, mirror)
  const handle = new DbHandle(core, undefined)
  const first = codeOf(() => handle.tx(t => t.run('INSERT INTO row VALUES (1)')))
  const second = handle.tx(t => {
    t.run('INSERT INTO row VALUES (2)')
    // As SQLite does by itself when it has no memory left.
    db.run('ROLLBACK')
    throw new Error('out of memory')
  })
  assert.match(String(await second.catch(error => error)), 'out of memory')
  assert.is(await first, 'store_failed')
  assert.is(await codeOf(() => handle.tx(() => 1)), 'store_failed')
  db.close()
})

test.run()
