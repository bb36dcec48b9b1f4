import * as v from 'valibot'
import { iso } from '../contract/basics.js'
import type { Reads, SqlValue, Tx } from '../contract/storage.js'
import { sqlName } from './text.js'

/**
 * The meaning of NULL in a row: `required` columns have none, `optional` means an absent member, `nullable` means null. `generated`
 * is an INTEGER PRIMARY KEY, which SQLite fills in when an insert omits it.
 */
export type Presence = 'required' | 'optional' | 'nullable' | 'generated'

type SqlType = 'TEXT' | 'INTEGER' | 'REAL' | 'BLOB'

/**
 * A column of a {@link table}. Immutable: each method returns another column.
 * @typeParam T the member of a row
 * @typeParam W the member of a reply
 * @typeParam M the name of the member if it differs from the column's
 */
export interface Column<T, W = T, P extends Presence = Presence, M extends string | undefined = string | undefined> {
  readonly type: SqlType
  readonly presence: P
  readonly member: M
  /** Absent: the value is stored unchanged. */
  readonly encode?: ((value: T) => SqlValue) | undefined
  readonly decode?: ((value: SqlValue) => T) | undefined
  readonly wire?: ((value: T) => W) | undefined
  /** NULL is an absent member. */
  optional(): Column<T, W, 'optional', M>
  /** NULL is null. */
  nullable(): Column<T, W, 'nullable', M>
  /** An INTEGER PRIMARY KEY, left out of an insert. */
  generated(): Column<T, W, 'generated', M>
  /** Names the member of the row. */
  as<const N extends string>(member: N): Column<T, W, P, N>
}

type Coding<T, W> = Pick<Column<T, W>, 'type' | 'encode' | 'decode' | 'wire'>

function columnOf<T, W, P extends Presence, M extends string | undefined>(
  coding: Coding<T, W>,
  presence: P,
  member: M,
): Column<T, W, P, M> {
  return {
    ...coding,
    presence,
    member,
    optional: () => columnOf(coding, 'optional', member),
    nullable: () => columnOf(coding, 'nullable', member),
    generated: () => columnOf(coding, 'generated', member),
    as: name => columnOf(coding, presence, name),
  }
}

const kind = <T, W = T>(coding: Coding<T, W>) => columnOf(coding, 'required', undefined)

/** The kinds of columns. */
export const column = {
  text: <T extends string = string>() => kind<T>({ type: 'TEXT' }),
  integer: () => kind<number>({ type: 'INTEGER' }),
  real: () => kind<number>({ type: 'REAL' }),
  /** A boolean, stored as 0 or 1. */
  flag: () => kind<boolean>({ type: 'INTEGER', encode: value => (value ? 1 : 0), decode: value => value !== 0 }),
  /** Epoch milliseconds; RFC 3339 in a reply. */
  time: () => kind<number, string>({ type: 'INTEGER', wire: iso }),
  /** JSON. A schema is checked on every read. */
  json: <T>(schema?: v.GenericSchema<unknown, T>) =>
    kind<T>({
      type: 'TEXT',
      encode: value => JSON.stringify(value),
      decode: text => (schema ? v.parse(schema, JSON.parse(`${text}`)) : JSON.parse(`${text}`)),
    }),
  /** Bytes; base64 in a reply. */
  bytes: () => kind<Uint8Array, string>({ type: 'BLOB', wire: value => Buffer.from(value).toString('base64') }),
} as const

/** Without the value type, so that TypeScript does not infer it from here. */
type AnyColumn = Pick<Column<never>, 'type' | 'presence' | 'member'>
type Columns = Readonly<Record<string, AnyColumn>>
type Name<C extends Columns, K extends keyof C> = C[K] extends { member: infer N extends string } ? N : K
type Value<X> = X extends Column<infer T, infer _W> ? T : never
type Flat<T> = { [K in keyof T]: T[K] }
/** The member name of a column with one of these presences. */
type Key<C extends Columns, K extends keyof C, P extends Presence> = C[K]['presence'] extends P ? Name<C, K> : never

type Row<C extends Columns> = Flat<
  { readonly [K in keyof C as Key<C, K, 'required' | 'generated'>]: Value<C[K]> } & {
    readonly [K in keyof C as Key<C, K, 'optional'>]?: Value<C[K]> | undefined
  } & { readonly [K in keyof C as Key<C, K, 'nullable'>]: Value<C[K]> | null }
>
type Insert<C extends Columns> = Flat<
  { readonly [K in keyof C as Key<C, K, 'required'>]: Value<C[K]> } & {
    readonly [K in keyof C as Key<C, K, 'optional' | 'generated'>]?: Value<C[K]> | undefined
  } & { readonly [K in keyof C as Key<C, K, 'nullable'>]: Value<C[K]> | null }
>
/** Null means `IS NULL`. */
type Where<C extends Columns> = {
  readonly [K in keyof C as Name<C, K>]?:
    | Value<C[K]>
    | (C[K]['presence'] extends 'required' | 'generated' ? never : null)
}
type Changes<C extends Columns> = Partial<Row<C>>

/** The row of a table: `type Run = RowOf<typeof runs>`. */
export type RowOf<T> = T extends Table<infer C> ? Row<C> : never

type ReplySchema = v.GenericSchema & { readonly entries: Readonly<Record<string, v.GenericSchema>> }
/** A value that cannot be changed, at any depth. */
export type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T
type WireOf<X> = X extends Column<infer _T, infer W> ? W : never
/** Members of a reply that a column of the same name and type fills. */
type Filled<C extends Columns, O> = {
  [K in keyof O & keyof C]: WireOf<C[K]> extends DeepReadonly<Exclude<O[K], null | undefined>> ? K : never
}[keyof O & keyof C]
/** The part of a row that a reply shows. */
type Shown<C extends Columns, O> = Pick<Row<C>, Extract<Name<C, keyof O & keyof C>, keyof Row<C>>>
type More<C extends Columns, O> = Omit<O, Filled<C, O>> & Partial<O>

interface Bound {
  readonly name: string
  readonly member: string
  // biome-ignore lint/suspicious/noExplicitAny: the erasing line of columns
  readonly column: Column<any, unknown>
}

/** Fills one member of a reply. */
type Fill = (row: Readonly<Record<string, unknown>>, reply: Record<string, unknown>) => void

/**
 * Rows of one table with typed members. The text of a statement depends only on member names and is made once, so that the store
 * finds its prepared statement; values are always parameters.
 */
export class Table<C extends Columns> {
  /** Names of the columns, for hand-written statements: `SELECT ${runs.columns} FROM …`. */
  readonly columns: string
  readonly #bound: readonly Bound[]
  readonly #members: ReadonlyMap<string, Bound>
  readonly #inserting: string
  readonly #replacing: string
  readonly #texts = new Texts()
  /** Members of every row, as null. */
  readonly #empty: Readonly<Record<string, null>>
  readonly #fills = new WeakMap<object, readonly Fill[]>()

  constructor(
    readonly name: string,
    columns: C,
  ) {
    sqlName(name)
    this.#bound = Object.entries(columns).map(([name, column]) => ({
      name: sqlName(name),
      member: column.member ?? name,
      column: column as Bound['column'],
    }))
    this.#members = new Map(this.#bound.map(bound => [bound.member, bound]))
    if (this.#members.size < this.#bound.length) throw new TypeError(`two columns of ${name} have the same member`)
    this.columns = this.#bound.map(bound => bound.name).join(', ')
    this.#replacing = `INSERT OR REPLACE INTO ${name} (${this.columns}) VALUES (${this.#bound.map(() => '?').join(', ')})`
    this.#inserting = this.#replacing.replace(' OR REPLACE', '')
    const always = this.#bound.filter(({ column }) => column.presence !== 'optional')
    this.#empty = Object.fromEntries(always.map(({ member }) => [member, null]))
  }

  /** The expected columns of the database table; a test compares them. */
  get shape(): readonly { readonly name: string; readonly type: string; readonly notNull: boolean }[] {
    return this.#bound.map(({ name, column: { type, presence } }) => ({ name, type, notNull: presence === 'required' }))
  }

  /** Adds a row. */
  insert(t: Tx, row: Insert<C>): void {
    t.run(this.#inserting, this.#valuesOf(row))
  }

  /** Adds a row, replacing one with the same key. */
  replace(t: Tx, row: Insert<C>): void {
    t.run(this.#replacing, this.#valuesOf(row))
  }

  /** Changes members of the rows that match; returns their number. An optional member that is undefined becomes NULL. */
  update(t: Tx, where: Where<C>, changes: Changes<C>): number {
    const { sql, params } = this.#statement('UPDATE', changes, where)
    return sql === '' ? 0 : t.run(sql, params).changes
  }

  /** Deletes the rows that match; returns their number. */
  delete(t: Tx, where: Where<C>): number {
    const { sql, params } = this.#statement('DELETE', {}, where)
    return t.run(sql, params).changes
  }

  /** The first row that matches. */
  get(reads: Reads, where: Where<C>): Row<C> | undefined {
    const { sql, params } = this.#statement('SELECT', {}, where)
    const row = reads.row(sql, params)
    return row && this.#read(row)
  }

  /** All rows that match. @param order SQL after the condition, a constant: `ORDER BY created_at` */
  all(reads: Reads, where: Where<C> = {}, order = ''): Row<C>[] {
    const { sql, params } = this.#statement('SELECT', {}, where, order)
    return reads.rows(sql, params).map(row => this.#read(row))
  }

  /** Rows by a hand-written condition. @param tail SQL after FROM, a constant: `WHERE at < ? ORDER BY at LIMIT +?` */
  query(reads: Reads, tail: string, params: readonly SqlValue[] = []): Row<C>[] {
    return reads.rows(this.#statement('SELECT', {}, {}, tail).sql, params).map(row => this.#read(row))
  }

  /** A row from a hand-written statement that selects all columns by name. */
  decode(row: Readonly<Record<string, SqlValue>>): Row<C> {
    return this.#read(this.#bound.map(({ name }) => row[name] as SqlValue))
  }

  /**
   * A row in the form of a reply: times as text, bytes as base64. Missing members are left out if the schema has them optional, and
   * null if it has them nullable. `more` holds the members that no column of that name and type fills.
   */
  wire<S extends ReplySchema>(
    row: Shown<C, v.InferOutput<S>>,
    schema: S,
    ...more: Record<never, never> extends More<C, v.InferOutput<S>>
      ? [more?: More<C, v.InferOutput<S>>]
      : [more: More<C, v.InferOutput<S>>]
  ): v.InferOutput<S> {
    let fills = this.#fills.get(schema)
    if (!fills) {
      fills = this.#fillsOf(schema)
      this.#fills.set(schema, fills)
    }
    const reply: Record<string, unknown> = { ...more[0] }
    for (const fill of fills) fill(row as Readonly<Record<string, unknown>>, reply)
    return reply as v.InferOutput<S>
  }

  #fillsOf({ entries }: ReplySchema): readonly Fill[] {
    return Object.entries(entries).flatMap(([name, entry]): Fill[] => {
      const bound = this.#bound.find(one => one.name === name)
      if (!bound) return []
      const { member, column } = bound
      const absent = absenceIn(entry)
      return [
        (row, reply) => {
          if (name in reply) return
          const value = row[member]
          if (value !== undefined && value !== null) reply[name] = column.wire ? column.wire(value) : value
          else if (absent === 'null') reply[name] = null
          else if (absent === undefined)
            throw new TypeError(`${this.name}.${name} has no value, but the reply requires one`)
        },
      ]
    })
  }

  #valuesOf(row: Insert<C>): SqlValue[] {
    const values = row as Record<string, unknown>
    return this.#bound.map(({ member, column }) => encoded(column, values[member]))
  }

  /** A condition with an undefined value is refused: without it the statement would match too many rows. */
  #statement(verb: 'SELECT' | 'UPDATE' | 'DELETE', changes: object, where: object, order = '') {
    const set = changes as Record<string, unknown>
    const condition = where as Record<string, unknown>
    const params: SqlValue[] = []
    let texts = this.#texts.at(verb).at(order)
    for (const member of Object.keys(set)) {
      params.push(encoded(this.#of(member).column, set[member]))
      texts = texts.at(member)
    }
    texts = texts.at('')
    for (const member of Object.keys(condition)) {
      const value = condition[member]
      if (value === undefined) throw new TypeError(`the condition on ${this.name} has no value for ${member}`)
      if (value !== null) params.push(encoded(this.#of(member).column, value))
      texts = texts.at(value === null ? `${member} IS NULL` : member)
    }
    texts.text ??= this.#textOf(verb, set, condition, order)
    return { sql: texts.text, params }
  }

  #textOf(verb: 'SELECT' | 'UPDATE' | 'DELETE', set: object, where: object, order: string): string {
    const named = Object.entries(where).map(([member, value]) => {
      return `${this.#of(member).name} ${value === null ? 'IS NULL' : '= ?'}`
    })
    const matching = named.length === 0 ? order : `WHERE ${named.join(' AND ')} ${order}`
    if (verb === 'SELECT') return `SELECT ${this.columns} FROM ${this.name} ${matching}`
    if (verb === 'DELETE') return `DELETE FROM ${this.name} ${matching}`
    const assigned = Object.keys(set).map(member => `${this.#of(member).name} = ?`)
    return assigned.length === 0 ? '' : `UPDATE ${this.name} SET ${assigned.join(', ')} ${matching}`
  }

  #of(member: string): Bound {
    const bound = this.#members.get(member)
    if (bound) return bound
    throw new TypeError(`${this.name} has no column for ${JSON.stringify(member)}`)
  }

  #read(values: readonly SqlValue[]): Row<C> {
    const row: Record<string, unknown> = { ...this.#empty }
    let n = 0
    try {
      for (; n < this.#bound.length; n++) {
        const { member, column } = this.#bound[n] as Bound
        const value = values[n]
        if (value !== null) row[member] = column.decode ? column.decode(value as SqlValue) : value
      }
      return row as Row<C>
    } catch (cause) {
      throw new Error(`a row of ${this.name} has a value in ${this.#bound[n]?.name} that cannot be read`, { cause })
    }
  }
}

/** Texts of statements, in a tree keyed by the names in them. */
class Texts {
  text: string | undefined
  readonly #next = new Map<string, Texts>()

  at(name: string): Texts {
    const next = this.#next.get(name) ?? new Texts()
    this.#next.set(name, next)
    return next
  }
}

const encoded = ({ encode }: Bound['column'], value: unknown): SqlValue =>
  value === undefined || value === null ? null : encode ? encode(value) : (value as SqlValue)

/** How a schema represents a missing member; undefined when it must not be missing. */
function absenceIn(schema: v.GenericSchema & { readonly wrapped?: v.GenericSchema }): 'absent' | 'null' | undefined {
  if (/^(optional|exact_optional|undefinedable|nullish)$/.test(schema.type)) return 'absent'
  if (schema.type === 'nullable') return 'null'
  return schema.wrapped && absenceIn(schema.wrapped)
}

/**
 * The rows of a table whose SQL is in a migration: `table('acme_run', { id: text(), lease_until: time().optional() })`, with `const
 * { text, time } = column`. Name and columns must be constants of the plugin, never input.
 */
export function table<const C extends Columns>(name: string, columns: C): Table<C> {
  return new Table(name, columns)
}

/** A condition of a query with the values of its parameters. It applies unless one of them is undefined. */
export type Condition = readonly [sql: string, ...values: (SqlValue | undefined)[]]

/** All conditions that apply, joined by AND, and their parameters. */
export function matching(...conditions: readonly Condition[]): { readonly sql: string; readonly params: SqlValue[] } {
  const given = conditions.filter((one): one is [string, ...SqlValue[]] => !one.includes(undefined))
  return { sql: given.map(([sql]) => sql).join(' AND ') || 'true', params: given.flatMap(([, ...values]) => values) }
}
