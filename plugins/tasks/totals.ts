import type { Db, Tx } from '../../kernel/plugin.js'

/** How many rows have a status and something else that never changes. */
export interface Total {
  readonly status: string
  readonly of: string
  readonly count: number
}

/**
 * Counts the rows of a table by status. They are counted once in the table, at the first question, and from then on as they change:
 * a view that is asked for every second does not walk through all tasks that ever were.
 */
export class Totals {
  #totals: Map<string, Total> | undefined

  constructor(
    private readonly db: Db,
    private readonly table: 'tasks_task' | 'tasks_run',
    private readonly column: 'scope' | 'origin_kind',
  ) {}

  /** A row has changed from one status to another one; undefined: it is new, or gone. Counts when that is on the disk. */
  moved(t: Tx, of: string, from: string | undefined, to: string | undefined): void {
    // What was committed before the rows are counted is counted with them.
    if (this.#totals === undefined || from === to) return
    this.db.onDurable(t, () => {
      if (from !== undefined) this.#add(from, of, -1)
      if (to !== undefined) this.#add(to, of, 1)
    })
  }

  /** In the order of their names. */
  all(): Total[] {
    if (this.#totals === undefined) {
      this.#totals = new Map()
      const sql = `SELECT status, ${this.column}, count(*) FROM ${this.table} GROUP BY status, ${this.column}`
      for (const [status, of, count] of this.db.rows(sql)) this.#add(String(status), String(of), Number(count))
    }
    const counted = [...this.#totals].filter(([, { count }]) => count > 0)
    return counted.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, total]) => total)
  }

  byStatus(): Map<string, number> {
    const counts = new Map<string, number>()
    for (const { status, count } of this.all()) counts.set(status, (counts.get(status) ?? 0) + count)
    return counts
  }

  #add(status: string, of: string, more: number): void {
    const key = `${status}/${of}`
    this.#totals?.set(key, { status, of, count: (this.#totals.get(key)?.count ?? 0) + more })
  }
}
