import { type ConversionConfig, toJsonSchema } from '@valibot/to-json-schema'
import { isDropIn, isSchema } from '../../../../kernel/platform.js'
import { KIND_NAME, messageOf, type Plugin } from '../../../../kernel/plugin.js'

/** Actions implemented as code have no JSON Schema; the OpenAPI document leaves them out as well. */
const ignoreActions = ['check', 'trim']
/** Schemas of input, as written by a person. */
const WRITTEN: ConversionConfig = { typeMode: 'input', ignoreActions }
const READ: ConversionConfig = { typeMode: 'output', ignoreActions }

/** Parts of a surface that cannot be documented or registered; no code of it runs. */
export function surfaceProblems({ name, requires, replaces, surface }: Plugin): string[] {
  const { kinds = [], events = [], settings = [], routes = [], registries = [], taps = [], tables = [] } = surface
  const needs = Object.values(requires).flatMap(need => ('id' in need ? need.id : []))
  // A replacement has the configuration paths of the replaced plugin, and may repeat the migrations that it inherits.
  const isOwnDropIn = isDropIn(name) && replaces === undefined
  const [prefix, inherited = prefix] = [name, replaces].flatMap(one => (one === undefined ? [] : tablePrefix(one)))
  return [
    ...kinds.flatMap(kind => [
      ...(KIND_NAME.test(kind.name) ? [] : [`kind ${kind.name}: not a valid name`]),
      ...unconvertible(`kind ${kind.name}`, kind.spec, WRITTEN),
    ]),
    ...events.flatMap(event => unconvertible(`event ${event.name}`, event.payload, { ignoreActions })),
    ...settings.flatMap(({ path, schema }) => [
      ...(isOwnDropIn && !path.startsWith(`plugins.${name}.`) ? [`setting ${path}: not below plugins.${name}.`] : []),
      ...unconvertible(`setting ${path}`, schema, WRITTEN),
    ]),
    ...routes.flatMap(({ method, path, query, body, replies }) => {
      const where = `${method} ${path}`
      return [
        ...unconvertible(`${where}: query`, query, READ),
        ...unconvertible(`${where}: body`, body, WRITTEN),
        ...Object.entries(replies).flatMap(([status, reply]) =>
          unconvertible(`${where}: reply ${status}`, reply, READ),
        ),
      ]
    }),
    ...tables.flatMap(({ id, sql }) =>
      [...sql.matchAll(/\bCREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?["'`[]?(\w+)/gi)]
        .map(([, table = '']) => table)
        .filter(table => isDropIn(name) && ![prefix, inherited].some(start => table.startsWith(`${start}`)))
        .map(table => `table ${table} of migration ${id}: its name does not begin with ${prefix}`),
    ),
    ...registries.flatMap(({ to }) => (to.registry.includes('@') ? [] : `registry ${to.registry}: it has no major`)),
    ...taps.flatMap(({ on }) => ('maybe' in on || needs.includes(on.id) ? [] : `${on.id} is tapped but not required`)),
    ...twice('kind', kinds, kind => kind.name),
    ...twice('route', routes, route => `${route.method} ${route.path.replace(/\{[^}]+\}/g, '{}')}`),
    ...twice('setting', settings, setting => setting.path),
  ]
}

const tablePrefix = (name: string) => `${name.replace(/[.-]/g, '_')}_`

function unconvertible(what: string, schema: unknown, options: ConversionConfig): string[] {
  if (!isSchema(schema)) return []
  try {
    toJsonSchema(schema, options)
    return []
  } catch (error) {
    return [`${what}: ${messageOf(error)}`]
  }
}

function twice<T>(what: string, entries: readonly T[], keyOf: (entry: T) => string): string[] {
  const keys = entries.map(keyOf)
  return keys.filter((key, at) => keys.indexOf(key) < at).map(key => `${what} ${key}: duplicate`)
}
