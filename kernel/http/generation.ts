import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { BoundRoute } from '../contract/bound.js'
import type { InjectReply, InjectRequest } from '../contract/kernel-tokens.js'
import type { Actor } from '../contract/record.js'
import { ACTING, type Entrance } from './entrance.js'
import { sendFault, translated } from './fault-reply.js'
import * as parts from './parts.js'
import { bodyOf } from './request.js'
import type { TransportOptions } from './transport.js'

/** The context of a generation. */
export interface GenerationContext extends TransportOptions {
  readonly entrance: Entrance
}

/**
 * One booted Fastify instance that only routes: it never listens, and a change of plugins builds another one. It holds no socket,
 * timer or hook, so it needs no close, which would refuse requests in Fastify's words; the garbage collector frees it after its
 * last request.
 */
export class Generation {
  private constructor(
    readonly routes: readonly BoundRoute[],
    private readonly app: FastifyInstance,
    private readonly context: GenerationContext,
  ) {}

  static async build(routes: readonly BoundRoute[], context: GenerationContext): Promise<Generation> {
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
    return new Generation(routes, app, context)
  }

  get route(): Entrance['route'] {
    return this.app.routing
  }

  async inject({ method, url, headers, body }: InjectRequest, as?: Actor): Promise<InjectReply> {
    const { ids, entrance } = this.context
    const key = ids.id('act')
    const payload = body === undefined || body instanceof Uint8Array ? body : JSON.stringify(body)
    const typed = body === undefined ? {} : { 'content-type': 'application/json' }
    entrance.acting.set(key, as)
    try {
      const reply = await this.app.inject({
        method: method as 'GET',
        url: DOTS.test(url) ? NO_PATH : url,
        headers: { ...typed, ...headers, [ACTING]: key },
        ...(payload === undefined ? {} : { payload: payload as Buffer }),
      })
      return { status: reply.statusCode, headers: reply.headers, body: reply.body, bytes: reply.rawPayload }
    } finally {
      entrance.acting.delete(key)
    }
  }
}

/**
 * Path for URLs with dot segments. An id in a path that a plugin composed may be `..`, and resolving it would reach another route.
 */
const NO_PATH = '/no-path-with-dots'
const DOTS = /^[^?#]*\/(?:\.|%2e){1,2}(?:[/?#]|$)/i

function noCompiler(): never {
  throw new Error('a route has a Fastify schema; put a valibot schema into the route definition')
}
