import { canRunCode } from '../../../kernel/kit/annotations/index.js'
import type { Route } from '../../../kernel/plugin.js'
import type { RouteAccess } from '../../../schemas/daemon/auth.js'

export type Access = RouteAccess['access']
export type Caller = keyof Access
/** The access class of a route, which determines its permitted callers. */
export type RouteClass = 'public' | 'ordinary' | 'privileged' | 'credentials'

/**
 * Access by route class and caller:
 * - `socket`: the Unix socket, which only the daemon's user can open
 * - `own_user`: a process of that user over loopback TCP while `http.trust_own_user` is on
 * - `agent_session`: an agent that uses the socket or token of its session; `own` on routes that list it in `origins`
 * - `nobody`: a request without a valid token; an invalid token is refused on public routes too
 *
 * `local` means refused (403) if TCP is bound beyond loopback; `token` means only with the operator token in addition.
 */
export const rules: Readonly<Record<RouteClass, Access>> = {
  public: {
    socket: 'yes',
    operator_token: 'yes',
    api_key: 'yes',
    own_user: 'yes',
    agent_session: 'yes',
    nobody: 'yes',
  },
  ordinary: {
    socket: 'yes',
    operator_token: 'yes',
    api_key: 'yes',
    own_user: 'yes',
    agent_session: 'no',
    nobody: 'no',
  },
  privileged: {
    socket: 'yes',
    operator_token: 'local',
    api_key: 'local',
    own_user: 'yes',
    agent_session: 'no',
    nobody: 'no',
  },
  credentials: {
    socket: 'token',
    operator_token: 'local',
    api_key: 'no',
    own_user: 'token',
    agent_session: 'no',
    nobody: 'no',
  },
}

type Marks = Pick<Route, 'public' | 'privileged' | 'headers'>

export function classOf({ public: isPublic, privileged, headers }: Marks): RouteClass {
  if (headers?.Authorization?.required) return 'credentials'
  if (isPublic) return 'public'
  return privileged ? 'privileged' : 'ordinary'
}

/** Access to one route, as one row of the matrix. */
export function accessTo(plugin: string, route: Route): RouteAccess {
  const { method, path } = route
  const routeClass = classOf(route)
  const rule = rules[routeClass]
  const access = route.origins?.includes('agent_session') ? { ...rule, agent_session: 'own' as const } : rule
  return { method, path, plugin, runs_code: canRunCode(route), class: routeClass, access }
}
