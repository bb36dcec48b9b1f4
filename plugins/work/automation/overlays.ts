import type { SqlValue, StoredRecord, Tx } from '../../../kernel/plugin.js'
import type { K } from './needs.js'

/** The `enabled` overlay of read-only definitions; column `job` holds the id of a job or trigger. */
export const triggerOverlayTable = `CREATE TABLE automation_trigger_overlay (
    job TEXT NOT NULL UNIQUE, enabled INTEGER NOT NULL, updated_at INTEGER NOT NULL
  ) STRICT;`

/** The `enabled` overlays of definitions from the configuration and packages. */
export class Overlays {
  /** All overlays, in memory: a delivery asks for that of its trigger, and changes are rare. */
  #known: ReadonlyMap<string, boolean> | undefined

  /** @param table of columns job, enabled and updated_at */
  constructor(
    private readonly kernel: K,
    private readonly table: 'automation_overlay' | 'automation_trigger_overlay',
    private readonly kind: string,
  ) {}

  /** Whether the definition is enabled, with its overlay applied. */
  enabled({ id, spec }: StoredRecord<{ readonly enabled: boolean }>, all = this.all()): boolean {
    return all.get(id) ?? spec.enabled
  }

  /** All overlays; there are few. */
  all(): ReadonlyMap<string, boolean> {
    this.#known ??= new Map(
      this.kernel.db
        .rows(`SELECT job, enabled FROM ${this.table}`)
        .map(([id, enabled]: SqlValue[]) => [String(id), enabled === 1]),
    )
    return this.#known
  }

  set(t: Tx, id: string, enabled: boolean): void {
    this.#forget()
    t.run(
      `INSERT INTO ${this.table} (job, enabled, updated_at) VALUES (?, ?, ?)
       ON CONFLICT (job) DO UPDATE SET enabled = excluded.enabled, updated_at = excluded.updated_at`,
      [id, enabled ? 1 : 0, this.kernel.clock.now()],
    )
  }

  remove(t: Tx, id: string): void {
    this.#forget()
    t.run(`DELETE FROM ${this.table} WHERE job = ?`, [id])
  }

  /** Again after the transaction, which is synchronous: what its own reads have kept may have been rolled back. */
  #forget(): void {
    this.#known = undefined
    queueMicrotask(() => {
      this.#known = undefined
    })
  }

  /** Removes overlays of deleted definitions; there are few. */
  removeOrphans(t: Tx): void {
    const orphans = new Set(this.all().keys())
    for (const { id } of this.kernel.records.getAll(this.kind, [...orphans])) orphans.delete(id)
    for (const id of orphans) this.remove(t, id)
  }
}
