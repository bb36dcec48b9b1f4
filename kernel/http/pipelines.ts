import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { fastifyPlugin, type PluginMetadata } from 'fastify-plugin'
import { KernelErrors } from '../contract/errors.js'
import { clip } from '../kit/text.js'
import { sendFault, translated } from './fault-reply.js'
import { parsers } from './request.js'
import { byRoute, type PipelineContext, type ServedRoute } from './serve-route.js'

/**
 * Boots a Fastify instance for routes whose bodies are read like those of `route`, or for requests without a route. It knows no
 * plugin and never listens.
 */
export async function boot(route: ServedRoute | undefined, context: PipelineContext): Promise<FastifyInstance> {
  const app = fastify({
    ...(route?.bodyLimit ? { bodyLimit: route.bodyLimit } : {}),
    exposeHeadRoutes: false,
    requestIdHeader: false,
    genReqId: context.ids.id.bind(context.ids, 'req'),
    // No route has a schema of Fastify. This keeps it from loading their compilers (ajv and more, 40 ms).
    schemaController: { compilersFactory: { buildValidator: unused, buildSerializer: unused } },
    frameworkErrors: (error, request, reply) =>
      sendFault(translated(error), request as FastifyRequest, reply as unknown as FastifyReply, context),
  })
  const options = { context, kind: route?.kind ?? 'json' }
  for (const one of [entrance, errors, bodies, route ? routed : unrouted]) app.register(one, options)
  await app.ready()
  return app
}

const unused = () => undefined as never

// Fastify limits the effect of a plugin to its own instance. These parts act on the instance that registers them, and declare their
// dependencies, so that a wrong order fails at boot.

interface PartOptions extends Pick<ServedRoute, 'kind'> {
  readonly context: PipelineContext
}

const part = (
  name: string,
  { dependencies = [], ...meta }: Pick<PluginMetadata, 'dependencies' | 'encapsulate'>,
  set: (app: FastifyInstance, options: PartOptions) => void,
) =>
  // Async, because Avvio does not catch synchronous errors.
  fastifyPlugin(async (app: FastifyInstance, options: PartOptions) => set(app, options), {
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
export const bodies = part('bodies', { dependencies: ['errors'] }, (app, { kind }) => {
  app.removeAllContentTypeParsers()
  parsers[kind](app)
})

const all = ['entrance', 'errors', 'bodies']

/** Requests with a route. */
export const routed = part('routed', { dependencies: all }, (app, { context }) => {
  const method = ['GET', 'PUT', 'POST', 'PATCH', 'DELETE']
  app.route({ method, url: '/*', onRequest: context.entrance.before, ...byRoute })
})

/** The reply when no route matches. The caller is authenticated first, as before a route. */
export const unrouted = part('unrouted', { dependencies: all, encapsulate: true }, (app, { context }) => {
  app.addHook('onRequest', context.entrance.before)
  app.setNotFoundHandler((request: FastifyRequest, reply: FastifyReply) => {
    const text = `no route ${request.method} ${clip(request.url.split('?', 1)[0] ?? '', 200)}`
    return sendFault(KernelErrors.route_not_found(text), request, reply, context)
  })
})
