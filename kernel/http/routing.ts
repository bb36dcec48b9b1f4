import type { IncomingMessage, ServerResponse } from 'node:http'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { BoundRoute } from '../contract/bound.js'
import { type Fault, faultOf, KernelErrors } from '../contract/errors.js'
import type { InjectReply, InjectRequest } from '../contract/kernel-tokens.js'
import type { Actor } from '../contract/record.js'
import type { Route } from '../contract/route.js'
import { ACTING, type Entrance } from './entrance.js'
import { sendFault, translated } from './fault-reply.js'
import * as parts from './parts.js'
import { writeFault } from './reply.js'
import { bodyOf } from './request.js'
import type { TransportOptions } from './transport.js'

/** The context of a branch. */
export interface BranchContext extends TransportOptions {
  readonly entrance: Entrance
}

/**
 * Routes with one head, as a Fastify instance that boots at its first request. The instance never listens, and a change of its routes
 * leaves it to the garbage collector: it holds no socket, timer or hook, and closing it would refuse requests in Fastify's words.
 */
class Branch {
  /** Its instance, once that has booted. */
  app: FastifyInstance | undefined
  #booting: Promise<FastifyInstance> | undefined

  constructor(
    readonly routes: readonly BoundRoute[],
    private readonly context: BranchContext,
  ) {}

  /** Resolves to its instance; rejects when Fastify refuses a route. */
  open(): Promise<FastifyInstance> {
    this.#booting ??= this.#boot()
    return this.#booting
  }

  async #boot(): Promise<FastifyInstance> {
    const { routes, context } = this
    const app = fastify({
      exposeHeadRoutes: false,
      requestIdHeader: false,
      genReqId: context.ids.id.bind(context.ids, 'req'),
      routerOptions: { maxParamLength: 5000, ignoreTrailingSlash: true },
      // Schemas are never Fastify's. This keeps it from loading their compilers (ajv and more, 40 ms).
      schemaController: { compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler } },
      frameworkErrors: (error, request, reply) =>
        sendFault(translated(error), request as FastifyRequest, reply as unknown as FastifyReply, context),
    })
    app.register(parts.entrance, { context })
    app.register(parts.errors, { context })
    app.register(parts.bodies, { context })
    for (const kind of ['json', 'raw', 'stream'] as const) {
      const mine = routes.filter(({ route }) => bodyOf(route) === kind)
      if (mine.length > 0) app.register(parts.routes, { context, kind, routes: mine })
    }
    app.register(parts.unrouted, { context })
    await app.ready()
    this.app = app
    return app
  }
}

/** All routes by their head, the first two segments of a path: no request competes for routes with different heads. */
export class Routing {
  private constructor(
    private readonly branches: ReadonlyMap<string, Branch>,
    /** Serves the other heads: it has the routes with a parameter in their head, as every branch has, or none. */
    private readonly rest: Branch,
    private readonly context: BranchContext,
  ) {}

  /**
   * The routing of these routes; branches of `before` stay when their routes do. Rejects when Fastify refuses a route, which it is
   * asked at once only about unusual ones.
   */
  static async of(routes: readonly BoundRoute[], context: BranchContext, before?: Routing): Promise<Routing> {
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
    const branch = async (mine: readonly BoundRoute[], known: Branch | undefined) => {
      if (known?.routes.length === mine.length && mine.every((bound, i) => bound === known.routes[i])) return known
      const made = new Branch(mine, context)
      if (!arePlain(mine.map(({ route }) => route))) await made.open()
      return made
    }
    const branches = new Map<string, Branch>()
    for (const [head, mine] of groups) branches.set(head, await branch(mine, before?.branches.get(head)))
    return new Routing(branches, await branch(open, before?.rest), context)
  }

  /** Why these routes cannot be served; undefined when they can. */
  static refusal(routes: readonly BoundRoute[], context: BranchContext): Promise<Fault | undefined> {
    return new Branch(routes, context).open().then(() => undefined, faultOf)
  }

  serve(request: IncomingMessage, response: ServerResponse): void {
    const branch = this.#branchOf(request.url ?? '')
    const route = (app: FastifyInstance) => app.routing(request, response)
    const failed = (error: unknown) => {
      this.context.report({ owner: 'kernel', hook: 'routes', error })
      writeFault(response, KernelErrors.internal())
    }
    if (branch.app) route(branch.app)
    // A caller who hangs up meanwhile gives no further sign of it.
    else branch.open().then(app => response.destroyed || route(app), failed)
  }

  async inject({ method, url, headers, body }: InjectRequest, as?: Actor): Promise<InjectReply> {
    const { ids, entrance } = this.context
    const key = ids.id('act')
    const target = DOTS.test(url) ? NO_PATH : url
    const payload = body === undefined || body instanceof Uint8Array ? body : JSON.stringify(body)
    const typed = body === undefined ? {} : { 'content-type': 'application/json' }
    const branch = this.#branchOf(target)
    const app = branch.app ?? (await branch.open())
    entrance.acting.set(key, as)
    try {
      const reply = await app.inject({
        method: method as 'GET',
        url: target,
        headers: { ...typed, ...headers, [ACTING]: key },
        ...(payload === undefined ? {} : { payload: payload as Buffer }),
      })
      return { status: reply.statusCode, headers: reply.headers, body: reply.body, bytes: reply.rawPayload }
    } finally {
      entrance.acting.delete(key)
    }
  }

  #branchOf(url: string): Branch {
    let head = headOf(url)
    try {
      if (head.includes('%')) head = decodeURI(head)
    } catch {
      // Its router refuses the path.
    }
    return this.branches.get(head) ?? this.rest
  }
}

/** The first two segments of a path, as they are sent. */
const headOf = (url: string): string => (HEAD.exec(url)?.[0] ?? '*').replace(/\/$/, '')
const HEAD = /^\/[^/?#]*(?:\/[^/?#]*)?/

/** Whether Fastify certainly takes these routes: what it does with any other is found out by asking it. */
function arePlain(routes: readonly Route[]): boolean {
  const shapes = new Set(routes.map(({ method, path }) => `${method} ${path.replace(/\{\w+\}/g, '{}')}`))
  return (
    shapes.size === routes.length &&
    routes.every(
      ({ method, path, bodyLimit = 1 }) =>
        PLAIN.test(`${method} ${path}`) && Number.isInteger(bodyLimit) && bodyLimit > 0,
    )
  )
}
const PLAIN = /^(?:GET|PUT|POST|PATCH|DELETE) (?:\/(?:[\w.~-]+|\{\w+\}))+$/
const PLAIN_HEAD = /^[\w./~-]*$/

/**
 * Path for URLs with dot segments. An id in a path that a plugin composed may be `..`, and resolving it would reach another route.
 */
const NO_PATH = '/no-path-with-dots'
const DOTS = /^[^?#]*\/(?:\.|%2e){1,2}(?:[/?#]|$)/i

function noCompiler(): never {
  throw new Error('a route has a Fastify schema; put a valibot schema into the route definition')
}
