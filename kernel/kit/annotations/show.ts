import type * as v from 'valibot'
import type { CliColumn, CliView } from './cli.js'

type Text<S extends string, V> = V extends string
  ? `${S}~time` | `${S}~ago`
  : V extends number
    ? `${S}~time` | `${S}~ago` | `${S}~duration` | `${S}~bytes`
    : V extends readonly unknown[]
      ? `${S}~list`
      : never

type Levels = readonly [never, 0, 1, 2]

/** Dotted names of the members of `T`, three levels deep, with the formats that their values can have. */
export type Member<T, D extends number = 3> = T extends readonly unknown[]
  ? never
  : T extends object
    ? {
        [K in keyof T & string]:
          | K
          | Text<K, NonNullable<T[K]>>
          | (D extends 0
              ? never
              : Member<NonNullable<T[K]>, Levels[D & keyof Levels] & number> extends infer Below extends string
                ? `${K}.${Below}`
                : never)
      }[keyof T & string]
    : never

/**
 * A column: the name of a member, `next_run`, or with a format, `next_run~ago`; an object for further options. The header is the
 * last part of the name in words, `NEXT RUN`; for a time without its `_at`.
 */
export type Column<M extends string> = M | ({ readonly of: M } & Partial<Pick<CliColumn, 'header' | 'words' | 'below'>>)

/** Options of a view beyond its columns. */
export interface ShowMore {
  /** Printed for an empty list. */
  readonly empty?: string | undefined
  /** Path of a list of texts that are printed as notes. */
  readonly problems?: string | undefined
}

type Schema = v.GenericSchema
export type Item<V> = NonNullable<V> extends readonly (infer I)[] ? I : NonNullable<V>

/** Columns of hand-written tables, checked against the type of their rows: `columnsOf<Thing>()(['name', 'updated_at~ago'])`. */
export const columnsOf =
  <T>() =>
  (columns: readonly Column<Member<T>>[]): CliColumn[] =>
    columns.map(toColumn)

/**
 * The view of a reply: a table when the member is a list, its fields otherwise. The compiler checks the names.
 * @param schema of the reply
 * @param member the member to show; `''` for the reply itself
 */
export function show<S extends Schema, const M extends '' | (keyof v.InferOutput<S> & string)>(
  schema: S,
  member: M,
  columns: readonly Column<Member<Item<M extends keyof v.InferOutput<S> ? v.InferOutput<S>[M] : v.InferOutput<S>>>>[],
  { empty, problems }: ShowMore = {},
): CliView {
  const shown = (columns as readonly Column<string>[]).map(toColumn)
  const held = member === '' ? schema : memberOf(schema, member)
  if (held === undefined) throw new TypeError(`show: the reply has no member ${member}`)
  for (const { path } of shown) checkName(held, path)
  const more = problems === undefined ? {} : { problems }
  const of = (schema as { entries?: Record<string, { type: string; wrapped?: { type: string } }> }).entries?.[member]
  if ((of?.wrapped ?? of)?.type !== 'array') return { item: member, fields: shown, ...more }
  return { rows: member, columns: shown, ...(empty === undefined ? {} : { empty }), ...more }
}

/** A view of one thing, extended by a table of the list at `path`. */
export const withTable = (view: CliView, path: string, columns: readonly CliColumn[]): CliView =>
  'item' in view ? { ...view, table: { path, columns } } : view

/** The parts of a schema that reveal its members. */
interface Shape {
  readonly type: string
  readonly entries?: Readonly<Record<string, Shape>>
  readonly wrapped?: Shape
  readonly item?: Shape
  readonly options?: readonly unknown[]
}

/** The schema of the shown value: of the items of a list, or inside an optional member. */
const inner = ({ wrapped, item, ...schema }: Shape): Shape => {
  const within = wrapped ?? (schema.type === 'array' ? item : undefined)
  return within ? inner(within) : schema
}

/** Undefined for a missing member; the schema itself when it does not list its members, as for a union. */
function memberOf(schema: Shape, name: string): Shape | undefined {
  const shape = inner(schema)
  return shape.entries ? shape.entries[name] : shape
}

/** @throws TypeError for a name that the schema lacks. This also covers callers without type checks. */
function checkName(schema: Shape, path: string): void {
  let at: Shape | undefined = schema
  for (const name of path.split('.')) {
    at = at && memberOf(at, name)
    if (!at) throw new TypeError(`show: there is no member ${path}`)
  }
}

function toColumn(column: Column<string>): CliColumn {
  const { of, ...more } = typeof column === 'string' ? { of: column } : column
  const [path = '', as] = of.split('~') as [string, CliColumn['as']]
  const name = path.split('.').at(-1) ?? ''
  const words = (as === 'time' || as === 'ago' ? name.replace(/_at$/, '') : name)
    .replaceAll('_', ' ')
    .replace(/\b(?:id|url)\b/g, word => word.toUpperCase())
  return { header: words[0]?.toUpperCase() + words.slice(1), path, ...(as && { as }), ...more }
}
