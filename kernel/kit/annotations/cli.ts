import * as v from 'valibot'
import type { Annotation } from '../../contract/route.js'
import type { AnnotationKind } from './kind.js'

/** How the command line renders a reply. Paths are dotted. */
export type CliView =
  | {
      readonly rows: string
      readonly columns: readonly CliColumn[]
      readonly empty?: string
      /** Path of a list of texts that explain missing rows. They are printed as notes, and replace `empty`. */
      readonly problems?: string
    }
  | {
      readonly item: string
      readonly fields: readonly CliColumn[]
      readonly table?: CliTable
      /** Path of a list of texts about the item, from the root of the reply. They are printed as notes. */
      readonly problems?: string
    }
  | { readonly text: string }

/** A list of the item that is printed as a table below its fields unless it is empty. */
export type CliTable = { readonly path: string; readonly columns: readonly CliColumn[] }

/** A column: header, dotted path of its cells, and their format. */
export interface CliColumn {
  readonly header: string
  readonly path: string
  readonly as?: 'time' | 'ago' | 'duration' | 'bytes' | 'list'
  /** Texts that replace codes. */
  readonly words?: Readonly<Record<string, string>>
  /** In a table wider than the terminal this cell is printed on a line of its own below the row instead of being cut. */
  readonly below?: true
}

/** A positional argument of a route's command. */
export interface CliArgument {
  /** Name of the path parameter, query member or top-level body member that it sets. */
  readonly name: string
  readonly in?: 'path' | 'query' | 'body'
  /** `path`: a file-system path that the command line resolves; `workspace`: an id, a name, or a path that it resolves. */
  readonly type?: 'text' | 'path' | 'workspace'
  readonly optional?: boolean
  readonly default?: string
  readonly summary?: string
  /** An option of the same name is accepted as well. */
  readonly option?: true
}

/**
 * The members of a body that hold its scope (`global` or `workspace`) and its workspace. The caller's workspace is the default
 * of both.
 */
export interface CliScoped {
  readonly scope: string
  readonly workspace: string
  /** Outside of all workspaces the command registers the project of the current directory. By default the scope is global there. */
  readonly opens?: true
}

/**
 * `--every 1h` for `{"mode":"every","interval":"1h"}`. A `time` without a zone is in `--time-zone`, else in the caller's zone; a part
 * `$zone` is that option itself, absent without it.
 */
export interface CliShorthand {
  readonly option: string
  readonly member: string
  readonly value: Readonly<Record<string, string>>
  readonly type: 'text' | 'time'
  readonly summary: string
}

/** The command of a route. */
export interface RouteCli {
  /** `things parts start` */
  readonly path: string
  /** Positional arguments; default: the path parameters in order. Other query and scalar body members become options. */
  readonly args?: readonly CliArgument[]
  /** Options whose name differs from their member's: `{ thing_name: 'thing' }`. */
  readonly options?: Readonly<Record<string, string>>
  /** Options that set a body member to `value`, with `$` replaced by the argument. Two options for one member exclude each other. */
  readonly shorthands?: readonly CliShorthand[]
  /** The option or optional argument whose default is the caller's workspace. */
  readonly workspace?: string
  readonly scoped?: CliScoped
  /** Query members whose default is a variable of the caller's environment: `{ search_path: 'PATH' }`. */
  readonly environment?: Readonly<Record<string, string>>
  /** Path parameters that the command line reads from the reply of a GET route instead of an argument. */
  readonly find?: Readonly<Record<string, { readonly path: string; readonly pick: string }>>
  /** The stream route that `--follow` reads, with the same path parameters. */
  readonly follow?: { readonly path: string; readonly query?: Readonly<Record<string, string>> }
  readonly view?: CliView
  /** Message after a success without a body; `{id}` is replaced by the parameter of that name. */
  readonly done?: string
}

const text = v.pipe(v.string(), v.minLength(1))
const texts = v.record(v.string(), v.string())
const paths = v.string()

const Column = v.strictObject({
  header: text,
  path: paths,
  as: v.exactOptional(v.picklist(['time', 'ago', 'duration', 'bytes', 'list'])),
  words: v.exactOptional(texts),
  below: v.exactOptional(v.literal(true)),
})
const columns = v.array(Column)

const View = v.union([
  v.strictObject({ rows: paths, columns, empty: v.exactOptional(v.string()), problems: v.exactOptional(paths) }),
  v.strictObject({
    item: paths,
    fields: columns,
    table: v.exactOptional(v.strictObject({ path: paths, columns })),
    problems: v.exactOptional(paths),
  }),
  v.strictObject({ text: v.string() }),
])

export const Cli: AnnotationKind<RouteCli> = {
  of: 'cli@1',
  schema: v.strictObject({
    path: v.pipe(v.string(), v.regex(/^[a-z][a-z0-9-]*( [a-z][a-z0-9-]*)*$/, 'lower case words joined by spaces')),
    args: v.exactOptional(
      v.array(
        v.strictObject({
          name: text,
          in: v.exactOptional(v.picklist(['path', 'query', 'body'])),
          type: v.exactOptional(v.picklist(['text', 'path', 'workspace'])),
          optional: v.exactOptional(v.boolean()),
          default: v.exactOptional(v.string()),
          summary: v.exactOptional(v.string()),
          option: v.exactOptional(v.literal(true)),
        }),
      ),
    ),
    options: v.exactOptional(texts),
    shorthands: v.exactOptional(
      v.array(
        v.strictObject({
          option: text,
          member: text,
          value: texts,
          type: v.picklist(['text', 'time']),
          summary: v.string(),
        }),
      ),
    ),
    workspace: v.exactOptional(text),
    scoped: v.exactOptional(v.strictObject({ scope: text, workspace: text, opens: v.exactOptional(v.literal(true)) })),
    environment: v.exactOptional(texts),
    find: v.exactOptional(v.record(v.string(), v.strictObject({ path: text, pick: text }))),
    follow: v.exactOptional(v.strictObject({ path: text, query: v.exactOptional(texts) })),
    view: v.exactOptional(View),
    done: v.exactOptional(v.string()),
  }),
}

/**
 * The command of a route.
 * @param path `things parts start`
 */
export const cli = (path: string, more: Omit<RouteCli, 'path'> = {}): Annotation => ({
  of: Cli.of,
  data: { path, ...more },
  claims: `command ${path}`,
})
