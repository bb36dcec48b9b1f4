import { hash } from 'node:crypto'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Table } from '../../kernel/kit/table.js'
import { LEFT } from '../../kernel/without.js'
import { inTree } from '../../plugins/index.js'
import { openCatalog } from '../harness/catalog.js'
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

test('every table of the plugins has the columns of their migrations', async () => {
  const { named, found } = await tablesOf()
  assert.ok(found.length > 0)
  assert.equal(named.toSorted(), found.map(({ name }) => name).toSorted(), 'each is exported by its module')
  const store = await openCatalog(inTree)
  for (const { name, shape } of found) {
    const there = store.db
      .rows('SELECT name, type, "notnull" FROM pragma_table_info(?)', [name])
      .map(([column, type, notNull]) => ({ name: `${column}`, type: `${type}`, notNull: notNull === 1 }))
    const sorted = (columns: typeof shape) => columns.toSorted((a, b) => (a.name < b.name ? -1 : 1))
    assert.equal(sorted(shape), sorted(there), name)
  }
  await store.close()
})

test('a kernel without a plugin knows the migrations that the plugin inherits from the kernel', async () => {
  const inherited = inTree.flatMap(({ surface }) => surface.inherits ?? []).filter(({ stream }) => stream === 'kernel')
  assert.ok(inherited.length > 0)
  const hashes = inherited.flatMap(({ migrations }) => migrations.map(({ id, sql }) => [id, hash('sha256', sql)]))
  assert.equal(
    Object.entries(LEFT)
      .filter(([id]) => hashes.some(([one]) => one === id))
      .sort(),
    hashes.sort(),
  )
})

test.run()
