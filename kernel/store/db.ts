import type { Db, Reads, Row, SqlValue, Tx } from '../contract/storage.js'
import { type SqliteDatabase, type SqliteStatement, sqlError } from './engine.js'
import { StoreError } from './error.js'
import type { Mirror } from './mirror.js'
import { checkOwner, type Owner, refused, tablePrefix } from './statement-check.js'
import { type Prepared, Statements } from './statements.js'

/** A running transaction, or one that has returned and is not durable yet. */
interface Transaction {
  open: boolean
  /** Callbacks for when the transaction is on the disk. */
  readonly durable: (() => void)[]
}

type Settle = (error?: Error) => void

/**
 * The single writer: runs transactions inside SQLite, synchronously. Transactions of one turn, and those that begin while the
 * mirror syncs, share one commit (group commit), so that a page changed by several is logged once. Each is a savepoint: one that
 * throws leaves the others. None is acknowledged before the common commit is on the disk.
 */
export class Core {
  readonly statements: Statements
  /** All owners of tables, by prefix. */
  readonly owners = new Map([['kernel_', 'kernel']])
  transactions = 0
  closed = false
  current: Transaction | undefined
  /** Owners whose transactions wait, each with the promise that they wait for. */
  readonly holds = new Set<{ readonly owners: Pick<ReadonlySet<string>, 'has'>; readonly over: Promise<void> }>()
  /** Callbacks of the transactions in the open commit. */
  #group: Settle[] | undefined
  readonly #sql: Readonly<Record<'begin' | 'commit' | 'rollback' | 'savepoint' | 'release' | 'undo', SqliteStatement>>

  constructor(
    db: SqliteDatabase,
    readonly mirror: Mirror,
  ) {
    this.statements = new Statements(db)
    this.#sql = {
      begin: db.prepare('BEGIN IMMEDIATE'),
      commit: db.prepare('COMMIT'),
      rollback: db.prepare('ROLLBACK'),
      savepoint: db.prepare('SAVEPOINT one'),
      release: db.prepare('RELEASE one'),
      undo: db.prepare('ROLLBACK TO one'),
    }
    mirror.beforeFlush = () => this.commit()
    // When the mirror has failed, the open commit is ended, so that its transactions are rejected instead of waiting forever.
    void mirror.failed.then(() => this.commit())
  }

  /** Throws when a write is impossible: the store failed, is full or closed, or a transaction is running. */
  ready(): void {
    if (this.current !== undefined) {
      throw new StoreError('tx_nested', 'a transaction inside a transaction', 'pass the outer `t` on and use it')
    }
    if (this.mirror.failure !== undefined) throw this.mirror.failure
    if (this.mirror.stalled !== undefined) throw this.mirror.stalled
    if (this.closed) throw new StoreError('store_closed', 'the store is closed', 'write before the store is closed')
  }

  tx<T>(fn: (transaction: Transaction) => T): Promise<T> {
    if (this.current !== undefined) this.ready()
    return new Promise((resolve, reject) => {
      this.ready()
      try {
        const { transaction, result } = this.#join(fn)
        const settle = (error?: Error): void => {
          if (error !== undefined) reject(error)
          else resolve(result)
          if (error === undefined) for (const callback of transaction.durable) isolated(callback)
          // The transaction is in SQLite and will be on the disk when there is space: its callbacks are delayed, not dropped.
          else if (error === this.mirror.stalled) this.mirror.whenSyncedAtLast(settle)
        }
        this.whenDurable(settle)
      } catch (error) {
        // Rejects in a later turn: a caller that retries in a loop must not starve the others.
        setImmediate(reject, error)
      }
    })
  }

  hold(owners: Pick<ReadonlySet<string>, 'has'>, over: Promise<void>): void {
    const held = { owners, over }
    this.holds.add(held)
    void over.then(() => this.holds.delete(held))
  }

  /** Runs `fn` as a commit of its own; durable later. */
  alone(fn: () => void): void {
    this.commit()
    this.#join(fn)
    this.commit()
  }

  /** Commits the open transactions inside SQLite; the mirror calls this before each flush. */
  commit(): void {
    const group = this.#group
    if (group === undefined) return
    this.#group = undefined
    try {
      step(this.#sql.commit)
    } catch (error) {
      this.mirror.fail(error)
    }
    this.mirror.whenSynced(error => {
      for (const settle of group) settle(error)
    })
  }

  /** Calls `done` when everything committed so far is on the disk, in the order of the calls, or with the error. */
  whenDurable(done: Settle): void {
    if (this.#group !== undefined) this.#group.push(done)
    else this.mirror.whenSynced(done)
  }

  /** Runs `fn` atomically inside SQLite, in the open commit; the first one begins it. */
  #join<T>(fn: (transaction: Transaction) => T): { transaction: Transaction; result: T } {
    const transaction: Transaction = { open: true, durable: [] }
    const first = this.#group === undefined
    this.transactions++
    step(first ? this.#sql.begin : this.#sql.savepoint)
    this.current = transaction
    let kept = false
    try {
      const result = fn(transaction)
      if (isThenable(result)) {
        result.then(undefined, () => {})
        throw new StoreError('tx_async', 'the callback of a transaction returned a promise', 'await before or after tx')
      }
      if (!first) step(this.#sql.release)
      kept = true
      return { transaction, result }
    } finally {
      this.current = undefined
      transaction.open = false
      if (!kept) this.#undo(first)
      else if (first) {
        this.#group = []
        this.mirror.request()
      }
    }
  }

  #undo(first: boolean): void {
    try {
      step(first ? this.#sql.rollback : this.#sql.undo)
      if (!first) step(this.#sql.release)
    } catch (error) {
      // SQLite has rolled back the whole commit by itself. The caller gets the error that caused it. Other transactions of the
      // commit had succeeded, so the store has to fail.
      if (!first) this.mirror.fail(error)
    }
  }

  /** Prepares a statement after checking that this owner may run it here. */
  prepare(sql: string, owner: Owner | undefined, writable: boolean): Prepared {
    const prepared = this.statements.prepare(sql)
    if (prepared.verdict.writes) {
      if (!writable) throw refused(sql, 'it writes outside a transaction', 'use tx')
      if (owner !== undefined && !prepared.allowed.has(owner)) {
        checkOwner(prepared.verdict, sql, owner, this.owners)
        prepared.allowed.add(owner)
      }
    }
    return prepared
  }
}

/** Statements on behalf of one owner, inside a transaction (`transaction` given) or read-only. */
class Access implements Reads {
  constructor(
    readonly core: Core,
    readonly owner: Owner | undefined,
    readonly transaction?: Transaction,
  ) {}

  get<T>(sql: string, params: readonly SqlValue[] = []): T | undefined {
    return this.all<T>(sql, params, 1)[0]
  }

  all<T>(sql: string, params: readonly SqlValue[] = [], limit = Infinity): T[] {
    const prepared = this.prepare(sql)
    return prepared.rows(params, limit).map(row => prepared.object(row) as T)
  }

  row(sql: string, params: readonly SqlValue[] = []): Row | undefined {
    return this.prepare(sql).rows(params, 1)[0]
  }

  rows(sql: string, params: readonly SqlValue[] = []): Row[] {
    return this.prepare(sql).rows(params)
  }

  prepare(sql: string): Prepared {
    if (this.transaction?.open === false) throw ended()
    return this.core.prepare(sql, this.owner, this.transaction !== undefined)
  }
}

class TxHandle extends Access implements Tx {
  run(sql: string, params: readonly SqlValue[] = []): { changes: number } {
    return this.prepare(sql).run(params)
  }
}

/** The database for one owner; without an owner, for the kernel. */
export class DbHandle extends Access implements Db {
  get transactions(): number {
    return this.core.transactions
  }

  tx<T>(fn: (t: Tx) => T): Promise<T> {
    for (const { owners, over } of this.core.holds)
      if (owners.has(this.owner?.name ?? '')) return over.then(() => this.tx(fn))
    return this.core.tx(transaction => fn(new TxHandle(this.core, this.owner, transaction)))
  }

  durable(): Promise<void> {
    return new Promise((resolve, reject) => this.core.whenDurable(error => (error ? reject(error) : resolve())))
  }

  onDurable(t: Tx, fn: () => void): void {
    this.#open(t).durable.push(fn)
  }

  bind({ name, tables, inherits = [] }: { name: string; tables: string; inherits?: readonly string[] }): Db {
    if (this.owner !== undefined) {
      throw new StoreError('bind_refused', `the database is already bound to ${this.owner.name}`, 'use it as it is')
    }
    return new DbHandle(this.core, { name, prefixes: [tablePrefix(tables), ...inherits] })
  }

  within(t: Tx): Tx {
    return new TxHandle(this.core, this.owner, this.#open(t))
  }

  #open(t: Tx): Transaction {
    if (!(t instanceof TxHandle) || t.core !== this.core || t.transaction?.open !== true) throw ended()
    return t.transaction
  }
}

const ended = () =>
  new StoreError('tx_ended', 'this transaction has ended', 'use `t` only inside the callback that received it')

function step(statement: SqliteStatement): void {
  try {
    statement.step()
  } catch (error) {
    throw sqlError(error, 'begin, commit or rollback')
  } finally {
    statement.reset()
  }
}

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof (value as PromiseLike<unknown> | null | undefined)?.then === 'function'

/** A callback that throws must not stop the others; its error becomes an unhandled rejection. */
function isolated(callback: () => void): void {
  try {
    callback()
  } catch (error) {
    void Promise.reject(error)
  }
}
