import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { fastifyPlugin, type PluginMetadata } from 'fastify-plugin'
import type { BoundRoute } from '../contract/bound.js'
import { KernelErrors } from '../contract/errors.js'
import { clip } from '../kit/text.js'
import { sendFault, translated } from './fault-reply.js'
import type { GenerationContext } from './generation.js'
import { type bodyOf, readBodies } from './request.js'
import { serveRoute } from './serve-route.js'

// Fastify keeps what a plugin sets to that plugin. The parts here set it for the instance that registers them, and name what
// they build on, so that an instance whose parts stand in a wrong order does not boot.

/** Options with which every part is registered. */
export interface PartOptions {
  readonly context: GenerationContext
}
export interface RoutesOptions extends PartOptions {
  /** How the bodies of these routes come in. */
  readonly kind: ReturnType<typeof bodyOf>
  readonly routes: readonly BoundRoute[]
}

const part = <O extends PartOptions>(
  name: string,
  { dependencies = [], ...meta }: Pick<PluginMetadata, 'dependencies' | 'encapsulate'>,
  set: (app: FastifyInstance, options: O) => void,
) =>
  // Of what is not async Avvio does not catch what it throws, and a route may be refused.
  fastifyPlugin(async (app: FastifyInstance, options: O) => set(app, options), {
    fastify: '5.x',
    name,
    dependencies,
    ...meta,
  })

/** Members of a request from its entrance on: the way it arrived, and its call once it is admitted. */
export const entrance = part('entrance', {}, app => {
  app.decorateRequest('arrival')
  app.decorateRequest('call', null)
})

/** Refusals and failures in the daemon's own form, for all routes. They name the route by the arrival. */
export const errors = part('errors', { dependencies: ['entrance'] }, (app, { context }) => {
  app.setErrorHandler((error, request, reply) => {
    // A body that ends early makes the parser throw, which is the caller's doing and no plugin's.
    const { raw, routeOptions } = request
    if (raw.readableAborted) return sendFault(KernelErrors.unavailable('the caller hung up'), request, reply, context)
    return sendFault(translated(error, routeOptions.bodyLimit), request, reply, context)
  })
})

/** JSON is how bodies are read. A parser refuses by throwing, and Fastify's own error body may repeat what was sent. */
export const bodies = part('bodies', { dependencies: ['errors'] }, app => readBodies(app, 'json'))

const all = ['entrance', 'errors', 'bodies']

/** The routes whose bodies come in one way; other parsers are theirs alone. */
export const routes = part<RoutesOptions>(
  'routes',
  { dependencies: all, encapsulate: true },
  (app, { context, kind, routes: mine }) => {
    if (kind !== 'json') readBodies(app, kind)
    for (const bound of mine) serveRoute(app, bound, context)
  },
)

/** The answer where no route matches; who asks is found out first, as before a route. */
export const unrouted = part('unrouted', { dependencies: all, encapsulate: true }, (app, { context }) => {
  app.addHook('onRequest', context.entrance.before())
  app.setNotFoundHandler((request: FastifyRequest, reply: FastifyReply) => {
    const text = `no route ${request.method} ${clip(request.url.split('?', 1)[0] ?? '', 200)}`
    return sendFault(KernelErrors.route_not_found(text), request, reply, context)
  })
})
