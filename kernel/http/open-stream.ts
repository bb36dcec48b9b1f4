import type { FastifyReply } from 'fastify'
import type { BoundRoute } from '../contract/bound.js'
import { faultOf, KernelErrors } from '../contract/errors.js'
import type { SocketReply, StreamReply } from '../contract/route.js'
import type { Call } from './admission.js'
import type { Carry } from './carrier.js'
import { HttpErrors } from './errors.js'
import type { GenerationContext } from './generation.js'
import { durableToRead } from './reply.js'

/** Hands what a handler streams to whoever carries it, once the caller can be answered so. */
export async function openStream(
  { owner, route }: BoundRoute,
  result: StreamReply | SocketReply,
  call: Call,
  carry: Carry | undefined,
  reply: FastifyReply,
  context: GenerationContext,
) {
  if (!context.entrance.carrier) throw HttpErrors.reloading(undefined, { retryAfter: 1 })
  if (!carry) throw HttpErrors.reply_invalid(`${route.method} ${route.path} streams and declares no frames`)
  await durableToRead(context)
  if (call.reason) throw call.reason
  const told = (error: unknown) => {
    const fault = faultOf(error)
    if (fault.status >= 500) context.report({ owner, hook: `stream ${route.path}`, error: fault.cause ?? fault })
    return context.redact.fault(fault)
  }
  await carry(result, told, () => call.abort(KernelErrors.unavailable('the stream is over')))
  return reply.hijack()
}
