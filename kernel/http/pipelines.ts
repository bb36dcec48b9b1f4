import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { sendFault, translated } from './fault-reply.js'
import * as parts from './parts.js'
import type { PipelineContext, ServedRoute } from './serve-route.js'

/** How the body of a request is read. */
export type Reading = Pick<ServedRoute, 'kind' | 'bodyLimit'>

/**
 * Fastify instances, one for each way to read a body, that boot at their first request and stay: they have no routes of plugins, never
 * listen, and hold no socket, timer or hook.
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
  app.register(parts.entrance, { context })
  app.register(parts.errors, { context })
  app.register(parts.bodies, { context, kind: reading?.kind ?? 'json' })
  app.register(reading ? parts.routed : parts.unrouted, { context })
  await app.ready()
  return app
}

function noCompiler(): never {
  throw new Error('a route has a Fastify schema; put a valibot schema into the route definition')
}
