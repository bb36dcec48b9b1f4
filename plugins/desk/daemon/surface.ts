import { annotationOf, annotationsOf, Cli, RouteTool } from '../../../kernel/kit/annotations/index.js'
import type { PluginInfo } from '../../../kernel/platform.js'
import { errorsOf, type HostView, type Plugin } from '../../../kernel/plugin.js'
import type { PluginOffer } from '../../../schemas/daemon.js'

type Info = Pick<PluginInfo, 'name' | 'hooks'>

/**
 * Everything a plugin offers to others, one entry each: the requirements for a replacement, and what an extension can use or tap.
 * Read from the surfaces, without calling the plugin.
 */
export function offersOf(info: Info, host: Pick<HostView, 'plugins' | 'pluginOf'>): PluginOffer[] {
  const plugin = host.pluginOf(info.name)
  if (!plugin) return []
  const { provides, surface } = plugin
  const { routes = [], commands = [], kinds = [], events = [], settings = [], errors = [] } = surface
  const { declares = [], registries = [], tables = [] } = surface
  const others = host.plugins().flatMap(({ name }) => (name === info.name ? [] : (host.pluginOf(name) ?? [])))
  const users = (uses: (other: Plugin) => boolean) => {
    const names = others.filter(uses).map(({ name }) => name)
    return names.length === 0 ? {} : { used_by: names }
  }
  const requires = (id: string) => (other: Plugin) => Object.values(other.requires).some(need => idOf(need) === id)
  const tapsOf = (other: Plugin) =>
    (other.surface.taps ?? []).filter(({ on }) => idOf(on) === provides?.id).map(({ hook }) => pathOf(hook))
  const paths = [...new Set(others.flatMap(tapsOf))].sort()
  return [
    ...(provides ? [{ what: 'service', name: provides.id, ...users(requires(provides.id)) } as const] : []),
    ...routes.map(
      ({ method, path, summary }) => ({ what: 'route', name: `${method} ${path}`, about: summary }) as const,
    ),
    ...routes.flatMap(route => {
      const command = annotationOf(route, Cli)
      return command ? [{ what: 'command', name: `svc ${command.path}`, about: route.summary } as const] : []
    }),
    ...commands.map(({ path, summary }) => ({ what: 'command', name: `svc ${path}`, about: summary }) as const),
    ...routes.flatMap(route =>
      annotationsOf(route, RouteTool).map(
        ({ name, description }) => ({ what: 'tool', name, about: description ?? route.summary }) as const,
      ),
    ),
    ...kinds.map(({ name }) => ({ what: 'kind', name }) as const),
    ...events.map(({ name }) => ({ what: 'event', name }) as const),
    ...settings.map(({ path, apply }) => ({ what: 'setting', name: path, about: apply }) as const),
    ...errors.flatMap(table =>
      Object.entries(errorsOf(table)).map(
        ([code, { message }]) => ({ what: 'error', name: code, about: message }) as const,
      ),
    ),
    ...info.hooks.map(({ kind, name, summary }) => ({ what: 'hook', name, about: `${kind}: ${summary}` }) as const),
    ...paths.map(name => ({ what: 'tapped', name, ...users(other => tapsOf(other).includes(name)) }) as const),
    ...declares.map(({ registry }) => {
      const fills = ({ surface: { registries = [] } }: Plugin) => registries.some(({ to }) => to.registry === registry)
      return { what: 'registry', name: registry, ...users(fills) } as const
    }),
    ...registries.map(({ to }) => ({ what: 'entries', name: to.registry }) as const),
    ...tables.flatMap(({ sql }) => tablesIn(sql).map(name => ({ what: 'table', name }) as const)),
  ]
}

const idOf = (need: Plugin['requires'][string]) => ('maybe' in need ? need.maybe.id : need.id)

const tablesIn = (sql: string) =>
  [...sql.matchAll(/\bCREATE TABLE (?:IF NOT EXISTS )?(\w+)/gi)].map(([, name = '']) => name)

/** The path of a hook, such as `turn.ending` or `of(…)`: records the members that a function reads. */
function pathOf(find: (service: unknown) => unknown): string {
  let path = ''
  const recorder: unknown = new Proxy(() => {}, {
    get: (_, member) => {
      path += `${path === '' ? '' : '.'}${String(member)}`
      return recorder
    },
    apply: () => {
      path += '(…)'
      return recorder
    },
  })
  try {
    find(recorder)
  } catch {
    // The path read before the error is sufficient.
  }
  return path
}
