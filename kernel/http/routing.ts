import Router from 'find-my-way'
import type { BoundRoute } from '../contract/bound.js'
import { Fault, messageOf } from '../contract/errors.js'
import { ifPossible } from '../kit/system-calls.js'
import { type PipelineContext, type ServedRoute, serveRoute } from './serve-route.js'

/** The route of a request, and the routing that found it. */
export interface Found {
  readonly routing: Routing
  /** Undefined when no route matches, and for a path that cannot be decoded. */
  readonly route?: ServedRoute
  /** The parameters in its path. */
  readonly params: Readonly<Record<string, string>>
}

type Branch = ReturnType<typeof branchOf>

/** Routes with one head, with a router that is made for their first request. */
function branchOf(routes: readonly BoundRoute[], context: PipelineContext) {
  // A router may refuse unusual paths and duplicates. It is made at once for them, so that the publish fails and not a request.
  let made = arePlain(routes) ? undefined : routerOf(routes, context)
  const router = () => {
    made ??= routerOf(routes, context)
    return made
  }
  return { routes, router }
}

/**
 * All routes by their head, the first two segments of a path: no request competes for routes with different heads. A route with a
 * parameter in its head is in every branch.
 */
export class Routing {
  private readonly branches = new Map<string, Branch>()

  /**
   * Branches of `before` stay when their routes do.
   * @throws Fault `route_refused` for a route that cannot be served
   */
  constructor(routes: readonly BoundRoute[], context: PipelineContext, before?: Routing) {
    const groups = new Map<string, readonly BoundRoute[]>([[OPEN, []]])
    for (const bound of routes) {
      const path = headOf(bound.route.path)
      const head = PLAIN_HEAD.test(path) ? path : OPEN
      groups.set(head, [...(groups.get(head) ?? []), bound])
    }
    const open = groups.get(OPEN) ?? []
    for (const [head, group] of groups) {
      const mine = group === open ? open : [...open, ...group]
      const known = before?.branches.get(head)
      const stays = known?.routes.length === mine.length && mine.every((bound, i) => bound === known.routes[i])
      this.branches.set(head, stays ? known : branchOf(mine, context))
    }
  }

  find(method: string, url: string): Found {
    let head = headOf(url)
    if (head.includes('%')) head = ifPossible(() => decodeURI(head)) ?? OPEN
    const branch = (this.branches.get(head) ?? this.branches.get(OPEN)) as Branch
    const found = branch.router().find(method as 'GET', url)
    return { routing: this, route: found?.store, params: (found?.params ?? {}) as Found['params'] }
  }
}

/**
 * A router with these routes.
 * @throws Fault `route_refused` for a route that cannot be served, with its plugin
 */
export function routerOf(routes: readonly BoundRoute[], context: PipelineContext) {
  const router = Router({ maxParamLength: 5000, ignoreTrailingSlash: true, querystringParser: () => ({}) })
  for (const bound of routes) {
    const { method, path, bodyLimit = 0 } = bound.route
    try {
      if (!(Number.isInteger(bodyLimit) && bodyLimit >= 0)) throw new TypeError(`bodyLimit ${bodyLimit} is no size`)
      router.on(method, path.replace(/\{([^}]+)\}/g, ':$1'), () => {}, serveRoute(bound, context))
    } catch (cause) {
      throw new Fault('route_refused', 422, messageOf(cause), { details: { plugin: bound.owner }, cause })
    }
  }
  return router
}

/** Key of the branch for all heads without a branch, which no path has. */
const OPEN = '*'
/** The first two segments of a path, as they are sent. */
const headOf = (url: string): string => (HEAD.exec(url)?.[0] ?? OPEN).replace(/\/$/, '')
const HEAD = /^\/[^/?#]*(?:\/[^/?#]*)?/
const PLAIN_HEAD = /^[\w./~-]*$/

/** Whether a router certainly takes these routes. */
function arePlain(routes: readonly BoundRoute[]): boolean {
  const shapes = new Set(routes.map(({ route: { method, path } }) => `${method} ${path.replace(/\{\w+\}/g, '{}')}`))
  return shapes.size === routes.length && [...shapes].every(shape => PLAIN.test(shape))
}
const PLAIN = /^(?:GET|PUT|POST|PATCH|DELETE) (?:\/(?:[\w.~-]+|\{\}))+$/
