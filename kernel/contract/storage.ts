import type { Fault } from './errors.js'

/** A value of a column or a parameter. Integers come back as numbers, beyond 2^53 as bigint. A bigint is bound as text. */
export type SqlValue = string | number | bigint | Uint8Array | null

/** An array of column values. */
export type Row = SqlValue[]

/** Reads: synchronous, always fresh. `get` and `all` give objects keyed by column, `row` and `rows` arrays (faster). */
export interface Reads {
  get<T = Record<string, SqlValue>>(sql: string, params?: readonly SqlValue[]): T | undefined
  all<T = Record<string, SqlValue>>(sql: string, params?: readonly SqlValue[]): T[]
  row(sql: string, params?: readonly SqlValue[]): Row | undefined
  rows(sql: string, params?: readonly SqlValue[]): Row[]
}

/** Handle inside a transaction; dead (`tx_ended`) when its callback has returned. Its reads may write (RETURNING). */
export interface Tx extends Reads {
  run(sql: string, params?: readonly SqlValue[]): { changes: number }
}

/** The database, as one owner sees it. */
export interface Db extends Reads {
  /**
   * Synchronous callback, atomic; resolves with its result when the transaction, and everything it could see, is on the disk.
   * A throw rolls back and rejects with that error; a callback that returns a promise is rolled back (`tx_async`). After a
   * disk error it rejects with `store_failed`: the transaction may or may not be there after a restart. On a full disk it
   * rejects with `disk_full`: one that was under way is written when there is room, unless the process ends before; later
   * ones are not begun.
   * @throws StoreError `tx_nested` at once, inside a callback
   */
  tx<T>(fn: (t: Tx) => T): Promise<T>
  /** Resolves when everything seen so far is on the disk. */
  durable(): Promise<void>
  /** Runs when that transaction is on the disk, after its promise is settled, in order; dropped on rollback and failure. */
  onDurable(t: Tx, fn: () => void): void
  /** The same database, statements checked for that owner: it may write tables named `<tables>_…` or `<inherits>…`. */
  bind(owner: { name: string; tables: string; inherits?: readonly string[] }): Db
  /** The same transaction with the rights of this database's owner, for a service called with somebody else's `t`. */
  within(t: Tx): Tx
}

/** One step of an owner's tables. It only adds (tables, indexes, columns), so that the version before runs on the result. */
export interface Migration {
  readonly id: string
  readonly sql: string
}

/**
 * Tables that were made by another stream, and that an heir writes and goes on migrating: those of the plugin whose place it has,
 * or a part that left the owner of the stream.
 */
export interface Inherited {
  /** Owner under which the migrations are recorded. */
  readonly stream: string
  /** What the names of its tables begin with, one of these. */
  readonly prefixes: readonly string[]
  /** Of these tables, all. */
  readonly migrations: readonly Migration[]
}

/** The migrations of one owner, as they stand in the database and in this program. */
export interface MigrationStream {
  readonly owner: string
  /** How many this program has; 0 for an owner that it does not have. */
  readonly version: number
  /** How many the database has. */
  readonly applied: number
  /** SHA-256, hex, of what was applied. */
  readonly digest: string
}

/** Figures of the store; sizes in bytes, counts since it was opened. */
export interface StoreStatus {
  readonly path: string
  readonly bytes: number
  readonly walBytes: number
  readonly transactions: number
  readonly syncs: number
  /** What ended it, once it has failed. */
  readonly failed?: string
  /** Why nothing is written now: the disk is full, and what was kept for this is spent. */
  readonly stalled?: string
  readonly streams: MigrationStream[]
}

/** What a write that finds the disk full does; kernel/store/README.md, "A full disk". */
export interface Room {
  /**
   * Frees so many bytes and some more of what is kept for this moment; false when nothing is left. Synchronous, so that
   * the write which follows at once gets them and not whoever fills the disk.
   */
  spend(bytes: number): boolean
  /** Resolves when another try is worth it. */
  again(): Promise<void>
}

/** Free space for writing; kernel/store/README.md, "A full disk". */
export interface DiskRoom {
  /** False while space is short, as it was seen last. */
  readonly writable: boolean
  /** Bytes that are free now; Infinity where the system does not tell. */
  look(): Promise<number>
  /** 507 `disk_full` while space is short. To be asked before new work or a new write; what frees or stops goes on. */
  refusal(): Promise<Fault | undefined>
  /** Of the reserve, what files beside the catalog may spend. */
  readonly room: Room
}

/** Watches the free space of a home and keeps some of it for what has to go on. */
export interface DiskKeeper extends DiskRoom {
  /** Of the reserve, what the database may spend. */
  readonly catalog: Room
  /** Looks for the first time, before the store needs room, and from then on; the home is locked. */
  start(): Promise<void>
  /** Told whenever writing goes on after it had stopped. */
  onHealed(told: () => void): void
  close(): Promise<void>
}
