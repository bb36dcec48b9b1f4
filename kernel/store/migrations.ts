import { createHash } from 'node:crypto'
import { isDropIn } from '../contract/plugin.js'
import type { Inherited, Migration, MigrationStream, SqlValue } from '../contract/storage.js'
import type { Core } from './db.js'
import { type SqliteDatabase, sqlError } from './engine.js'
import { StoreError } from './error.js'
import { diskFull } from './room.js'
import { firstWord, owns, tablePrefix } from './statement-check.js'

const MIGRATION_TABLE =
  'CREATE TABLE IF NOT EXISTS kernel_migration ' +
  '(owner TEXT NOT NULL, id TEXT NOT NULL, hash TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (owner, id))'

/** Migrations that the previous version cannot work with, and why. In a table of its own, which earlier programs ignore. */
const BAR_TABLE =
  'CREATE TABLE IF NOT EXISTS kernel_migration_bar ' +
  '(owner TEXT NOT NULL, id TEXT NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (owner, id))'

const SCHEMA = `
  SELECT type || ' ' || name, type, name, tbl_name, rootpage, sql FROM main.sqlite_schema
  UNION ALL SELECT 'temporary ' || name, type, name, tbl_name, 0, sql FROM temp.sqlite_schema`

const DETAILS = `
  SELECT (SELECT group_concat(name || ' ' || type || ' ' || "notnull") || ',' FROM pragma_table_info(?1)),
    (SELECT group_concat("table") FROM pragma_foreign_key_list(?1))`

type Thing = Readonly<Record<'key' | 'type' | 'name' | 'table', string> & Record<'root' | 'sql', SqlValue>> &
  Readonly<Record<'columns' | 'parents', string | null>>

/** Applies and reports migrations. */
export class Migrations {
  readonly #versions = new Map<string, number>()
  /** The current migrations of each owner in its own stream. */
  readonly #own = new Map<string, readonly Migration[]>()
  /** Hashes of inherited and former migrations, by stream and id. */
  readonly #shared = new Map<string, Map<string, string>>()
  /** The schema as last read, by key. */
  #known = new Map<string, Thing>()

  constructor(
    readonly db: SqliteDatabase,
    readonly core: Core,
    readonly now: () => number,
  ) {
    db.run(MIGRATION_TABLE)
    db.run(BAR_TABLE)
    for (const [owner] of this.#rows('SELECT DISTINCT owner FROM kernel_migration')) {
      core.owners.set(tablePrefix(`${owner}`), `${owner}`)
    }
  }

  /**
   * Applies pending migrations, one transaction each; durable later. Nothing is applied when the database is ahead.
   * @throws StoreError `schema_ahead`, `migration_refused`, `sql_failed`, `disk_full` naming the first pending one
   */
  migrate(owner: string, migrations: readonly Migration[], inherits: readonly Inherited[] = []): void {
    if (this.core.mirror.stalled === undefined) this.core.ready()
    this.share(inherits)
    for (const { stream } of inherits) this.#reclaim(owner, migrations, stream)
    for (const { stream, prefixes, migrations: theirs } of inherits) {
      this.#apply(stream, [...(this.#own.get(stream) ?? []), ...theirs], prefixes)
    }
    this.#apply(owner, migrations, [tablePrefix(owner)])
    this.#own.set(owner, migrations)
  }

  /** Declares migrations that other owners inherit, so that the stream's owner does not find them unknown. */
  share(inherits: readonly Inherited[]): void {
    for (const { stream, migrations } of inherits)
      this.know(stream, Object.fromEntries(migrations.map(({ id, sql }) => [id, sha256(sql)])))
  }

  /** Declares migrations that a stream may have, by id with the SHA-256 of their text, hex, even if no plugin has them now. */
  know(stream: string, hashes: Readonly<Record<string, string>>): void {
    this.#shared.set(stream, new Map([...(this.#shared.get(stream) ?? []), ...Object.entries(hashes)]))
  }

  /** Whether a stream has that migration, or may have it. */
  knows(stream: string, { sql }: Migration): boolean {
    const hash = sha256(sql)
    return [...(this.#shared.get(stream)?.values() ?? []), ...new Map(this.#applied(stream)).values()].includes(hash)
  }

  /** Drops the tables of an owner; durable later. If the owner returns, all its migrations are applied anew. */
  forget(owner: string): void {
    const { core } = this
    core.ready()
    const prefix = tablePrefix(owner)
    // The prefix may belong to another owner: `a.b` and `a-b` have the same.
    if (core.owners.get(prefix) !== owner) return
    core.statements.clear()
    const own = this.#schema().filter(({ type, name }) => type === 'table' && owns(prefix, name, core.owners))
    core.alone(() => {
      for (const { name } of own) this.db.run(`DROP TABLE "${name}"`)
      // Also the copies in streams that the owner inherited.
      for (const [id, hash] of this.#applied(owner))
        this.#rows('DELETE FROM kernel_migration WHERE id = ? AND hash = ?', [id, hash])
      this.#rows('DELETE FROM kernel_migration_bar WHERE owner = ?', [owner])
    })
    core.owners.delete(prefix)
    core.statements.clear()
    this.#versions.delete(owner)
  }

  streams(): MigrationStream[] {
    const rows = this.#rows('SELECT owner, id, hash FROM kernel_migration ORDER BY owner, rowid')
    const owners = new Set([...rows.map(([owner]) => String(owner)), ...this.#versions.keys()])
    return [...owners].sort().map(owner => {
      const own = rows.filter(row => row[0] === owner)
      const digest = sha256(own.map(([, id, hash]) => `${id}:${hash}\n`).join(''))
      return { owner, version: this.#versions.get(owner) ?? 0, applied: own.length, digest }
    })
  }

  /** Registers the prefix of a new owner. It must not match existing tables. */
  #register(owner: string): void {
    const { owners, statements } = this.core
    const prefix = tablePrefix(owner)
    if (owners.get(prefix) === owner) return
    const taken = this.#schema().find(({ table }) => owns(prefix, table, owners))
    if (owners.has(prefix) || taken !== undefined) {
      throw migrationRefused(owner, `tables named ${prefix}… belong to ${owners.get(prefix) ?? 'another owner'}`)
    }
    owners.set(prefix, owner)
    statements.clear()
  }

  #apply(stream: string, migrations: readonly Migration[], prefixes: readonly string[]): void {
    const hashes = new Map([
      ...(this.#shared.get(stream) ?? []),
      ...migrations.map(({ id, sql }) => [id, sha256(sql)] as const),
    ])
    const applied = new Map(this.#applied(stream))
    const texts = new Set(applied.values())
    const isThere = ({ id, sql }: Migration) => applied.has(id) || texts.has(sha256(sql))
    const known = new Set(hashes.values())
    for (const [id, hash] of applied) {
      // A migration whose id has changed is recognized by its text.
      if (hashes.get(id) === hash || (!hashes.has(id) && known.has(hash)) || this.#isForeign(stream, id, hash)) continue
      const bar = this.#barOf(stream, id)
      // The previous version of a drop-in can work with pure additions of a later one.
      if (isDropIn(stream) && !hashes.has(id) && bar === undefined) continue
      throw schemaAhead(stream, id, hashes.has(id) ? 'has other statements here' : 'is unknown here', bar)
    }
    const missing = migrations.find(migration => !isThere(migration))
    const { stalled } = this.core.mirror
    if (missing !== undefined && stalled !== undefined)
      throw diskFull(`migration ${missing.id} of ${stream} is still to be applied`, stalled)
    if (hashes.size > 0) this.#versions.set(stream, hashes.size)
    if (migrations.length > 0) this.#register(stream)
    for (const migration of migrations) if (!isThere(migration)) this.#applyOne(stream, migration, prefixes)
  }

  /**
   * Earlier versions of the program let an heir write its own migrations into the inherited stream. They are recorded as its own
   * as well; the old entries stay, because those versions look for them there.
   */
  #reclaim(owner: string, migrations: readonly Migration[], stream: string): void {
    const [there, mine] = [new Map(this.#applied(stream)), new Map(this.#applied(owner))]
    const shared = this.#shared.get(stream)
    const lost = migrations.filter(({ id, sql }) => !mine.has(id) && !shared?.has(id) && there.get(id) === sha256(sql))
    if (lost.length > 0) this.core.alone(() => lost.map(({ id, sql }) => this.#note(owner, id, sql)))
  }

  /**
   * Whether a migration in the stream of the program's plugin belongs to a drop-in that replaced that plugin: a drop-in has it in
   * its own stream, or its id lacks the leading number of the program's migrations.
   */
  #isForeign(stream: string, id: string, hash: string): boolean {
    if (isDropIn(stream)) return false
    const others = this.#rows('SELECT owner FROM kernel_migration WHERE id = ? AND hash = ?', [id, hash])
    return !/^\d/.test(id) || others.some(([owner]) => isDropIn(`${owner}`))
  }

  #applied(owner: string): [id: string, hash: string][] {
    return this.#rows('SELECT id, hash FROM kernel_migration WHERE owner = ?', [owner]) as [string, string][]
  }

  #note(owner: string, id: string, sql: string, bar?: string): void {
    const values = [owner, id, sha256(sql), this.now()]
    this.#rows('INSERT INTO kernel_migration (owner, id, hash, at) VALUES (?, ?, ?, ?)', values)
    if (bar !== undefined) this.#rows('INSERT INTO kernel_migration_bar VALUES (?, ?, ?)', [owner, id, bar])
  }

  #barOf(owner: string, id: string): string | undefined {
    const [row] = this.#rows('SELECT reason FROM kernel_migration_bar WHERE owner = ? AND id = ?', [owner, id])
    return row && String(row[0])
  }

  #applyOne(owner: string, { id, sql }: Migration, prefixes: readonly string[]): void {
    const refuse = (reason: string): StoreError => migrationRefused(`${id} of ${owner}`, reason)
    this.core.statements.clear()
    this.core.alone(() => {
      const before = this.#schema()
      this.#script(sql, refuse)
      const after = this.#schema()
      const own = (name: string) => prefixes.some(prefix => owns(prefix, name, this.core.owners))
      const reason = changeRefused(before, after, own)
      if (reason !== undefined) throw refuse(reason)
      this.#note(owner, id, sql, barTo(before, after))
    })
  }

  #script(sql: string, refuse: (reason: string) => StoreError): void {
    const statements = this.db.iterateStatements(sql)
    try {
      // The kind is checked before SQLite compiles the statement, because a PRAGMA takes effect then.
      for (let rest = sql; ; rest = statements.getRemainingSQL()) {
        const kind = firstWord(rest, true)
        if (!['', 'create', 'alter', 'drop'].includes(kind)) throw refuse(`${kind.toUpperCase()} is not allowed here`)
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

  /**
   * Details are read only for new or changed entries: they depend on the entry's own text, and reading them takes the most time.
   */
  #schema(): Thing[] {
    const things = this.#rows(SCHEMA).map(([key, type, name = '', table, root, sql]) => {
      const known = this.#known.get(`${key}`)
      if (known?.sql === sql && known?.root === root) return known as Thing
      const [columns, parents] = this.#rows(DETAILS, [name])[0] ?? []
      return { key, type, name, table, root, sql, columns, parents } as Thing
    })
    this.#known = new Map(things.map(thing => [thing.key, thing]))
    return things
  }

  /** Without the statement checks for plugins: each migration clears their cache, and they would run again every time. */
  #rows(sql: string, params: SqlValue[] = []): SqlValue[][] {
    const statement = this.db.prepare(sql)
    try {
      const rows: SqlValue[][] = []
      for (statement.bind(params); statement.step(); ) rows.push(statement.get(null))
      return rows
    } catch (error) {
      throw sqlError(error, sql)
    } finally {
      statement.free()
    }
  }
}

/** Why a change of the schema is not allowed; undefined when it only adds to `own` tables, or removes indexes of them. */
function changeRefused(before: Thing[], after: Thing[], own: (name: string) => boolean): string | undefined {
  const was = new Map(before.map(thing => [thing.key, thing]))
  for (const now of after) {
    const { key, type, name, table, root } = now
    const old = was.get(key)
    was.delete(key)
    // With a foreign key, writes of the parent's owner would change, or fail because of, the table of another owner.
    const parent = own(name) ? now.parents?.split(',').find(other => !own(other)) : undefined
    if (parent !== undefined) return `${name} refers to ${parent}, which belongs to another owner`
    if (old !== undefined) {
      if (root !== old.root || !(now.columns ?? '').startsWith(old.columns ?? '')) return `it changes ${name}`
      if (now.sql !== old.sql && !own(table)) return `it changes ${name}, which belongs to another owner`
    } else if (name !== 'sqlite_sequence') {
      if ((type !== 'table' && type !== 'index') || root === 0) return `it makes a ${type} (${name})`
      const named = own(name) || name.startsWith('sqlite_autoindex_')
      if (!own(table) || !named) return `${name} is not named as its owner`
    }
  }
  // Statements of the previous version run without an index too, but for its uniqueness.
  const gone = [...was.values()].find(({ type, table, sql }) => type !== 'index' || !own(table) || isUnique(sql))
  return gone && `it removes or renames ${gone.name}`
}

const isUnique = (sql: SqlValue) => /^create\s+unique\b/i.test(`${sql}`)

/** Why statements of the previous version may fail after an allowed change; undefined when they cannot. */
function barTo(before: Thing[], after: Thing[]): string | undefined {
  const was = new Map(before.map(thing => [thing.key, thing]))
  const isOld = (table: string) => before.some(({ key }) => key === `table ${table}`)
  const checks = (sql: SqlValue) => `${sql}`.match(/\bcheck\b/gi)?.length ?? 0
  for (const { key, type, name, table, sql, parents } of after) {
    const old = was.get(key)
    const parent = parents?.split(',').find(isOld)
    if (type === 'index' && !old && isUnique(sql) && isOld(table)) return `it adds the unique index ${name} to ${table}`
    if (type === 'table' && parent !== undefined && parents !== old?.parents)
      return `it makes ${name} refer to ${parent}`
    if (type === 'table' && old && checks(sql) > checks(old.sql)) return `it adds a CHECK to ${name}`
    was.delete(key)
  }
  // A statement may name it.
  const [gone] = was.values()
  return gone && `it removes the index ${gone.name}`
}

function schemaAhead(stream: string, id: string, why: string, bar: string | undefined): StoreError {
  const message = `the database has migration ${id} of ${stream}, which ${why}${bar === undefined ? '' : `, and ${bar}`}`
  const hint = isDropIn(stream)
    ? `install the version of ${stream} that has it, or delete its tables: svc extension remove ${stream} --purge`
    : 'start the version of the program that wrote it, or restore a backup of the database from before'
  return new StoreError('schema_ahead', message, hint)
}

function migrationRefused(what: string, reason: string): StoreError {
  const hint =
    'a migration may only CREATE TABLE, CREATE and DROP INDEX, and ALTER TABLE … ADD, with names that begin with the prefix of their owner'
  return new StoreError('migration_refused', `migration ${what}: ${reason}`, hint)
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
