import { createHash } from 'node:crypto'
import type { Core } from './db.js'
import { type SqliteDatabase, type SqlValue, sqlError } from './engine.js'
import { StoreError } from './error.js'
import { firstWord, tablePrefix } from './statement-check.js'

/** One step of an owner's tables. It only adds (tables, indexes, columns), so that the version before runs on the result. */
export interface Migration {
  readonly id: string
  readonly sql: string
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

export const MIGRATION_TABLE =
  'CREATE TABLE IF NOT EXISTS kernel_migration ' +
  '(owner TEXT NOT NULL, id TEXT NOT NULL, hash TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (owner, id))'

/** Applies and reports migrations. */
export class Migrations {
  readonly #db: SqliteDatabase
  readonly #core: Core
  readonly #now: () => number
  readonly #versions = new Map<string, number>()

  constructor(db: SqliteDatabase, core: Core, now: () => number) {
    this.#db = db
    this.#core = core
    this.#now = now
  }

  /**
   * Applies what is missing, one transaction each; durable later. Nothing is applied when the database is ahead.
   * @throws StoreError `schema_ahead`, `migration_refused`, `sql_failed`
   */
  migrate(owner: string, migrations: readonly Migration[]): void {
    this.#core.ready()
    const hashes = new Map(migrations.map(({ id, sql }) => [id, createHash('sha256').update(sql).digest('hex')]))
    const applied = new Set<SqlValue>()
    for (const [id = null, hash] of this.#rows('SELECT id, hash FROM kernel_migration WHERE owner = ?', [owner])) {
      const known = hashes.get(String(id))
      if (known !== hash) {
        throw new StoreError(
          'schema_ahead',
          `the database has migration ${id} of ${owner}, which ${known === undefined ? 'is unknown here' : 'reads differently here'}`,
          'start the version of the program that wrote it, or restore a backup of the database from before',
        )
      }
      applied.add(id)
    }
    for (const migration of migrations) {
      if (!applied.has(migration.id)) this.#apply(owner, migration, hashes.get(migration.id) ?? '')
    }
    this.#versions.set(owner, migrations.length)
  }

  streams(): MigrationStream[] {
    const rows = this.#rows('SELECT owner, id, hash FROM kernel_migration ORDER BY owner, rowid', [])
    const owners = new Set([...rows.map(([owner]) => String(owner)), ...this.#versions.keys()])
    return [...owners].sort().map(owner => {
      const own = rows.filter(row => row[0] === owner)
      const digest = createHash('sha256')
        .update(own.map(([, id, hash]) => `${id}:${hash}\n`).join(''))
        .digest('hex')
      return { owner, version: this.#versions.get(owner) ?? 0, applied: own.length, digest }
    })
  }

  #apply(owner: string, { id, sql }: Migration, hash: string): void {
    const refuse = (reason: string): StoreError =>
      new StoreError(
        'migration_refused',
        `migration ${id} of ${owner}: ${reason}`,
        'a migration only adds: CREATE TABLE, CREATE INDEX, ALTER TABLE … ADD, names with the prefix of their owner',
      )
    this.#core.statements.clear()
    this.#core.atomic(() => {
      const before = this.#schema()
      this.#script(sql, refuse)
      const reason = changeRefused(before, this.#schema(), tablePrefix(owner))
      if (reason !== undefined) throw refuse(reason)
      const record = this.#core.statements.prepare(
        'INSERT INTO kernel_migration (owner, id, hash, at) VALUES (?, ?, ?, ?)',
      )
      this.#core.statements.run(record, [owner, id, hash, this.#now()])
    })
  }

  #script(sql: string, refuse: (reason: string) => StoreError): void {
    const statements = this.#db.iterateStatements(sql)
    try {
      // The kind is looked at before SQLite compiles the statement, for a PRAGMA takes effect then.
      for (let rest = sql; ; rest = statements.getRemainingSQL()) {
        const kind = firstWord(rest, true)
        if (kind !== '' && kind !== 'create' && kind !== 'alter')
          throw refuse(`${kind.toUpperCase()} is not allowed here`)
        const next = statements.next()
        if (next.done) return
        while (next.value.step());
      }
    } catch (error) {
      throw sqlError(error, sql)
    } finally {
      statements.return?.()
    }
  }

  #schema(): Schema {
    return new Map(
      this.#rows(SCHEMA, []).map(([type, name, table, root, sql, columns, parents]) => [
        `${type} ${name}`,
        { type, name: `${name}`, table: `${table}`, root, sql, columns: `${columns},`, parents: `${parents ?? ''}` },
      ]),
    )
  }

  #rows(sql: string, params: SqlValue[]): SqlValue[][] {
    return this.#core.statements.rows(this.#core.statements.prepare(sql), params)
  }
}

type Schema = ReadonlyMap<
  string,
  Readonly<
    Record<'name' | 'table' | 'columns' | 'parents', string> & Record<'type' | 'root' | 'sql', SqlValue | undefined>
  >
>

const SCHEMA = `
  SELECT type, name, tbl_name, rootpage, sql,
    (SELECT group_concat(i.name || ' ' || i.type || ' ' || i."notnull") FROM pragma_table_info(s.name) AS i),
    (SELECT group_concat(f."table") FROM pragma_foreign_key_list(s.name) AS f)
  FROM main.sqlite_schema AS s
  UNION ALL SELECT 'temporary ' || type, name, tbl_name, rootpage, sql, '', '' FROM temp.sqlite_schema`

/** Why a change of the schema is not allowed; undefined when it only adds to tables with that prefix. */
function changeRefused(before: Schema, after: Schema, prefix: string): string | undefined {
  const own = (name: string): boolean => name.toLowerCase().startsWith(prefix)
  for (const [key, old] of before) {
    const now = after.get(key)
    if (now === undefined) return `it removes or renames ${old.name}`
    if (now.root !== old.root || !now.columns.startsWith(old.columns)) return `it changes ${old.name}`
    if (now.sql !== old.sql && !own(old.table)) return `it changes ${old.name}, which belongs to another owner`
  }
  for (const [key, { type, name, table, root, parents }] of after) {
    // A foreign key would make the parent's owner write, or fail for, somebody else's table.
    const foreign = own(name) ? parents.split(',').find(parent => parent !== '' && !own(parent)) : undefined
    if (foreign !== undefined) return `${name} refers to ${foreign}, which belongs to another owner`
    if (before.has(key) || name === 'sqlite_sequence') continue
    if ((type !== 'table' && type !== 'index') || root === 0) return `it makes a ${type} (${name})`
    if (!own(table) || !(own(name) || name.startsWith('sqlite_autoindex_'))) return `${name} has no prefix ${prefix}`
  }
  return undefined
}
