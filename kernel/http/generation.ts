import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { BoundRoute } from '../contract/bound.js'
import type { InjectReply, InjectRequest } from '../contract/kernel-tokens.js'
import type { Actor } from '../contract/record.js'
import { ACTING, type Entrance } from './entrance.js'
import { sendFault, translated } from './fault-reply.js'
import * as parts from './parts.js'
import { bodyOf } from './request.js'
import type { TransportOptions } from './transport.js'

/** What a generation needs of its transport. */
export interface GenerationContext extends TransportOptions {
  readonly entrance: Entrance
}

/**
 * One booted Fastify instance that routes and nothing more: it never listens; a change of plugins builds another one. It
 * holds no socket, timer or hook, so nobody closes it (a closing one would refuse requests in its own words): it is gone
 * when its last request is.
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
      // No schema is ever Fastify's: this keeps it from loading the compilers for them (ajv and more, 40 ms).
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

/** In a path that a plugin put together they are an id, and would lead to another route where the path is made short: to none. */
const NO_PATH = '/no-path-with-dots'
const DOTS = /^[^?#]*\/(?:\.|%2e){1,2}(?:[/?#]|$)/i

function noCompiler(): never {
  throw new Error('a route has a schema of Fastify; schemas here are valibot, in the route definition')
}
