import * as v from 'valibot'
import type { Annotation } from '../../contract/route.js'
import type { AnnotationKind, DataOf } from './kind.js'

const text = v.pipe(v.string(), v.minLength(1))
const texts = v.record(v.string(), v.string())
/** A dotted path; empty for the reply itself. */
const dotted = v.string()
const flag = v.exactOptional(v.literal(true))

const Column = v.strictObject({
  header: text,
  /** Path of its cells. */
  path: dotted,
  as: v.exactOptional(v.picklist(['time', 'ago', 'duration', 'bytes', 'list'])),
  /** Texts that replace codes. */
  words: v.exactOptional(texts),
  /** In a table wider than the terminal this cell is printed on a line of its own below the row instead of being cut. */
  below: flag,
})
/** A column: header, dotted path of its cells, and their format. */
export type CliColumn = DataOf<typeof Column>
const columns = v.array(Column)

const ListTable = v.strictObject({ path: dotted, columns, empty: v.exactOptional(v.string()) })
/** A list of the item that is printed as a table below its fields; `empty`, if any, replaces an empty one. */
export type CliTable = DataOf<typeof ListTable>

const View = v.union([
  v.strictObject({
    /** Path of the list; several paths, separated by spaces, add up, and an object among them is one row. */
    rows: dotted,
    columns,
    empty: v.exactOptional(v.string()),
    /** Path of a list of texts that explain missing rows. They are printed as notes, and replace `empty`. */
    problems: v.exactOptional(dotted),
  }),
  v.strictObject({
    item: dotted,
    fields: columns,
    table: v.exactOptional(ListTable),
    /** Path of a list of texts about the item, from the root of the reply. They are printed as notes. */
    problems: v.exactOptional(dotted),
  }),
  v.strictObject({ text: v.string() }),
])
/** How the command line renders a reply. Paths are dotted. */
export type CliView = DataOf<typeof View>

const Argument = v.strictObject({
  /** Name of the path parameter, query member or top-level body member that it sets. */
  name: text,
  in: v.exactOptional(v.picklist(['path', 'query', 'body'])),
  /** `path`: a file-system path that the command line resolves; `workspace`: an id, a name, or a path that it resolves. */
  type: v.exactOptional(v.picklist(['text', 'path', 'workspace'])),
  optional: v.exactOptional(v.boolean()),
  default: v.exactOptional(v.string()),
  summary: v.exactOptional(v.string()),
  /** An option of the same name is accepted as well. */
  option: flag,
})
/** A positional argument of a route's command. */
export type CliArgument = DataOf<typeof Argument>

const Scoped = v.strictObject({
  scope: text,
  workspace: text,
  /** Outside of all workspaces the command registers the project of the current directory. By default the scope is global there. */
  opens: flag,
})
/**
 * The members of a body that hold its scope (`global` or `workspace`) and its workspace. The caller's workspace is the default
 * of both.
 */
export type CliScoped = DataOf<typeof Scoped>

const Shorthand = v.strictObject({
  option: text,
  member: text,
  value: texts,
  type: v.picklist(['text', 'time']),
  summary: v.string(),
})
/**
 * `--every 1h` for `{"mode":"every","interval":"1h"}`. A `time` without a zone is in `--time-zone`, else in the caller's zone; a part
 * `$zone` is that option itself, absent without it.
 */
export type CliShorthand = DataOf<typeof Shorthand>

const Route = v.strictObject({
  /** `things parts start` */
  path: v.pipe(v.string(), v.regex(/^[a-z][a-z0-9-]*( [a-z][a-z0-9-]*)*$/, 'lower case words joined by spaces')),
  /** Positional arguments; default: the path parameters in order. Other query and scalar body members become options. */
  args: v.exactOptional(v.array(Argument)),
  /** Options whose name differs from their member's: `{ thing_name: 'thing' }`. */
  options: v.exactOptional(texts),
  /** Options that set a body member to `value`, with `$` replaced by the argument. Two options for one member exclude each other. */
  shorthands: v.exactOptional(v.array(Shorthand)),
  /** The option or optional argument whose default is the caller's workspace. */
  workspace: v.exactOptional(text),
  scoped: v.exactOptional(Scoped),
  /** Query members whose default is a variable of the caller's environment: `{ search_path: 'PATH' }`. */
  environment: v.exactOptional(texts),
  /** Path parameters that the command line reads from the reply of a GET route instead of an argument. */
  find: v.exactOptional(v.record(v.string(), v.strictObject({ path: text, pick: text }))),
  /** The stream route that `--follow` reads, with the same path parameters. */
  follow: v.exactOptional(v.strictObject({ path: text, query: v.exactOptional(texts) })),
  view: v.exactOptional(View),
  /** Message after a success without a body; `{id}` is replaced by the parameter of that name. */
  done: v.exactOptional(v.string()),
})
/** The command of a route. */
export type RouteCli = DataOf<typeof Route>

export const Cli: AnnotationKind<RouteCli> = { of: 'cli@1', schema: Route }

/**
 * The command of a route.
 * @param path `things parts start`
 */
export const cli = (path: string, more: Omit<RouteCli, 'path'> = {}): Annotation => ({
  of: Cli.of,
  data: { path, ...more },
  claims: `command ${path}`,
})
