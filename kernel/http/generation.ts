import type { IncomingMessage, ServerResponse } from 'node:http'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import plugin from 'fastify-plugin'
import { type Actor, operator } from '../actor.js'
import { Fault, faultOf, KernelErrors } from '../errors.js'
import type { BoundRoute } from '../host/registries.js'
import type { Ids } from '../ids.js'
import type { Door, Frame, Route } from '../route.js'
import { decodeBody, decodeQuery } from './decode.js'
import type { StreamHub } from './streams.js'

/** What a generation needs of its transport. */
export interface GenerationContext {
  readonly ids: Ids
  readonly streams: StreamHub
  readonly doorOf: (request: IncomingMessage) => Door
  readonly guard: (request: IncomingMessage, door: Door) => Fault | undefined
  /** Privileged routes are refused over TCP beyond loopback. */
  readonly privilegedOverTcp: () => boolean
  readonly durable: () => Promise<void>
  /** Why nothing new is written now, when the disk is full. */
  readonly full: () => Promise<Fault | undefined>
  /** Counts a handler of a plugin as running until the returned function is called. */
  readonly enter: (owner: string) => () => void
  readonly failed: (owner: string, where: string, error: unknown) => void
  /** Replies are checked against their schema: tests and development. */
  readonly checkReplies: boolean
}

export interface InjectRequest {
  readonly method: string
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

export interface InjectReply {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: string
}

/** One booted Fastify instance that routes and nothing more: it never listens; a change of plugins builds another one. */
export class Generation {
  private constructor(private readonly app: FastifyInstance) {}

  static async build(routes: readonly BoundRoute[], context: GenerationContext): Promise<Generation> {
    const app = fastify({
      logger: false,
      exposeHeadRoutes: false,
      requestIdHeader: false,
      genReqId: () => context.ids.id('req'),
      bodyLimit: 1024 * 1024,
      routerOptions: { maxParamLength: 5000, ignoreTrailingSlash: true },
      forceCloseConnections: false,
      // No schema is ever Fastify's: this keeps it from loading the compilers for them (ajv and more, 40 ms).
      schemaController: { compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler } },
      frameworkErrors: (error, request, reply) =>
        sendFault(translated(error), request as FastifyRequest, reply as unknown as FastifyReply, context),
    })
    // The only thing that crosses the scopes of the plugins: errors, the guards of the door, how JSON is read.
    await app.register(plugin(async instance => crossScopes(instance, context), { name: 'kernel' }))
    const owners = new Map<string, BoundRoute[]>()
    for (const bound of routes) owners.set(bound.owner, [...(owners.get(bound.owner) ?? []), bound])
    for (const bounds of owners.values()) {
      await app.register(async scope => {
        for (const bound of bounds) addRoute(scope, bound, context)
      })
    }
    await app.ready()
    return new Generation(app)
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    this.app.routing(request, response)
  }

  async inject(request: InjectRequest): Promise<InjectReply> {
    const payload = request.body === undefined ? {} : { payload: JSON.stringify(request.body) }
    const reply = await this.app.inject({
      method: request.method as 'GET',
      url: request.url,
      headers: { ...(request.body === undefined ? {} : { 'content-type': 'application/json' }), ...request.headers },
      ...payload,
    })
    return { status: reply.statusCode, headers: reply.headers, body: reply.body }
  }

  async close(): Promise<void> {
    await this.app.close()
  }
}

function noCompiler(): never {
  throw new Error('a route has a schema of Fastify; schemas here are valibot, in the route definition')
}

function crossScopes(app: FastifyInstance, context: GenerationContext): void {
  app.removeAllContentTypeParsers()
  const strict = app.getDefaultJsonParser('error', 'error')
  app.addContentTypeParser<string>('application/json', { parseAs: 'string' }, (request, text, done) => {
    if (/^\s*$/.test(text)) done(null, undefined)
    else strict(request, text, done)
  })
  // Callbacks where nothing waits: what is async costs a few turns of the queue in every request.
  app.addHook('onRequest', (request, _reply, done) => done(context.guard(request.raw, context.doorOf(request.raw))))
  app.setErrorHandler((error, request, reply) => sendFault(translated(error), request, reply, context))
  app.setNotFoundHandler((request, reply) =>
    sendFault(
      KernelErrors.route_not_found(`no route ${request.method} ${request.url.split('?')[0]}`),
      request,
      reply,
      context,
    ),
  )
}

function addRoute(app: FastifyInstance, { owner, route, self }: BoundRoute, context: GenerationContext): void {
  app.route({
    method: route.method,
    url: route.path.replace(/\{([^}]+)\}/g, ':$1'),
    ...(route.bodyLimit ? { bodyLimit: route.bodyLimit } : {}),
    config: { owner },
    preParsing: async request => {
      refuseDoor(route, context.doorOf(request.raw), context)
      // Also asked for what goes on then, for it makes the reserve available.
      const full = route.method === 'GET' ? undefined : await context.full()
      if (full && !route.essential) throw full
      await route.before?.(self, { params: request.params, actor: actorOf(request) } as never)
    },
    handler: async (request, reply) => {
      const leave = context.enter(owner)
      const hangUp = new AbortController()
      let streaming = false
      // After a whole reply nobody is left to be told, but a source of frames waits for it.
      reply.raw.once('close', () => {
        if (streaming || !reply.raw.writableFinished) hangUp.abort(new Error('the caller hung up'))
      })
      try {
        const result = (await route.handle(self, {
          params: request.params,
          query: decodeQuery(route, request.query),
          body: decodeBody(route, request.body),
          headers: declaredHeaders(route, request),
          actor: actorOf(request),
          door: context.doorOf(request.raw),
          id: request.id,
          signal: hangUp.signal,
        } as never)) as {
          status: number
          body?: unknown
          headers?: Record<string, string>
          stream?: AsyncIterable<Frame>
        }
        if (result.stream) {
          streaming = true
          for (const [name, value] of Object.entries(result.headers ?? {})) reply.raw.setHeader(name, value)
          return await openStream(owner, result.stream, request, reply, context)
        }
        if (context.checkReplies) checkReply(route, result)
        await context.durable()
        reply.code(result.status)
        for (const [name, value] of Object.entries(result.headers ?? {})) reply.header(name, value)
        if (route.contentType && result.status < 300) reply.type(route.contentType)
        return reply.send(result.body)
      } finally {
        leave()
      }
    },
  })
}

async function openStream(
  owner: string,
  source: AsyncIterable<Frame>,
  request: FastifyRequest,
  reply: FastifyReply,
  context: GenerationContext,
) {
  await context.durable()
  reply.hijack()
  // Not awaited: the stream belongs to the hub from here on, the handler is over.
  void context.streams.serve(owner, reply.raw, source, error => {
    context.failed(owner, `stream ${request.url}`, error)
    return { event: 'error', data: errorBody(faultOf(error)) }
  })
  return reply
}

const actorOf = (request: FastifyRequest): Actor => ({
  kind: operator.kind,
  id: operator.id,
  owner: operator.owner,
  source: operator.source,
  cause: request.id,
})

function refuseDoor(route: Route, door: Door, context: GenerationContext): void {
  if (door === 'inject') return
  if (route.listeners && route.listeners !== 'both' && route.listeners !== door) throw KernelErrors.route_not_found()
  if (route.privileged && door === 'tcp' && !context.privilegedOverTcp()) throw KernelErrors.privileged_only()
}

const NO_HEADERS = {}

function declaredHeaders(route: Route, request: FastifyRequest): Record<string, string | undefined> {
  if (!route.headers) return NO_HEADERS
  return Object.fromEntries(
    Object.keys(route.headers).map(name => {
      const value = request.headers[name.toLowerCase()]
      return [name.toLowerCase(), Array.isArray(value) ? value[0] : value]
    }),
  )
}

function checkReply(route: Route, result: { status: number; body?: unknown }): void {
  const schema = route.replies[result.status]
  if (schema === undefined)
    throw KernelErrors.reply_invalid(`${route.method} ${route.path} does not declare ${result.status}`)
  if (schema === null) return
  const issues = schema['~run']({ value: result.body }, {}).issues
  if (!issues) return
  const at = issues[0].path?.map(item => String(item.key)).join('.') ?? 'body'
  throw KernelErrors.reply_invalid(`${route.method} ${route.path} ${result.status}: ${at}: ${issues[0].message}`)
}

/** What Fastify refuses by itself, in our words. */
function translated(error: unknown): Fault {
  if (error instanceof Fault) return error
  const { code, statusCode, message } = error as { code?: string; statusCode?: number; message: string }
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return KernelErrors.payload_too_large()
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return KernelErrors.unsupported_media_type()
  if (error instanceof SyntaxError || code === 'FST_ERR_CTP_INVALID_JSON_BODY') {
    return KernelErrors.malformed_json(`the body is not valid JSON: ${message}`)
  }
  if (code?.startsWith('FST_') && statusCode !== undefined && statusCode < 500)
    return KernelErrors.invalid_request(message)
  return faultOf(error)
}

async function sendFault(fault: Fault, request: FastifyRequest, reply: FastifyReply, context: GenerationContext) {
  const owner = (request.routeOptions.config as { owner?: string } | undefined)?.owner ?? 'kernel'
  if (fault.status >= 500 && fault.cause !== undefined)
    context.failed(owner, `${request.method} ${request.routeOptions.url}`, fault.cause)
  // A refusal can tell of a state that is not on the disk yet; a failed store must not keep it back.
  await context.durable().catch(() => {})
  if (fault.retryAfter !== undefined) reply.header('retry-after', String(fault.retryAfter))
  return reply
    .code(fault.status)
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(errorBody(fault)))
}

/** The error body of all routes (Behaviour 1.8). */
export function errorBody(fault: Fault) {
  const details = { ...fault.details, ...(fault.next ? { next: fault.next } : {}) }
  return { error: fault.message, code: fault.code, ...(Object.keys(details).length > 0 ? { details } : {}) }
}
