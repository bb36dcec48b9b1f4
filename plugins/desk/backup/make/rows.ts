import { type Reads, turn } from '../../../../kernel/plugin.js'
import type { Manifest } from '../archive/manifest.js'

/** Row counts by table. One table is counted per turn of the event loop. */
export async function rowCounts(db: Reads): Promise<Manifest['tables']> {
  const counts: Record<string, number> = {}
  for (const name of tablesOf(db)) {
    counts[name] = Number(db.row(`SELECT count(*) FROM "${name.replaceAll('"', '""')}"`)?.[0] ?? 0)
    await turn()
  }
  return counts
}

export function tablesOf(db: Reads): string[] {
  const rows = db.rows("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name")
  return rows.map(([name]) => String(name))
}

/** All migrations applied to the database. */
export function migrationsOf(db: Reads): Manifest['migrations'] {
  const rows = db.rows('SELECT owner, id, hash FROM kernel_migration ORDER BY owner, id')
  return rows.map(([owner, id, hash]) => [String(owner), String(id), String(hash)])
}

/** The id of a home, with which its processes are marked; it does not depend on the path. */
export const homeIdOf = (db: Reads): string =>
  String(db.row("SELECT value FROM kernel_meta WHERE key = 'home_id'")?.[0] ?? '')
