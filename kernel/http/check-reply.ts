import type * as v from 'valibot'
import { KernelErrors } from '../contract/errors.js'
import {
  type EncodedFrame,
  type Frame,
  isSchema,
  type Route,
  type SocketReply,
  type StreamReply,
} from '../contract/route.js'
import { typeOf } from './bytes-reply.js'
import { isOneOf } from './guards.js'

/** A reply that is no stream, as a handler gives it. */
export interface PlainReply {
  readonly status: number
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** Throws `reply_invalid` for a reply that is not as its route declares it. */
export function checkReply(route: Route, { status, body, headers }: PlainReply): void {
  const declared = route.replies[status]
  const what = `${route.method} ${route.path} ${status}`
  if (declared === undefined)
    throw KernelErrors.reply_invalid(`${route.method} ${route.path} does not declare ${status}`)
  if (isSchema(declared)) hold(declared, body, what)
  else if (declared && !isOneOf(declared.types, typeOf(declared, headers)))
    throw KernelErrors.reply_invalid(`${what}: ${typeOf(declared, headers)} is none of its content types`)
}

/** What a stream sends; the first message or frame that is not as its route declares it is thrown as `reply_invalid`. */
export async function* checked(route: Route, { status, stream }: StreamReply | SocketReply): AsyncGenerator<unknown> {
  const schema = status === 101 ? (route.replies[status] as v.GenericSchema) : route.frames
  for await (const item of stream) {
    const frame = item instanceof Uint8Array ? decodeFrame(item) : item
    if (schema) hold(schema, frame, `${route.method} ${route.path} ${status}: ${JSON.stringify(frame).slice(0, 200)}`)
    yield item
  }
}

function hold(schema: v.GenericSchema, value: unknown, what: string): void {
  const issues = schema['~run']({ value }, {}).issues
  if (!issues) return
  const at = issues[0].path?.map(item => String(item.key)).join('.') ?? 'body'
  throw KernelErrors.reply_invalid(`${what}: ${at}: ${issues[0].message}`)
}

/** The opposite of `encodeFrame`; data that is no JSON stays text. */
function decodeFrame(frame: EncodedFrame): Frame {
  const lines = Buffer.from(frame).toString().trimEnd().split('\n')
  const { data = '', ...head } = Object.fromEntries(lines.map(line => line.split(/: (.*)/s)))
  try {
    return { ...head, data: JSON.parse(data) }
  } catch {
    return { ...head, data }
  }
}
