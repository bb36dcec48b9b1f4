import { isUtf8 } from 'node:buffer'
import type { FastifyInstance } from 'fastify'
import { KernelErrors } from '../contract/errors.js'

/** Levels of nesting that what walks over a value can take. */
const JSON_DEPTH = 100

const isDeeper = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some(member => isDeeper(member, levels - 1)))

/** Bodies are JSON and nothing else; an empty one is `undefined`. What it refuses is not repeated. */
export function readJson(app: FastifyInstance): void {
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
