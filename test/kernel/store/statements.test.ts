import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Db } from '../../../kernel/contract/storage.js'
import { StoreError } from '../../../kernel/store/error.js'
import { codeOf, inFolder, openAt, withStore } from './harness.js'

const migration = {
  id: 'tables',
  sql: `CREATE TABLE shop_item (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, n INTEGER);
    CREATE TABLE shop_part (id INTEGER PRIMARY KEY, item INTEGER REFERENCES shop_item (id) ON DELETE CASCADE);
    CREATE TABLE shop_strict (id INTEGER PRIMARY KEY ON CONFLICT ROLLBACK);
    CREATE INDEX shop_item_n ON shop_item (n)`,
}
const foreign = {
  id: 'tables',
  sql: 'CREATE TABLE acme_x (id INTEGER PRIMARY KEY, n INTEGER)',
}

/** A database with tables of two owners, bound to the first. */
const withShop = (use: (db: Db, kernel: Db) => Promise<void>) =>
  withStore(async store => {
    store.migrate('shop', [migration])
    store.migrate('acme', [foreign])
    await use(store.db.bind({ name: 'shop', tables: 'shop' }), store.db)
  })

test('an owner reads everything and writes its own tables', () =>
  withShop(async db => {
    await db.tx(t => {
      assert.is(t.run("INSERT INTO shop_item (name, n) VALUES ('a', 1), ('b', 2)").changes, 2)
      t.run("INSERT INTO shop_item (name) VALUES ('a') ON CONFLICT (name) DO UPDATE SET n = n + 1")
      t.run('REPLACE INTO shop_part VALUES (1, 1)')
      t.run('-- with a comment\n UPDATE shop_item SET n = (SELECT count(*) FROM acme_x) WHERE id = 2; -- and one more')
      assert.equal(t.get("INSERT INTO shop_item (name) VALUES ('c') RETURNING id, name"), { id: 4, name: 'c' })
      assert.is(
        t.run('WITH gone AS (SELECT 4 AS id) DELETE FROM shop_item WHERE id IN (SELECT id FROM gone)').changes,
        1,
      )
      assert.is(t.run('DELETE FROM shop_part').changes, 1)
      t.run("INSERT INTO shop_item (id, name) VALUES (9, 'i')")
      t.run('INSERT INTO shop_part VALUES (2, 9)')
      t.run('DELETE FROM shop_item WHERE id = 9')
      assert.equal(t.rows('SELECT * FROM shop_part'), [])
    })
    assert.equal(db.rows('SELECT name, n FROM shop_item ORDER BY id'), [
      ['a', 2],
      ['b', 0],
    ])
    assert.equal(db.rows('SELECT value FROM json_each(?)', ['[1,2]']), [[1], [2]])
    assert.equal(db.rows('VALUES (1)'), [[1]])
  }))

test('any other statement is refused with owner and table, and changes nothing', () =>
  withShop(async (db, kernel) => {
    await kernel.tx(t => t.run('INSERT INTO acme_x VALUES (1, 1)'))
    const refused = [
      'INSERT INTO acme_x VALUES (2, 2)',
      'UPDATE acme_x SET n = 2',
      'DELETE FROM acme_x',
      'DELETE FROM acme_x WHERE id = 1',
      'REPLACE INTO kernel_migration VALUES (1, 2, 3, 4)',
      'WITH x AS (SELECT 1) DELETE FROM acme_x',
      'DELETE FROM sqlite_sequence',
      'INSERT OR ROLLBACK INTO shop_item (id) VALUES (1)',
      'INSERT INTO shop_strict VALUES (1)',
      'PRAGMA foreign_keys = OFF',
      'EXPLAIN PRAGMA foreign_keys = OFF',
      '/* c */ PRAGMA journal_mode = DELETE',
      "ATTACH 'x' AS y",
      'BEGIN',
      'COMMIT',
      'ROLLBACK',
      'SAVEPOINT s',
      'VACUUM',
      'ANALYZE',
      'REINDEX',
      'CREATE TABLE shop_z (a)',
      'CREATE TEMP TABLE shop_z (a)',
      'DROP TABLE shop_part',
      'ALTER TABLE shop_part ADD b',
      'SELECT 1; SELECT 2',
      'SELECT 1; PRAGMA foreign_keys = OFF',
      '',
      '; SELECT 1',
    ]
    for (const sql of refused) {
      const code = await codeOf(() => db.tx(t => t.run(sql)))
      assert.is(code, 'statement_refused', sql)
    }
    const error = await db.tx(t => t.run('UPDATE acme_x SET n = 2')).catch(thrown => thrown)
    assert.instance(error, StoreError)
    assert.match(error.message, /shop may write only tables named shop_…, not acme_x/)
    assert.equal(kernel.rows('SELECT * FROM acme_x'), [[1, 1]])
    assert.equal(kernel.rows('SELECT * FROM pragma_foreign_keys'), [[1]])
    assert.equal(kernel.rows('SELECT * FROM pragma_journal_mode'), [['wal']])
    for (const sql of ['INSERT INTO nowhere VALUES (1)', 'SELECT 1 FROM nowhere', 'SELECT 1 FROM'])
      assert.is(await codeOf(() => db.tx(t => t.run(sql))), 'sql_failed', sql)
    assert.equal(db.rows("SELECT 'a;b'; -- one"), [['a;b']])
  }))

test('a statement allowed to one owner is refused to another', () =>
  withShop(async (db, kernel) => {
    const sql = 'INSERT INTO acme_x (n) VALUES (1)'
    const acme = kernel.bind({ name: 'acme', tables: 'acme' })
    await acme.tx(t => t.run(sql))
    assert.is(await codeOf(() => db.tx(t => t.run(sql))), 'statement_refused')
    await kernel.tx(t => t.run(sql))
    assert.equal(kernel.row('SELECT count(*) FROM acme_x'), [2])
    assert.is(await codeOf(() => db.bind({ name: 'acme', tables: 'acme' })), 'bind_refused')
  }))

test('a service takes part in the transaction of another owner with its own rights', () =>
  withShop(async (db, kernel) => {
    const acme = kernel.bind({ name: 'acme', tables: 'acme' })
    const order: string[] = []
    await db.tx(t => {
      t.run("INSERT INTO shop_item (name) VALUES ('a')")
      acme.within(t).run('INSERT INTO acme_x (n) VALUES (1)')
      acme.onDurable(t, () => order.push('durable'))
    })
    assert.equal(order, ['durable'])
    const failing = db.tx(t => {
      acme.within(t).run('INSERT INTO acme_x (n) VALUES (2)')
      acme.within(t).run("INSERT INTO shop_item (name) VALUES ('b')")
    })
    assert.is(await codeOf(() => failing), 'statement_refused')
    assert.equal(kernel.rows('SELECT n FROM acme_x'), [[1]])
  }))

test('the longest of two similar prefixes owns a table, also after a restart', () =>
  inFolder(async folder => {
    const inner = [{ id: '1', sql: 'CREATE TABLE a_b_x (n)' }]
    const outer = [{ id: '1', sql: 'CREATE TABLE a_y (n)' }]
    for (const start of [1, 2]) {
      const store = await openAt(folder)
      if (start === 1) {
        store.migrate('a', outer)
        store.migrate('a-b', inner)
        const theirs = { id: '2', sql: 'CREATE TABLE a_b_z (n)' }
        assert.is(await codeOf(() => store.migrate('a', [...outer, theirs])), 'migration_refused')
        // Another spelling of a name that is taken, and a name that would take over a table.
        assert.is(await codeOf(() => store.migrate('a.b', inner)), 'migration_refused')
        assert.is(await codeOf(() => store.migrate('a-y', [])), undefined)
        store.migrate('c', [{ id: '1', sql: 'CREATE TABLE c_d_x (n)' }])
        assert.is(
          await codeOf(() => store.migrate('c.d', [{ id: '1', sql: 'CREATE TABLE c_d_y (n)' }])),
          'migration_refused',
        )
      }
      const a = store.db.bind({ name: 'a', tables: 'a' })
      const ab = store.db.bind({ name: 'a-b', tables: 'a-b' })
      await a.tx(t => t.run('INSERT INTO a_y VALUES (1)'))
      await ab.tx(t => t.run('INSERT INTO a_b_x VALUES (1)'))
      assert.is(await codeOf(() => a.tx(t => t.run('INSERT INTO a_b_x VALUES (2)'))), 'statement_refused')
      assert.is(await codeOf(() => ab.tx(t => t.run('INSERT INTO a_y VALUES (2)'))), 'statement_refused')
      await store.close()
    }
  }))

test('the prefix replaces dots and hyphens with underscores', () =>
  withStore(async store => {
    store.migrate('acme.night-shift', [{ id: '1', sql: 'CREATE TABLE acme_night_shift_x (a)' }])
    const db = store.db.bind({ name: 'acme.night-shift', tables: 'acme.night-shift' })
    await db.tx(t => t.run('INSERT INTO acme_night_shift_x VALUES (1)'))
    assert.equal(db.rows('SELECT a FROM acme_night_shift_x'), [[1]])
  }))

test('a parameter behind an equals sign finds the same rows; quoted text and comments are unchanged', () =>
  withShop(async db => {
    await db.tx(t => {
      t.run("INSERT INTO shop_item (name, n) VALUES ('= ?', 1), ('b', 2), ('3', 3)")
      t.run('UPDATE shop_item SET name = ?2, n =?1 WHERE id =?3', [4, 'c', 2])
      t.run('INSERT INTO shop_part SELECT ?, id FROM shop_item WHERE n = ?', [1, 4])
      assert.is(t.run("UPDATE shop_item SET n = 9 WHERE name = '= ?' AND n = ? -- it's n = ?", [1]).changes, 1)
    })
    const rows = (where: string, ...params: (string | number)[]) =>
      db.rows(`SELECT name, n FROM shop_item WHERE ${where} ORDER BY n, id`, params)
    assert.equal(rows("name = '= ?'"), [['= ?', 9]])
    assert.equal(rows('name = ?', '= ?'), [['= ?', 9]])
    assert.equal(rows("/* it's n = ? */ n = ? OR name = ?", 9, 'c'), [
      ['c', 4],
      ['= ?', 9],
    ])
    // As without the plus, a column makes a value what its type is.
    assert.equal(rows('name = ?', 3), [['3', 3]])
    assert.equal(rows('n = ?', '3'), [['3', 3]])
    assert.equal(rows('n <= ? AND n >= ? AND n != ?', 4, 3, 3), [['c', 4]])
    assert.equal(db.all(`SELECT n AS "n = ?", '''= ?' AS text FROM shop_item WHERE id = ?`, [3]), [
      { 'n = ?': 3, text: "'= ?" },
    ])
    assert.equal(db.rows('SELECT i.n FROM shop_item i JOIN shop_part p ON p.item = i.id WHERE p.id = ?', [1]), [[4]])
  }))

test.run()
