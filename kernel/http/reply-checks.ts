import type * as v from 'valibot'
import {
  type EncodedFrame,
  type Frame,
  isSchema,
  JsonText,
  type Route,
  type SocketReply,
  type StreamReply,
} from '../contract/route.js'
import { jsonOrText } from '../kit/canonical.js'
import { clip } from '../kit/text.js'
import { HttpErrors } from './errors.js'
import { isOneOf } from './guards.js'
import { typeOf } from './reply.js'

/** A reply that is not a stream. */
export interface PlainReply {
  readonly status: number
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** Checks a reply against its route, and the items of a stream as they are sent. For tests and development. */
export function checkReply<R extends PlainReply | StreamReply | SocketReply>(route: Route, reply: R): R {
  if ('stream' in reply) return { ...reply, stream: checked(route, reply) }
  checkPlain(route, reply)
  return reply
}

/** Throws `reply_invalid` for a reply that differs from its declaration. */
function checkPlain(route: Route, { status, body, headers }: PlainReply): void {
  const declared = route.replies[status]
  const what = `${route.method} ${route.path} ${status}`
  if (declared === undefined) throw HttpErrors.reply_invalid(`${route.method} ${route.path} does not declare ${status}`)
  if (isSchema(declared)) hold(declared, withoutTexts(body), what)
  else if (declared && !isOneOf(declared.types, typeOf(declared, headers)))
    throw HttpErrors.reply_invalid(`${what}: ${typeOf(declared, headers)} is not one of its content types`)
}

/** Throws `reply_invalid` for a value that its schema refuses. */
function hold(schema: v.GenericSchema, value: unknown, what: string): void {
  const issues = schema['~run']({ value }, {}).issues
  if (!issues) return
  const at = issues[0].path?.map(item => String(item.key)).join('.') ?? 'body'
  throw HttpErrors.reply_invalid(`${what}: ${at}: ${issues[0].message}`)
}

/** Passes a stream through; throws `reply_invalid` at the first message or frame that differs from its declaration. */
async function* checked(route: Route, { status, stream }: StreamReply | SocketReply): AsyncGenerator<never> {
  const schema = status === 101 ? (route.replies[status] as v.GenericSchema) : route.frames
  for await (const item of stream) {
    for (const frame of item instanceof Uint8Array ? decodeFrames(item) : [item])
      if (schema) hold(schema, frame, `${route.method} ${route.path} ${status}: ${clip(JSON.stringify(frame), 200)}`)
    yield item as never
  }
}

/** The inverse of `encodeFrame`, for a sequence of frames; data that is not JSON stays text. */
function decodeFrames(frames: EncodedFrame): Frame[] {
  const texts = Buffer.from(frames).toString().trimEnd().split('\n\n')
  return texts.map(text => {
    const { data = '', ...head } = Object.fromEntries(text.split('\n').map(line => line.split(/: (.*)/s)))
    return { ...head, data: jsonOrText(data) }
  })
}

/** A reply with its {@link JsonText} members parsed. */
const withoutTexts = (body: unknown): unknown =>
  Object.values(body ?? {}).some(member => (Array.isArray(member) ? member[0] : member) instanceof JsonText)
    ? JSON.parse(JSON.stringify(body))
    : body
