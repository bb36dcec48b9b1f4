import { pause } from '../../../kernel/kit/backoff.js'
import type { BoundOwned } from '../../../kernel/platform.js'
import { type Clock, type Db, type Ids, type Scope, turn } from '../../../kernel/plugin.js'
import { cursors, last, prune, tombstones } from './tables.js'

/** Rows deleted in one transaction, and tombstones read at once. */
const CHUNK = 1000

/** Dependencies that the streams of a kernel share. */
export interface SweepWorld {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly report: (owner: string, error: unknown) => void
  /** The existence check for things of a kind; undefined while their plugin does not run. */
  readonly has: (kind: string) => ((id: string) => boolean) | undefined
  /** Removes the previous version's cursor of a plugin; resolves to whether it had one. */
  readonly retire: (owner: string) => Promise<boolean>
}

/** Deletes a plugin's rows of ended things. */
export class Stream {
  readonly #kinds: ReadonlySet<string>
  readonly #end = new AbortController()
  /** Resolves when the current run has ended. */
  readonly end: () => Promise<void>
  #running: Promise<void> | undefined
  #again = false
  #isFresh = true
  /** Rows of a kind were not checked yet, because the plugin of their things does not run. */
  #waits = false

  constructor(
    private readonly world: SweepWorld,
    readonly owner: string,
    private readonly scope: Scope,
    private readonly entries: readonly BoundOwned[],
  ) {
    this.#kinds = new Set(entries.map(({ entry }) => entry.by.id))
    this.end = scope.defer('owned rows', async () => {
      this.#end.abort()
      await this.#running
    })
  }

  get isOver(): boolean {
    return this.#end.signal.aborted || this.scope.signal.aborted
  }

  /** Plugins have started. @param again cursors were removed */
  started(again: boolean): void {
    if (this.#isFresh || this.#waits || again) this.#wake()
  }

  /** There is a new tombstone of this kind. */
  onTombstone(kind: string): void {
    if (this.#kinds.has(kind)) this.#wake()
  }

  #wake(): void {
    this.#again = true
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
    })
  }

  async #run(): Promise<void> {
    const { report } = this.world
    // The sweep must not delay the start.
    await turn()
    for (let failures = 0; this.#again && !this.isOver; ) {
      this.#again = false
      const errors = await this.#pass().catch(error => [error])
      if (errors.length === 0 || this.isOver) continue
      failures++
      // Reports the 1st, 2nd, 4th, 8th … failure: one that lasts for days must not crowd out other faults.
      if (Number.isInteger(Math.log2(failures))) for (const error of errors) report(this.owner, error)
      await pause(this.world, failures, this.#end.signal)
      this.#again = true
    }
  }

  /** Resolves to the errors; the cursor of a kind stays before its first failure. */
  async #pass(): Promise<unknown[]> {
    const { db, retire } = this.world
    const stream = this.owner
    // The previous version writes no tombstones; if it has run since, all rows are checked again.
    if (this.#isFresh && (await retire(stream))) await db.tx(t => cursors.delete(t, { stream }))
    this.#isFresh = false
    this.#waits = false
    const reached = new Map(cursors.all(db, { stream }).map(({ kind, seq }) => [kind, seq]))
    for (const kind of reached.keys()) if (!this.#kinds.has(kind)) await db.tx(t => cursors.delete(t, { stream, kind }))
    const failed: unknown[] = []
    for (const kind of this.#kinds) {
      const from = reached.get(kind)
      failed.push(...(from === undefined ? await this.#first(kind) : await this.#follow(kind, from)))
    }
    return failed
  }

  /** Deletes the rows of all missing things: before there was a cursor, ends were not recorded. */
  async #first(kind: string): Promise<unknown[]> {
    const has = this.world.has(kind)
    if (!has) {
      this.#waits = true
      return []
    }
    const seq = last(this.world.db)
    const failed: unknown[] = []
    for (const id of await this.#absent(kind, has)) await this.#sweep(kind, id).catch(error => failed.push(error))
    if (failed.length === 0 && !this.isOver) await this.#reach(kind, seq)
    return failed
  }

  /** Ids of missing things in the rows; an empty id means none. */
  async #absent(kind: string, has: (id: string) => boolean): Promise<ReadonlySet<string>> {
    const absent = new Set<string>()
    for (const { entry, db } of this.entries) {
      if (entry.by.id !== kind || !('table' in entry)) continue
      const { table, column, none = '' } = entry
      for (let after = -1, isMore = true; isMore && !this.isOver; ) {
        const sql = `SELECT rowid, ${column} FROM ${table} WHERE rowid > ? ORDER BY rowid LIMIT ${CHUNK}`
        const rows = db.rows(sql, [after])
        for (const [, id] of rows) if (id !== null && id !== '' && id !== none && !has(`${id}`)) absent.add(`${id}`)
        after = Number(rows.at(-1)?.[0])
        isMore = rows.length === CHUNK
        if (isMore) await turn()
      }
    }
    return absent
  }

  async #follow(kind: string, from: number): Promise<unknown[]> {
    const failed: unknown[] = []
    let reached = from
    for (let at = from, isMore = true; isMore && !this.isOver; ) {
      const page = tombstones.query(this.world.db, `WHERE kind = ? AND seq > ? ORDER BY seq LIMIT ${CHUNK}`, [kind, at])
      for (const { seq, id } of page) {
        // An id that is in use again keeps its rows.
        if (!this.world.has(kind)?.(id)) await this.#sweep(kind, id).catch(error => failed.push(error))
        if (this.isOver) break
        if (failed.length === 0) reached = seq
        at = seq
      }
      isMore = page.length === CHUNK
    }
    if (reached > from) await this.#reach(kind, reached)
    return failed
  }

  #reach(kind: string, seq: number): Promise<unknown> {
    return this.world.db.tx(t => {
      cursors.replace(t, { stream: this.owner, kind, seq })
      prune(t, kind)
    })
  }

  /**
   * Deletes the rows of a thing, with the resources behind them. If rows fail, the first error is thrown after the others are
   * deleted.
   */
  async #sweep(kind: string, id: string): Promise<void> {
    let failure: { readonly error: unknown } | undefined
    for (const { entry, self: service, db } of this.entries) {
      if (entry.by.id !== kind || this.isOver) continue
      if ('ended' in entry) {
        // Remaining resources may depend on those of the rows.
        if (!failure) await entry.ended(service, id)
        continue
      }
      const { table, column, forget } = entry
      for (let after = -1, isMore = true; isMore && !this.isOver; ) {
        const sql = `SELECT rowid FROM ${table} WHERE ${column} = ? AND rowid > ? ORDER BY rowid LIMIT ${CHUNK}`
        const rowids = db.rows(sql, [id, after]).map(([rowid]) => Number(rowid))
        after = rowids.at(-1) ?? after
        isMore = rowids.length === CHUNK
        const done: number[] = forget ? [] : rowids
        for (const rowid of forget ? rowids : []) {
          const row = db.get(`SELECT * FROM ${table} WHERE rowid = ? AND ${column} = ?`, [rowid, id])
          try {
            if (row && !this.isOver) await forget?.(service, row)
            done.push(rowid)
          } catch (error) {
            failure ??= { error }
          }
        }
        if (this.isOver || done.length === 0) continue
        const gone = `DELETE FROM ${table} WHERE ${column} = ? AND rowid IN (SELECT value FROM json_each(?))`
        await db.tx(t => t.run(gone, [id, JSON.stringify(done)]))
      }
    }
    if (failure) throw failure.error
  }
}
