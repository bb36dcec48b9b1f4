import { Fault, faultOf, KernelErrors } from '../contract/errors.js'

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
