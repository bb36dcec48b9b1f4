import type { SqlValue, StoredRecord, Tx } from '../../../kernel/plugin.js'
import type { K } from './needs.js'

/** The `enabled` overlay of read-only definitions; column `job` holds the id of a job or trigger. */
export const triggerOverlayTable = `CREATE TABLE automation_trigger_overlay (
    job TEXT NOT NULL UNIQUE, enabled INTEGER NOT NULL, updated_at INTEGER NOT NULL
  ) STRICT;`

/** The `enabled` overlays of definitions from the configuration and packages. */
export class Overlays {
  /** @param table of columns job, enabled and updated_at */
  constructor(
    private readonly kernel: K,
    private readonly table: 'automation_overlay' | 'automation_trigger_overlay',
    private readonly kind: string,
  ) {}

  /** Whether the definition is enabled, with its overlay applied. Pass `all` to avoid one query per definition. */
  enabled({ id, spec }: StoredRecord<{ readonly enabled: boolean }>, all?: ReadonlyMap<string, boolean>): boolean {
    if (all) return all.get(id) ?? spec.enabled
    const row = this.kernel.db.row(`SELECT enabled FROM ${this.table} WHERE job = ?`, [id])
    return row ? row[0] === 1 : spec.enabled
  }

  /** All overlays; there are few. */
  all(): ReadonlyMap<string, boolean> {
    const rows = this.kernel.db.rows(`SELECT job, enabled FROM ${this.table}`)
    return new Map(rows.map(([id, enabled]: SqlValue[]) => [String(id), enabled === 1]))
  }

  set(t: Tx, id: string, enabled: boolean): void {
    t.run(
      `INSERT INTO ${this.table} (job, enabled, updated_at) VALUES (?, ?, ?)
       ON CONFLICT (job) DO UPDATE SET enabled = excluded.enabled, updated_at = excluded.updated_at`,
      [id, enabled ? 1 : 0, this.kernel.clock.now()],
    )
  }

  remove(t: Tx, id: string): void {
    t.run(`DELETE FROM ${this.table} WHERE job = ?`, [id])
  }

  /** Removes overlays of deleted definitions; there are few. */
  removeOrphans(t: Tx): void {
    const orphans = new Set(this.all().keys())
    for (const { id } of this.kernel.records.getAll(this.kind, [...orphans])) orphans.delete(id)
    for (const id of orphans) this.remove(t, id)
  }
}
