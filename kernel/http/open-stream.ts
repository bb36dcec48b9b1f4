import type { FastifyReply, FastifyRequest } from 'fastify'
import type { BoundRoute } from '../contract/bound.js'
import { faultOf, KernelErrors } from '../contract/errors.js'
import type { SocketReply, StreamReply } from '../contract/route.js'
import type { Call } from './admission.js'
import { HttpErrors } from './errors.js'
import type { GenerationContext } from './generation.js'
import { durableToRead, errorBody } from './reply.js'
import { eventWire, type Wire } from './streams.js'

/** Hands what a handler streams to the hub, once the caller can be answered so. */
export async function openStream(
  { owner, route }: BoundRoute,
  result: StreamReply | SocketReply,
  call: Call,
  leaveStreams: (() => void) | undefined,
  { arrival: { door, upgrade, actor } }: FastifyRequest,
  reply: FastifyReply,
  context: GenerationContext,
) {
  if (!leaveStreams) throw HttpErrors.reply_invalid(`${route.method} ${route.path} streams and declares no frames`)
  await durableToRead(context)
  if (call.reason) throw call.reason
  const isSocket = result.status === 101
  const wire: Wire<unknown> | undefined = isSocket ? await upgrade?.() : eventWire(reply.raw, result.headers)
  if (!wire) throw HttpErrors.reply_invalid(`${route.method} ${route.path} speaks on a channel that was not asked for`)
  if (isSocket) reply.raw.statusCode = 101
  reply.hijack()
  const failed = (error: unknown): unknown => {
    const fault = faultOf(error)
    if (fault.status >= 500) context.report({ owner, hook: `stream ${route.path}`, error: fault.cause ?? fault })
    const safe = context.redact.fault(fault)
    return isSocket ? result.failed(safe) : { event: 'error', data: errorBody(safe) }
  }
  // Not awaited: the stream belongs to the hub from here on, the handler is over.
  void context.streams.serve({ owner, door, actor }, wire, result.stream, failed).finally(() => {
    leaveStreams()
    call.abort(KernelErrors.unavailable('the stream is over'))
  })
  return reply
}
