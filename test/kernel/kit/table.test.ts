import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { column, matching, type RowOf, table } from '../../../kernel/kit/table.js'
import { Timestamp } from '../../../schemas/kernel/common.js'
import { tables } from './table-scene.js'

const { bytes, flag, integer, json, real, text, time } = column

const things = table('acme_things_thing', {
  seq: integer().generated(),
  name: text(),
  kind: text<'big' | 'small'>(),
  root_dir: text().as('rootDir'),
  weight: real().optional(),
  open: flag().as('isOpen'),
  tags: json<readonly string[]>(v.array(v.string())),
  seen_at: time().optional().as('seenAt'),
  note: text().nullable(),
  body: bytes().optional(),
})
type Thing = RowOf<typeof things>

const SQL = `CREATE TABLE acme_things_thing (seq INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL,
  root_dir TEXT NOT NULL UNIQUE, weight REAL, open INTEGER NOT NULL, tags TEXT NOT NULL, seen_at INTEGER, note TEXT, body BLOB) STRICT`

const small = { name: 'a', kind: 'small', rootDir: '/a', isOpen: false, tags: ['x'], note: null } as const
const full: Omit<Thing, 'seq'> = {
  ...{ name: 'b', kind: 'big', rootDir: '/b', isOpen: true, tags: ['x', 'y'], note: 'n' },
  ...{ weight: 1.5, seenAt: Date.UTC(2026, 0, 2), body: new Uint8Array([1, 2, 3]) },
}

async function scene() {
  const s = await tables([{ id: '001', sql: SQL }])
  await s.own.db.tx(t => {
    things.insert(t, small)
    things.insert(t, full)
  })
  return { ...s, db: s.own.db, tx: s.own.db.tx.bind(s.own.db) }
}

test('an inserted row is read back: absent, null, renamed, flags, JSON, bytes', async () => {
  const { db, close } = await scene()
  assert.equal(things.all(db, {}, 'ORDER BY seq'), [
    { seq: 1, ...small },
    { seq: 2, ...full },
  ])
  assert.equal(db.row('SELECT open, tags, seen_at FROM acme_things_thing WHERE seq = 2'), [1, '["x","y"]', full.seenAt])
  assert.equal(things.get(db, { name: 'b', isOpen: true }), { seq: 2, ...full })
  assert.is(things.get(db, { name: 'b', isOpen: false }), undefined)
  assert.is(things.get(db, { note: null })?.name, 'a', 'null is IS NULL')
  assert.is(things.get(db, { body: new Uint8Array([1, 2, 3]) })?.name, 'b')
  assert.equal(
    things.query(db, 'WHERE seq > ? ORDER BY seq DESC LIMIT +?', [0, 1]).map(({ name }) => name),
    ['b'],
  )
  const own = db.get(`SELECT 'b' AS more, ${things.columns} FROM acme_things_thing WHERE seq = 2`) ?? {}
  assert.equal(things.decode(own), { seq: 2, ...full })
  await close()
})

test('an update writes the named members; undefined and null are NULL', async () => {
  const { db, tx, close } = await scene()
  assert.is(await tx(t => things.update(t, { name: 'b' }, { isOpen: false, weight: undefined, note: null })), 1)
  const { weight: _, ...rest } = full
  assert.equal(things.get(db, { name: 'b' }), { seq: 2, ...rest, isOpen: false, note: null })
  assert.is(await tx(t => things.update(t, { kind: 'small' }, {})), 0)
  assert.is(await tx(t => things.update(t, {}, { kind: 'big' })), 2)
  assert.is(await tx(t => things.delete(t, { name: 'a' })), 1)
  await tx(t => things.replace(t, { ...small, rootDir: '/b' }))
  assert.equal(
    things.all(db, {}).map(({ name }) => name),
    ['a'],
    'in place of the one with that root',
  )
  await close()
})

test('a condition with an undefined value or an unknown member is refused', async () => {
  const { db, tx, close } = await scene()
  const wrong = (work: () => unknown, why: RegExp) =>
    assert.throws(work, (error: Error) => error instanceof TypeError && why.test(error.message))
  const nothing = { name: undefined } as unknown as { name: string }
  wrong(() => things.all(db, nothing), /acme_things_thing has no value for name/)
  await tx(t => {
    wrong(() => things.delete(t, nothing), /no value for name/)
    wrong(() => things.delete(t, { root_dir: '/a' } as never), /no column for "root_dir"/)
    wrong(() => things.update(t, {}, { 'name = 1, kind': 'x' } as never), /no column/)
  })
  assert.is(things.all(db).length, 2)
  assert.throws(() => table('acme_things; DROP', { a: text() }), /is not a valid name of a table or column/)
  assert.throws(() => table('acme_a', { a: text(), b: text().as('a') }), /two columns of acme_a have the same member/)
  await close()
})

test('an unreadable value is reported with its table and column', async () => {
  const { db, tx, close } = await scene()
  await tx(t => t.run(`UPDATE acme_things_thing SET tags = '[1]' WHERE seq = 1`))
  assert.throws(() => things.get(db, { seq: 1 }), /a row of acme_things_thing has a value in tags that cannot be read/)
  await tx(t => t.run(`UPDATE acme_things_thing SET tags = '[' WHERE seq = 1`))
  assert.throws(() => things.get(db, { seq: 1 }), /has a value in tags that cannot be read/)
  await close()
})

test('a statement has one text for all values', async () => {
  const { tx, close } = await scene()
  await tx(t => {
    const texts: string[] = []
    const spy = new Proxy(t, {
      get: (_, verb: 'run' | 'row') => (sql: string, params: readonly never[]) => {
        texts.push(sql)
        return t[verb](sql, params)
      },
    })
    for (const n of [1, 2, 3]) {
      things.insert(spy, { ...small, rootDir: `/${n}` })
      things.update(spy, { rootDir: `/${n}` }, { name: `${n}`, isOpen: n === 1 })
      things.get(spy, { rootDir: `/${n}` })
      things.delete(spy, { rootDir: `/${n}` })
    }
    assert.is(texts.length, 12)
    assert.is(new Set(texts).size, 4)
  })
  await close()
})

test('a reply has times as text, bytes as base64, and null or absence by its schema', async () => {
  const { db, close } = await scene()
  const Reply = v.object({
    name: v.string(),
    root_dir: v.string(),
    weight: v.optional(v.number()),
    open: v.boolean(),
    tags: v.array(v.string()),
    seen_at: v.nullable(Timestamp),
    note: v.optional(v.nullable(v.string())),
    body: v.optional(v.string()),
    kind: v.number(),
    other: v.optional(v.string()),
  })
  const wire = (seq: number) => things.wire(things.get(db, { seq }) as Thing, Reply, { kind: seq })
  const a = wire(1)
  assert.equal(a, { kind: 1, name: 'a', root_dir: '/a', open: false, tags: ['x'], seen_at: null })
  const b = wire(2)
  assert.equal(b, {
    ...{ kind: 2, name: 'b', root_dir: '/b', weight: 1.5, open: true, tags: ['x', 'y'] },
    ...{ seen_at: '2026-01-02T00:00:00.000Z', note: 'n', body: 'AQID' },
  })
  for (const reply of [a, b]) assert.equal(v.parse(Reply, reply), reply)
  const Wanting = v.object({ name: v.string(), seen_at: Timestamp })
  assert.throws(() => things.wire({ name: 'a' }, Wanting), /acme_things_thing.seen_at has no value/)
  // @ts-expect-error: `kind` is a text in the table and a number in the reply
  assert.is(things.wire(things.get(db, { seq: 1 }) as Thing, Reply).kind, 'small')
  await close()
})

test('conditions apply when all of their parameters have a value; null is one', () => {
  assert.equal(matching(['a = ?', undefined], ['b IN (?, ?)', 1, undefined]), { sql: 'true', params: [] })
  assert.equal(matching(['a = ?', 1], ['b = ?', undefined], ['c IS NULL'], ['(d, e) < (?, ?)', 'x', null]), {
    sql: 'a = ? AND c IS NULL AND (d, e) < (?, ?)',
    params: [1, 'x', null],
  })
})

test.run()
