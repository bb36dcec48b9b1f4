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

/** Handle inside a transaction; invalid (`tx_ended`) after its callback has returned. Its reads may write (RETURNING). */
export interface Tx extends Reads {
  run(sql: string, params?: readonly SqlValue[]): { changes: number }
}

/** The database for one owner. */
export interface Db extends Reads {
  /** Number of transactions begun since the start: as long as it is the same and none runs, no row has changed. */
  readonly transactions: number
  /**
   * Runs a synchronous callback atomically; resolves with its result when the transaction, and everything it could see, is on the
   * disk. A throw rolls back and rejects with that error; a callback that returns a promise is rolled back (`tx_async`). After a
   * disk error it rejects with `store_failed`: the transaction may or may not exist after a restart. On a full disk it rejects with
   * `disk_full`: a transaction that had begun is written when there is space, unless the process ends before; later ones do not
   * begin.
   * @throws StoreError `tx_nested` at once, inside a callback
   */
  tx<T>(fn: (t: Tx) => T): Promise<T>
  /** Resolves when everything seen so far is on the disk. */
  durable(): Promise<void>
  /** Runs when that transaction is on the disk, after its promise is settled, in order; dropped on rollback and failure. */
  onDurable(t: Tx, fn: () => void): void
  /** The same database with statements checked for that owner: it may write tables named `<tables>_…` or `<inherits>…`. */
  bind(owner: { name: string; tables: string; inherits?: readonly string[] }): Db
  /** The same transaction with the rights of this database's owner, for a service that receives `t` from another plugin. */
  within(t: Tx): Tx
}

/**
 * One step of an owner's schema. It only adds tables, indexes and columns, and removes indexes that are not unique, so that the
 * previous version can run on the result.
 */
export interface Migration {
  readonly id: string
  readonly sql: string
}

/**
 * Tables of another stream that an heir writes and migrates further: those of a plugin that it replaces, or a part that the
 * stream's owner no longer has.
 */
export interface Inherited {
  /** Owner under which the migrations are recorded. */
  readonly stream: string
  /** Prefixes of the table names. */
  readonly prefixes: readonly string[]
  /** All migrations of these tables. */
  readonly migrations: readonly Migration[]
}

/** The migrations of one owner, in the database and in this program. */
export interface MigrationStream {
  readonly owner: string
  /** Number of migrations in this program; 0 for an owner that it does not have. */
  readonly version: number
  /** Number of migrations in the database. */
  readonly applied: number
  /** SHA-256, hex, of the applied migrations. */
  readonly digest: string
}

/** Figures of the store; sizes in bytes, counts since it was opened. */
export interface StoreStatus {
  readonly path: string
  readonly bytes: number
  readonly walBytes: number
  readonly transactions: number
  readonly syncs: number
  /** Cause of the failure, once the store has failed. */
  readonly failed?: string
  /** Why nothing is written now: the disk is full, and the reserve is spent. */
  readonly stalled?: string
  readonly streams: MigrationStream[]
}

/** How writes behave on a full disk; kernel/store/README.md, "A full disk". */
export interface Room {
  /**
   * Releases so many bytes and some more from the reserve; false when it is used up. Synchronous, so that the write that follows
   * gets them before another program can.
   */
  spend(bytes: number): boolean
  /** Resolves when another attempt makes sense. */
  again(): Promise<void>
}

/** Free space for writing; kernel/store/README.md, "A full disk". */
export interface DiskRoom {
  /** False while space is short, as of the last check. */
  readonly writable: boolean
  /** Bytes that are free now; Infinity when the system does not say. */
  look(): Promise<number>
  /**
   * 507 `disk_full` while space is short. Checked before new work or a new write, but not before work that frees space or stops
   * something.
   */
  refusal(): Promise<Fault | undefined>
  /** The part of the reserve for files beside the database. */
  readonly room: Room
}

/** Watches the free space of a home and keeps a reserve for work that must go on. */
export interface DiskKeeper extends DiskRoom {
  /** The part of the reserve for the database. */
  readonly catalog: Room
  /** Begins to watch, before the store needs space; the home must be locked. */
  start(): Promise<void>
  /** Calls `listener` whenever writing resumes. */
  onHealed(listener: () => void): void
  close(): Promise<void>
}
