import { annotationsOf, Thrown } from '../../kernel/kit/annotations/index.js'
import { HttpErrors } from '../../kernel/platform.js'
import { errorsOf, KernelErrors, type Plugin, type Route } from '../../kernel/plugin.js'
import { inTree } from '../../plugins/index.js'

/** Codes that any route can answer with: those of the kernel, of its doors, and of a tap that failed. */
const TRANSPORT: ReadonlySet<string> = new Set([
  ...Object.keys(errorsOf(KernelErrors)),
  ...Object.keys(errorsOf(HttpErrors)),
  'hook_failed',
])

const segments = (path: string) => path.split('/').filter(Boolean)

/** The route that serves a path; a literal segment wins over a parameter, the leftmost difference decides. */
function routeAt(routes: readonly Route<never>[], method: string, path: string): Route<never> | undefined {
  const wanted = segments(path)
  const isParameter = (segment: string) => segment.startsWith('{')
  const rank = (route: Route<never>) =>
    segments(route.path)
      .map(segment => Number(isParameter(segment)))
      .join('')
  return routes
    .filter(route => {
      const template = segments(route.path)
      return (
        route.method === method &&
        template.length === wanted.length &&
        template.every((segment, i) => isParameter(segment) || segment === wanted[i])
      )
    })
    .sort((a, b) => rank(a).localeCompare(rank(b)))[0]
}

const codesOf = ({ surface: { errors = [] } }: Plugin) => errors.flatMap(table => Object.keys(errorsOf(table)))

/** Whether a plugin is asked about a request before its route is, so that it may refuse the routes of all plugins. */
function isAtTheDoor(plugin: Plugin, owner: Plugin | undefined): boolean {
  const { authenticate, admit, unrouted } = plugin.surface.hooks ?? {}
  return Boolean(authenticate || admit || (unrouted && plugin !== owner))
}

/** Routes of the package to which other plugins add errors of their own: through a gate, or because they serve the call. */
const OPEN: ReadonlySet<string> = new Set([
  'DELETE /api/agents/{name}',
  'POST /api/tools/{id}/invoke',
  'PUT /api/resources/{kind}/{id}',
  'DELETE /api/resources/{kind}/{id}',
  'POST /api/extensions/{name}/disable',
  'DELETE /api/extensions/{name}',
])

const ofPackage: ReadonlySet<Plugin> = new Set(inTree)

/**
 * The code of an error reply that neither its route nor the transport declares; undefined where all is well. A code of the plugin
 * itself is judged for every plugin of the package. One of another plugin is judged where the route declares any.
 */
export function undeclaredCode(
  plugins: readonly Plugin[],
  { method, path, status, body }: { method: string; path: string; status: number; body: unknown },
): string | undefined {
  const { code } = Object(body) as { code?: unknown }
  if (status < 400 || typeof code !== 'string' || TRANSPORT.has(code)) return undefined
  const route = routeAt(
    plugins.flatMap(({ surface }) => surface.routes ?? []),
    method,
    path,
  )
  if (!route) return undefined
  const owner = plugins.find(({ surface }) => surface.routes?.some(one => one === route))
  const thrown = annotationsOf(route, Thrown).flat()
  if (thrown.some(one => one.code === code)) return undefined
  if (plugins.some(plugin => isAtTheDoor(plugin, owner) && codesOf(plugin).includes(code))) return undefined
  if (owner && ofPackage.has(owner) && codesOf(owner).includes(code)) return code
  return thrown.length === 0 || OPEN.has(`${route.method} ${route.path}`) ? undefined : code
}
