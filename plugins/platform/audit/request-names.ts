import type { Route } from '../../../kernel/plugin.js'

/** Verbs for a request on a thing or a collection; every other request is named after the last word of its path. */
const VERBS: Readonly<Record<string, string>> = { POST: 'created', PUT: 'put', PATCH: 'changed', DELETE: 'deleted' }
/** Members of a reply that identify the created thing. */
const NAMES = ['id', 'name'] as const

type NamedRoute = Pick<Route, 'method' | 'path'>

/**
 * Action and subject of the audit entry for a request: `DELETE /api/agents/{name}` is `agents.deleted` of `agents/toy`, `POST
 * /api/workspaces/{id}/sessions/{session_id}/stop` is `sessions.stop`.
 */
export function namesOf(
  route: NamedRoute,
  params: Readonly<Record<string, string>>,
  reply: unknown,
): { readonly action: string; readonly subject: string } {
  const { action, of } = namesByRoute.get(route) ?? namesOfRoute(route)
  const ids = Object.values(params)
  const made = ids.length === 0 ? nameIn(reply) : undefined
  return { action, subject: [of, ...(made === undefined ? ids : [made])].join('/') }
}

/** The parts that depend on the route alone. */
const namesByRoute = new WeakMap<NamedRoute, { readonly action: string; readonly of: string }>()

function namesOfRoute(route: NamedRoute) {
  const { method, path } = route
  const parts = path.split('/').filter(part => part !== '' && part !== 'api' && part !== 'v0')
  const words = parts.filter(part => !part.startsWith('{'))
  const [noun = '', last = noun] = words.slice(-2)
  // A plural is a collection; any other single word is an action, such as drain.
  const isThing = parts.at(-1)?.startsWith('{') || (words.length === 1 && last.endsWith('s'))
  const action = isThing
    ? `${last}.${VERBS[method] ?? method.toLowerCase()}`
    : `${noun === last ? '' : `${noun}.`}${last}${method === 'POST' ? '' : `.${VERBS[method] ?? method.toLowerCase()}`}`
  const names = { action, of: isThing ? last : noun }
  namesByRoute.set(route, names)
  return names
}

/** The id or name in a reply: its own, or that of the first object in it. */
function nameIn(reply: unknown, depth = 0): string | undefined {
  if (typeof reply !== 'object' || reply === null || depth > 2) return undefined
  const own = NAMES.map(name => (reply as Record<string, unknown>)[name]).find(value => typeof value === 'string')
  if (own !== undefined) return own as string
  for (const member of Object.values(reply)) {
    const inner = Array.isArray(member) ? undefined : nameIn(member, depth + 1)
    if (inner !== undefined) return inner
  }
  return undefined
}
