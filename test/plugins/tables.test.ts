import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { inheritedBy, migrateTables } from '../../kernel/host/tables.js'
import { Table } from '../../kernel/kit/table.js'
import { RecordStore } from '../../kernel/records/store.js'
import { openStore } from '../../kernel/store/index.js'
import { inTree } from '../../plugins/index.js'
import { temporaryFolder } from '../harness/kernel.js'
import { sourcesBelow } from '../harness/source.js'

const root = path.join(import.meta.dirname, '../..')

/** Every `table(…)` of the plugins, found by the text of their sources. */
async function tablesOf(): Promise<{ readonly named: readonly string[]; readonly found: readonly Table<never>[] }> {
  const sources = sourcesBelow(root, 'plugins').filter(({ code }) => /(?<![.\w])table\(/.test(code))
  const named = sources.flatMap(({ text }) =>
    [...text.matchAll(/(?<![.\w])table\(\s*'(\w+)'/g)].map(([, name = '']) => name),
  )
  const modules = await Promise.all(
    sources.map(({ file }) => import(`../../plugins/${file.slice('plugins/'.length, -'.ts'.length)}.ts`)),
  )
  const found = modules.flatMap(module => Object.values(module).filter(value => value instanceof Table))
  return { named, found: found as Table<never>[] }
}

test('every table of the plugins has the columns that their migrations make', async () => {
  const { named, found } = await tablesOf()
  assert.ok(found.length > 0)
  assert.equal(named.toSorted(), found.map(({ name }) => name).toSorted(), 'each is exported by its module')
  const store = await openStore({ path: path.join(await temporaryFolder('tables'), 'svc.db'), now: Date.now })
  store.share(inheritedBy(inTree))
  store.migrate('kernel', RecordStore.migrations)
  for (const plugin of inTree) migrateTables(store, { plugin } as Parameters<typeof migrateTables>[1])
  for (const { name, shape } of found) {
    const there = store.db
      .rows('SELECT name, type, "notnull" FROM pragma_table_info(?)', [name])
      .map(([column, type, notNull]) => ({ name: `${column}`, type: `${type}`, notNull: notNull === 1 }))
    const sorted = (columns: typeof shape) => columns.toSorted((a, b) => (a.name < b.name ? -1 : 1))
    assert.equal(sorted(shape), sorted(there), name)
  }
  await store.close()
})

test.run()
