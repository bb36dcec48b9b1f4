import type { IncomingMessage } from 'node:http'
import { type Fault, KernelErrors } from '../contract/errors.js'
import { isSchema, type RouteBody } from '../contract/route.js'
import { HttpErrors } from './errors.js'

/** Maximum number of header fields of a request; a browser sends about 20. */
export const MAX_FIELDS = 200

/**
 * Refuses a head that Node reads only in part. It silently drops fields beyond `maxHeadersCount`; of a repeated field it keeps the
 * first or joins all, depending on the name, so a guard and a handler could see different values.
 */
export function headRefusal({ rawHeaders }: IncomingMessage): Fault | undefined {
  if (rawHeaders.length > 2 * MAX_FIELDS) {
    return HttpErrors.headers_too_large(`the request has more than ${MAX_FIELDS} header fields; send fewer`)
  }
  let present = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] as string).toLowerCase()
    const bit = SINGLE_FIELDS.get(name) ?? 0
    if (present & bit) return KernelErrors.invalid_request(`the request has more than one ${name} header; send one`)
    present |= bit
  }
  return undefined
}

/** Fields that decide whether and how a request is served, each with its bit. The parser itself refuses a second Content-Length. */
const SINGLE_FIELDS = new Map(
  'authorization content-encoding content-type host origin sec-fetch-site sec-websocket-key sec-websocket-version'
    .split(' ')
    .map((name, at) => [name, 1 << at]),
)

/** Checks before every request: the target is a path, and the route takes the type of the body, if there is one. */
export function requestRefusal({ url = '', headers }: IncomingMessage, body?: RouteBody): Fault | undefined {
  if (!url.startsWith('/')) return KernelErrors.invalid_request('the request target is not a path')
  if (headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0) return undefined
  const type = headers['content-type'] ?? ''
  if (!body || isSchema(body)) {
    if (!JSON_TYPE.test(type)) return HttpErrors.unsupported_media_type()
  } else if (!body.types.includes(type) && !isOneOf(body.types, type)) {
    return HttpErrors.unsupported_media_type(`send one of these content types: ${body.types.join(', ')}`)
  }
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding.toLowerCase() === 'identity') return undefined
  return HttpErrors.unsupported_media_type('a body with a content-encoding is not accepted; send it unencoded')
}

/** Whether a content type, without its parameters, matches a declared one. */
export function isOneOf(types: readonly string[], contentType: string): boolean {
  const [type = ''] = contentType.toLowerCase().split(';')
  const [main, sub] = type.trim().split('/')
  return types.some(declared => {
    const [wantedMain, wantedSub] = (declared.toLowerCase().split(';')[0] as string).trim().split('/')
    return (
      (wantedMain === '*' || wantedMain === main) && (wantedSub === '*' || (sub !== undefined && wantedSub === sub))
    )
  })
}

/** JSON is UTF-8 (RFC 8259); another charset would be decoded wrongly. */
const JSON_TYPE = /^application\/json\s*(;\s*charset\s*=\s*"?utf-?8"?\s*)?$/i
