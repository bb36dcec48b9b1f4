import type { FastifyReply, FastifyRequest } from 'fastify'
import { Fault, faultOf, KernelErrors } from '../contract/errors.js'
import { isSchema, type Route } from '../contract/route.js'
import { HttpErrors } from './errors.js'
import { bytesHeaders, durableToRead, errorBody, JSON_TYPE } from './reply.js'
import type { TransportOptions } from './transport.js'

/** Replacements for Fastify's own errors, whose texts may repeat the input. */
const REFUSALS: Readonly<Record<string, (limit: number | undefined) => Fault>> = {
  FST_ERR_BAD_URL: () => KernelErrors.invalid_request('the percent-encoding of the path is not valid'),
  FST_ERR_CTP_BODY_TOO_LARGE: limit => KernelErrors.payload_too_large(`the body has more than ${limit} bytes`),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: () => HttpErrors.unsupported_media_type(),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: () => KernelErrors.invalid_request('the body does not match Content-Length'),
  FST_ERR_ROUTE_MISSING_CONTENT_TYPE: () => KernelErrors.route_not_found('there is no route of the method QUERY'),
  FST_ERR_CTP_INVALID_JSON_BODY: () =>
    HttpErrors.malformed_json('the body is not valid JSON, or has a member __proto__ or constructor.prototype'),
}

/**
 * The fault for anything that a route, a guard or Fastify throws.
 * @param limit maximum bytes of the body
 */
export function translated(error: unknown, limit?: number): Fault {
  if (error instanceof Fault) return error
  const { code = '', statusCode = 500 } = error as { code?: string; statusCode?: number }
  const own = REFUSALS[code]?.(limit)
  return own ?? (code.startsWith('FST_') && statusCode < 500 ? KernelErrors.invalid_request() : faultOf(error))
}

/** Sends a fault, in the error format of its route when the route declares one. */
export async function sendFault(
  fault: Fault,
  request: FastifyRequest,
  reply: FastifyReply,
  options: Pick<TransportOptions, 'db' | 'redact' | 'report'>,
) {
  const bound = request.arrival?.bound
  const owner = bound?.owner ?? 'kernel'
  const failed = (error: unknown) => options.report({ owner, hook: `${request.method} ${bound?.route.path}`, error })
  if (fault.status >= 500 && fault.cause !== undefined) failed(fault.cause)
  // The refusal may describe a state that is not on the disk yet. A failed store must not suppress it.
  if (request.arrival?.from.waits !== false) await durableToRead(options).catch(() => {})
  if (fault.retryAfter !== undefined) reply.header('retry-after', String(fault.retryAfter))
  // The next connection identifies its peer anew.
  if (fault.code === 'unauthorized_peer') reply.header('connection', 'close')
  const { headers, payload } = wordsOf(options.redact.fault(fault), bound?.route.faults, failed)
  return reply.code(fault.status).headers(headers).send(payload)
}

const jsonOf = (body: unknown) => ({ headers: { 'content-type': JSON_TYPE }, payload: JSON.stringify(body) })

function wordsOf(fault: Fault, faults: Route['faults'], failed: (error: unknown) => void) {
  try {
    if (faults && !isSchema(faults.reply))
      return { headers: bytesHeaders(faults.reply), payload: String(faults.body(fault)) }
    if (faults) return jsonOf(faults.body(fault))
  } catch (error) {
    failed(error)
  }
  return jsonOf(errorBody(fault))
}
