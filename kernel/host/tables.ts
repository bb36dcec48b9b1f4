import type { Plugin } from '../contract/plugin.js'
import type { Inherited, Migration } from '../contract/storage.js'
import type { Store } from '../store/index.js'
import { tablePrefix } from '../store/statement-check.js'
import type { Slot } from './slots.js'

/** The tables of a plugin: its own, in its own stream, and those that it inherits. */
export interface PluginTables {
  /** Owner of its own stream, and what its own tables are named after. */
  readonly stream: string
  /** Absent for a plugin that never had any. */
  readonly own?: readonly Migration[]
  readonly inherits: readonly Inherited[]
}

/**
 * One in the place of another has the tables of that one, by its migrations and not by those it may bring along, and keeps its
 * own apart: once it has given the place back, the other one finds nothing that it does not know.
 */
function tablesOf({ plugin, by, displaced }: Pick<Slot, 'plugin' | 'by' | 'displaced'>): PluginTables {
  const { name, surface } = plugin
  const { tables: own, inherits = [] } = surface
  if (by === undefined || !displaced) {
    // With nobody displaced it is the only one who has that place, and brings all of its tables.
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
 * Brings the tables of a plugin up to date.
 * @throws StoreError `schema_ahead`, `migration_refused`; Error when it inherits what cannot be inherited
 */
export function migrateTables(store: Pick<Store, 'migrate' | 'knows'>, slot: Slot): PluginTables {
  const tables = tablesOf(slot)
  if (!slot.displaced) checkInherited(store, slot.by ?? slot.plugin.name, tables.inherits)
  const { stream, own, inherits } = tables
  if (own || inherits.length > 0) store.migrate(stream, own ?? [], inherits)
  return tables
}

/**
 * An heir goes on with tables that are there; that nobody else has them is a claim of its surface. A migration of its own in the
 * stream of another would make the home too new for that one.
 */
function checkInherited(store: Pick<Store, 'knows'>, name: string, inherits: readonly Inherited[]): void {
  for (const { stream, prefixes, migrations } of inherits) {
    const odd = migrations.find(migration => !store.knows(stream, migration))
    if (odd) throw new Error(`${name} cannot inherit migration ${odd.id} of ${stream}: ${stream} never had it`)
    if (prefixes.some(prefix => tablePrefix('kernel').startsWith(prefix)))
      throw new Error(`${name} cannot inherit the tables of the kernel`)
  }
}

/** What plugins that are there from the start inherit. */
export const inheritedBy = (plugins: readonly Plugin[]): Inherited[] =>
  plugins.flatMap(({ surface }) => surface.inherits ?? [])
