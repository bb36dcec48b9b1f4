import { annotationsOf, Thrown } from '../../kernel/kit/annotations/index.js'
import { HttpErrors } from '../../kernel/platform.js'
import { errorsOf, KernelErrors, type Plugin, type Route } from '../../kernel/plugin.js'

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

/** Codes of the plugins that are asked about every request before a route is: they may refuse any. */
const atTheDoor = ({ surface: { hooks = {}, errors = [] } }: Plugin) =>
  hooks.authenticate || hooks.admit || hooks.unrouted ? errors.flatMap(table => Object.keys(errorsOf(table))) : []

/**
 * The code of an error reply that neither its route nor the transport declares; undefined where all is well. A route that declares none
 * yet is not judged.
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
  const thrown = route ? annotationsOf(route, Thrown).flat() : []
  if (thrown.length === 0 || thrown.some(one => one.code === code)) return undefined
  return plugins.flatMap(atTheDoor).includes(code) ? undefined : code
}
