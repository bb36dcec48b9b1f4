import { createHash } from 'node:crypto'
import { RecordStore } from '../../kernel/records/store.js'
import { LEFT } from '../../kernel/without.js'

/** SHA-256 of all current and former migrations of this program: a database with another one is from a later version. */
export async function knownMigrations(): Promise<ReadonlySet<string>> {
  const { inTree } = await import('../../plugins/index.js')
  const own = inTree.flatMap(({ surface: { tables = [], inherits = [] } }) => [
    ...tables,
    ...inherits.flatMap(({ migrations }) => migrations),
  ])
  const texts = [...RecordStore.migrations, ...own].map(({ sql }) => createHash('sha256').update(sql).digest('hex'))
  return new Set([...texts, ...Object.values(LEFT)])
}
