import Router from 'find-my-way'
import type { BoundRoute } from '../contract/bound.js'
import { Fault, messageOf } from '../contract/errors.js'
import type { Route } from '../contract/route.js'
import { type PipelineContext, type ServedRoute, serveRoute } from './serve-route.js'

/** What a routing found for a request. */
export interface Found {
  readonly routing: Routing
  /** Undefined when no route matches, and for a path that cannot be decoded. */
  readonly route?: ServedRoute
  /** The parameters in its path. */
  readonly params: Readonly<Record<string, string>>
}

/** Routes with one head, with a router that is made for their first request. */
class Branch {
  #router: Router.Instance<Router.HTTPVersion.V1> | undefined

  constructor(
    readonly routes: readonly BoundRoute[],
    private readonly context: PipelineContext,
  ) {}

  router(): Router.Instance<Router.HTTPVersion.V1> {
    this.#router ??= routerOf(this.routes, this.context)
    return this.#router
  }
}

/** All routes by their head, the first two segments of a path: no request competes for routes with different heads. */
export class Routing {
  private readonly branches = new Map<string, Branch>()
  /** Finds routes for other heads: those with a parameter in their head, which every branch has. */
  private readonly rest: Branch

  /**
   * Branches of `before` stay when their routes do.
   * @throws Fault `route_refused` for a route that cannot be served
   */
  constructor(routes: readonly BoundRoute[], context: PipelineContext, before?: Routing) {
    const isOpen = ({ route }: BoundRoute) => !PLAIN_HEAD.test(headOf(route.path))
    const open = routes.filter(isOpen)
    const groups = new Map<string, BoundRoute[]>()
    for (const bound of routes) {
      if (isOpen(bound)) continue
      const head = headOf(bound.route.path)
      const group = groups.get(head)
      if (group) group.push(bound)
      else groups.set(head, [...open, bound])
    }
    const branch = (mine: readonly BoundRoute[], known: Branch | undefined) => {
      if (known?.routes.length === mine.length && mine.every((bound, i) => bound === known.routes[i])) return known
      const made = new Branch(mine, context)
      // Throws now what it would throw at the first request.
      if (!arePlain(mine.map(({ route }) => route))) made.router()
      return made
    }
    for (const [head, mine] of groups) this.branches.set(head, branch(mine, before?.branches.get(head)))
    this.rest = branch(open, before?.rest)
  }

  find(method: string, url: string): Found {
    let head = headOf(url)
    try {
      if (head.includes('%')) head = decodeURI(head)
    } catch {
      return { routing: this, params: {} }
    }
    const branch = this.branches.get(head) ?? this.rest
    const found = branch.router().find(method as 'GET', url)
    return { routing: this, route: found?.store, params: (found?.params ?? {}) as Found['params'] }
  }
}

/**
 * A router with these routes.
 * @throws Fault `route_refused` for a route that cannot be served, with its plugin
 */
export function routerOf(routes: readonly BoundRoute[], context: PipelineContext) {
  const router = Router({ maxParamLength: 5000, ignoreTrailingSlash: true, querystringParser: noQuery })
  for (const bound of routes) {
    const { method, path } = bound.route
    try {
      router.on(method, path.replace(/\{([^}]+)\}/g, ':$1'), noHandler, serveRoute(bound, context))
    } catch (cause) {
      throw new Fault('route_refused', 422, messageOf(cause), { details: { plugin: bound.owner }, cause })
    }
  }
  return router
}

/** The first two segments of a path, as they are sent. */
const headOf = (url: string): string => (HEAD.exec(url)?.[0] ?? '*').replace(/\/$/, '')
const HEAD = /^\/[^/?#]*(?:\/[^/?#]*)?/
const PLAIN_HEAD = /^[\w./~-]*$/

/** Whether a router certainly takes these routes. */
function arePlain(routes: readonly Route[]): boolean {
  const shapes = new Set(routes.map(({ method, path }) => `${method} ${path.replace(/\{\w+\}/g, '{}')}`))
  return shapes.size === routes.length && [...shapes].every(shape => PLAIN.test(shape))
}
const PLAIN = /^(?:GET|PUT|POST|PATCH|DELETE) (?:\/(?:[\w.~-]+|\{\}))+$/

const noQuery = () => ({})
const noHandler = () => {}
