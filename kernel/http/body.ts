import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { type Readable, Transform } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { KernelErrors } from '../contract/errors.js'
import { isSchema, type Route } from '../contract/route.js'

/** Levels of nesting that what walks over a value can take. */
const JSON_DEPTH = 100

const isDeeper = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some(member => isDeeper(member, levels - 1)))

/** How the bodies of a route come in; what is not bytes, nothing included, is read as JSON. */
export const bodyOf = ({ body }: Route): 'json' | 'raw' | 'stream' => (body && !isSchema(body) ? body.as : 'json')

/** How bodies are read below this scope. What is refused is not repeated. */
export const readBodies = {
  /** An empty one is `undefined`. */
  json: readJson,
  raw(app: FastifyInstance): void {
    app.removeAllContentTypeParsers()
    app.addContentTypeParser<Buffer>('*', { parseAs: 'buffer' }, (_, bytes, done) => done(null, bytes))
  },
  stream(app: FastifyInstance): void {
    app.removeAllContentTypeParsers()
    app.addContentTypeParser('*', (request, _, done) => {
      const limit = request.routeOptions.bodyLimit
      const tooLarge = Number(request.headers['content-length'] ?? 0) > limit
      done(tooLarge ? KernelErrors.payload_too_large() : null, tooLarge ? undefined : limited(request.raw, limit))
    })
  },
}

/** A body as it arrives, no faster than it is read. It fails when more than `limit` bytes come, or when the caller hangs up. */
function limited(request: IncomingMessage, limit: number): Readable {
  let left = limit
  const body = new Transform({
    transform(bytes: Buffer, _, done) {
      left -= bytes.length
      done(left < 0 ? KernelErrors.payload_too_large() : null, bytes)
    },
  })
  // The handler may not look at it any more.
  body.on('error', () => {})
  request.once('close', () => {
    if (!request.readableEnded) body.destroy(KernelErrors.unavailable('the caller hung up'))
  })
  return request.pipe(body)
}

function readJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  const strict = app.getDefaultJsonParser('error', 'error')
  app.addContentTypeParser<Buffer>('application/json', { parseAs: 'buffer' }, (request, bytes, done) => {
    if (!isUtf8(bytes)) return done(KernelErrors.malformed_json('the body is not valid UTF-8'))
    const text = bytes.toString()
    if (/^\s*$/.test(text)) return done(null, undefined)
    strict(request, text, (error, value) => {
      const deep = !error && isDeeper(value, JSON_DEPTH)
      done(deep ? KernelErrors.malformed_json(`the body is nested deeper than ${JSON_DEPTH} levels`) : error, value)
    })
  })
}
