import type { Db, Tx } from '../../../kernel/plugin.js'

/** The key by which runs are counted: kind of origin and scope of the task. */
export const runKinds = (origin: string, workspaceId: string): string =>
  `${origin}/${workspaceId === '' ? 'global' : 'workspace'}`
/** That key as a SQL expression. */
const RUN_KINDS = "origin_kind || CASE place WHEN '' THEN '/global' ELSE '/workspace' END"

/** The number of rows with a status and an immutable key. */
export interface Total {
  readonly status: string
  readonly of: string
  readonly count: number
}

/**
 * Counts the rows of a table by status. The table is counted once, on first use; after that, every status change updates the
 * counts, so that a view that is polled every second does not scan all tasks.
 */
export class Totals {
  #totals: Map<string, Total> | undefined

  constructor(
    private readonly db: Db,
    private readonly table: 'tasks_task' | 'tasks_run',
  ) {}

  /** Reports a status change; undefined: the row was inserted or deleted. Takes effect once it is durable. */
  moved(t: Tx, of: string, from: string | undefined, to: string | undefined): void {
    // Changes committed before the first count are part of it.
    if (this.#totals === undefined || from === to) return
    this.db.onDurable(t, () => {
      if (from !== undefined) this.#add(from, of, -1)
      if (to !== undefined) this.#add(to, of, 1)
    })
  }

  /** By status and scope, or by status and origin for runs; sorted by name. */
  all(): Total[] {
    const sums = new Map<string, Total>()
    for (const { status, of: kinds, count } of this.#counted().values()) {
      const [of = ''] = kinds.split('/')
      const key = `${status}/${of}`
      sums.set(key, { status, of, count: (sums.get(key)?.count ?? 0) + count })
    }
    const counted = [...sums].filter(([, { count }]) => count > 0)
    return counted.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, total]) => total)
  }

  /** By status, for one scope or for both. */
  byStatus(scope?: string): Map<string, number> {
    const counts = new Map<string, number>()
    for (const { status, of, count } of this.#counted().values())
      if (count > 0 && (scope === undefined || of.split('/').at(-1) === scope))
        counts.set(status, (counts.get(status) ?? 0) + count)
    return counts
  }

  #counted(): Map<string, Total> {
    if (this.#totals === undefined) {
      this.#totals = new Map()
      const kinds = this.table === 'tasks_run' ? RUN_KINDS : 'scope'
      const sql = `SELECT status, ${kinds}, count(*) FROM ${this.table} GROUP BY 1, 2`
      for (const [status, of, count] of this.db.rows(sql)) this.#add(String(status), String(of), Number(count))
    }
    return this.#totals
  }

  #add(status: string, of: string, more: number): void {
    const key = `${status}/${of}`
    this.#totals?.set(key, { status, of, count: (this.#totals.get(key)?.count ?? 0) + more })
  }
}
