import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { fastifyPlugin, type PluginMetadata } from 'fastify-plugin'
import { KernelErrors } from '../contract/errors.js'
import { clip } from '../kit/text.js'
import { sendFault, translated } from './fault-reply.js'
import { type bodyOf, readBodies } from './request.js'
import type { PipelineContext, ServedRoute } from './serve-route.js'

/** How the body of a request is read. */
export type Reading = Pick<ServedRoute, 'kind' | 'bodyLimit'>

/**
 * Fastify instances, one for each way to read a body. They boot at their first request and stay: they know no plugin and never
 * listen.
 */
export class Pipelines {
  readonly #booted = new Map<string | undefined, FastifyInstance>()
  readonly #booting = new Map<string | undefined, Promise<FastifyInstance>>()

  constructor(private readonly context: PipelineContext) {}

  /** The instance for a route, or for no route. */
  booted(reading?: Reading): FastifyInstance | undefined {
    return this.#booted.get(keyOf(reading))
  }

  async boot(reading?: Reading): Promise<void> {
    const key = keyOf(reading)
    const booting = this.#booting.get(key) ?? boot(reading, this.context)
    this.#booting.set(key, booting)
    this.#booted.set(key, await booting)
  }
}

const keyOf = (reading?: Reading) => reading && `${reading.kind} ${reading.bodyLimit}`

async function boot(reading: Reading | undefined, context: PipelineContext): Promise<FastifyInstance> {
  const app = fastify({
    ...(reading?.bodyLimit ? { bodyLimit: reading.bodyLimit } : {}),
    exposeHeadRoutes: false,
    requestIdHeader: false,
    genReqId: context.ids.id.bind(context.ids, 'req'),
    // Schemas are never Fastify's. This keeps it from loading their compilers (ajv and more, 40 ms).
    schemaController: { compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler } },
    frameworkErrors: (error, request, reply) =>
      sendFault(translated(error), request as FastifyRequest, reply as unknown as FastifyReply, context),
  })
  app.register(entrance, { context })
  app.register(errors, { context })
  app.register(bodies, { context, kind: reading?.kind ?? 'json' })
  app.register(reading ? routed : unrouted, { context })
  await app.ready()
  return app
}

function noCompiler(): never {
  throw new Error('a route has a Fastify schema; put a valibot schema into the route definition')
}

// Fastify limits the effect of a plugin to its own instance. These parts act on the instance that registers them, and declare their
// dependencies, so that a wrong order fails at boot.

/** Options of every part. */
export interface PartOptions {
  readonly context: PipelineContext
}
export interface BodiesOptions extends PartOptions {
  readonly kind: ReturnType<typeof bodyOf>
}

const part = <O extends PartOptions>(
  name: string,
  { dependencies = [], ...meta }: Pick<PluginMetadata, 'dependencies' | 'encapsulate'>,
  set: (app: FastifyInstance, options: O) => void,
) =>
  // Async, because Avvio does not catch synchronous errors.
  fastifyPlugin(async (app: FastifyInstance, options: O) => set(app, options), {
    fastify: '5.x',
    name,
    dependencies,
    ...meta,
  })

/** Members that the entrance adds to a request: its arrival, and its call once it is admitted. */
export const entrance = part('entrance', {}, app => {
  app.decorateRequest('arrival')
  app.decorateRequest('call', null)
})

/** Errors in the daemon's own format, for all routes. The arrival names the route. */
export const errors = part('errors', { dependencies: ['entrance'] }, (app, { context }) => {
  app.setErrorHandler((error, request, reply) => {
    // A body that ends early makes the parser throw: that is the caller's fault, not the plugin's.
    const { raw, routeOptions } = request
    if (raw.readableAborted)
      return sendFault(KernelErrors.unavailable('the caller disconnected'), request, reply, context)
    return sendFault(translated(error, routeOptions.bodyLimit), request, reply, context)
  })
})

/** A parser of bodies refuses by throwing, since Fastify's own error body may repeat the input. */
export const bodies = part<BodiesOptions>('bodies', { dependencies: ['errors'] }, (app, { kind }) =>
  readBodies(app, kind),
)

const all = ['entrance', 'errors', 'bodies']

/** Requests with a route, which the arrival names. */
export const routed = part('routed', { dependencies: all }, (app, { context }) => {
  const routeOf = ({ arrival }: FastifyRequest) => arrival.found?.route as ServedRoute
  app.route({
    method: ['GET', 'PUT', 'POST', 'PATCH', 'DELETE'],
    url: '/*',
    onRequest: context.entrance.before,
    preParsing: async (request, reply) => routeOf(request).before(request, reply),
    handler: (request, reply) => routeOf(request).handle(request, reply),
  })
})

/** The reply when no route matches. The caller is authenticated first, as before a route. */
export const unrouted = part('unrouted', { dependencies: all, encapsulate: true }, (app, { context }) => {
  app.addHook('onRequest', context.entrance.before)
  app.setNotFoundHandler((request: FastifyRequest, reply: FastifyReply) => {
    const text = `no route ${request.method} ${clip(request.url.split('?', 1)[0] ?? '', 200)}`
    return sendFault(KernelErrors.route_not_found(text), request, reply, context)
  })
})
