import type { FastifyReply, FastifyRequest } from 'fastify'
import { Fault, faultOf, KernelErrors } from '../contract/errors.js'
import { isSchema, type Route } from '../contract/route.js'
import { bytesHeaders } from './bytes-reply.js'
import type { GenerationContext } from './generation.js'

export const JSON_TYPE = 'application/json; charset=utf-8'

/** The error body of all routes. */
export function errorBody(fault: Fault) {
  const details = { ...fault.details, ...(fault.next ? { next: fault.next } : {}) }
  return { error: fault.message, code: fault.code, ...(Object.keys(details).length > 0 ? { details } : {}) }
}

/** What Fastify refuses by itself, in our words: its own may repeat what was sent. */
const REFUSALS: Readonly<Record<string, () => Fault>> = {
  FST_ERR_BAD_URL: () => KernelErrors.invalid_request('the path is not validly percent-encoded'),
  FST_ERR_CTP_BODY_TOO_LARGE: () => KernelErrors.payload_too_large(),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: () => KernelErrors.unsupported_media_type(),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: () => KernelErrors.invalid_request('the body is not as long as Content-Length'),
  FST_ERR_CTP_INVALID_JSON_BODY: () => KernelErrors.malformed_json(),
}

/** The fault for anything that a route, a guard or Fastify throws. */
export function translated(error: unknown): Fault {
  if (error instanceof Fault) return error
  const { code = '', statusCode = 500 } = error as { code?: string; statusCode?: number }
  const refusal = REFUSALS[code]
  if (refusal) return refusal()
  return code.startsWith('FST_') && statusCode < 500 ? KernelErrors.invalid_request() : faultOf(error)
}

/** Answers with a fault, in the words of its route where that has its own. */
export async function sendFault(
  fault: Fault,
  request: FastifyRequest,
  reply: FastifyReply,
  context: GenerationContext,
) {
  const bound = request.arrival?.bound
  const owner = bound?.owner ?? 'kernel'
  const where = `${request.method} ${bound?.route.path}`
  if (fault.status >= 500 && fault.cause !== undefined) context.failed(owner, where, fault.cause)
  // A refusal can tell of a state that is not on the disk yet; a failed store must not keep it back.
  await context.durable(true).catch(() => {})
  if (fault.retryAfter !== undefined) reply.header('retry-after', String(fault.retryAfter))
  // Who is at the other end of the next connection is looked up anew.
  if (fault.code === 'unauthorized_peer') reply.header('connection', 'close')
  const { headers, payload } = wordsOf(fault, bound?.route.faults, error => context.failed(owner, where, error))
  return reply.code(fault.status).headers(headers).send(payload)
}

function wordsOf(fault: Fault, faults: Route['faults'], failed: (error: unknown) => void) {
  try {
    if (faults && !isSchema(faults.reply))
      return { headers: bytesHeaders(faults.reply), payload: String(faults.body(fault)) }
    const body = faults ? faults.body(fault) : errorBody(fault)
    return { headers: { 'content-type': JSON_TYPE }, payload: JSON.stringify(body) }
  } catch (error) {
    failed(error)
    return { headers: { 'content-type': JSON_TYPE }, payload: JSON.stringify(errorBody(fault)) }
  }
}
