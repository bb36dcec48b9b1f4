import type { Plugin } from '../contract/plugin.js'
import type { Inherited, Migration } from '../contract/storage.js'
import type { Store } from '../store/index.js'
import { tablePrefix } from '../store/statement-check.js'
import type { Slot } from './slots.js'

/** The tables of a plugin: its own, in its own stream, and those that it inherits. */
export interface PluginTables {
  /** Owner of its own stream; the prefix of its own tables comes from it. */
  readonly stream: string
  /** Absent for a plugin without tables. */
  readonly own?: readonly Migration[]
  readonly inherits: readonly Inherited[]
}

/**
 * A replacement gets the tables of its original, by the original's migrations, and keeps its own tables in a stream of its own:
 * when the original runs again, it finds no migration that it does not know.
 */
function tablesOf({ plugin, by, displaced }: Pick<Slot, 'plugin' | 'by' | 'displaced'>): PluginTables {
  const { name, surface } = plugin
  const { tables: own, inherits = [] } = surface
  if (by === undefined || !displaced) {
    // Nothing was displaced: the replacement is the only plugin of that name and brings all of its tables.
    return { stream: name, inherits, ...(own || by ? { own: own ?? [] } : {}) }
  }
  const theirs = displaced.surface.tables ?? []
  const isTheirs = ({ id, sql }: Migration) => theirs.some(other => other.id === id && other.sql === sql)
  return {
    stream: by,
    own: (own ?? []).filter(migration => !isTheirs(migration)),
    inherits: [
      { stream: name, prefixes: [tablePrefix(name)], migrations: theirs },
      ...(displaced.surface.inherits ?? []),
    ],
  }
}

/**
 * Applies the pending migrations of a plugin.
 * @throws StoreError `schema_ahead`, `migration_refused`; Error for a stream that cannot be inherited
 */
export function migrateTables(store: Pick<Store, 'migrate' | 'knows'>, slot: Slot): PluginTables {
  const tables = tablesOf(slot)
  if (!slot.displaced) checkInherited(store, slot.by ?? slot.plugin.name, tables.inherits)
  const { stream, own, inherits } = tables
  if (own || inherits.length > 0) store.migrate(stream, own ?? [], inherits)
  return tables
}

/**
 * Inherited tables must exist; that no other plugin owns them is checked as a claim. A migration that the stream never had would
 * make the home too new for the stream's owner.
 */
function checkInherited(store: Pick<Store, 'knows'>, name: string, inherits: readonly Inherited[]): void {
  for (const { stream, prefixes, migrations } of inherits) {
    const odd = migrations.find(migration => !store.knows(stream, migration))
    if (odd) throw new Error(`${name} cannot inherit migration ${odd.id} of ${stream}: ${stream} never had it`)
    if (prefixes.some(prefix => tablePrefix('kernel').startsWith(prefix)))
      throw new Error(`${name} cannot inherit the tables of the kernel`)
  }
}

/** The streams that the plugins of the program inherit. */
export const inheritedBy = (plugins: readonly Plugin[]): Inherited[] =>
  plugins.flatMap(({ surface }) => surface.inherits ?? [])
