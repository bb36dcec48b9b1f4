import type { IncomingMessage } from 'node:http'
import { type Fault, KernelErrors } from '../contract/errors.js'
import { isSchema, type RouteBody } from '../contract/route.js'
import { HttpErrors } from './errors.js'

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]']

/** Is a bind address reachable from this machine only. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}

/** Why a bind address that other machines reach is refused: none of its guards may be forgotten. */
export const unguarded = (host: string, lacks: string, next: string): Fault =>
  KernelErrors.forbidden(`http.host ${host} is reachable from other machines, and ${lacks}`, {
    next: `${next} in config.json, or set http.host to localhost`,
  })

/** Where TCP is served, and the other names, lower case, under which it is. */
export interface Site {
  readonly host: string
  readonly port: number
  /** Whether it speaks TLS. */
  readonly tls: boolean
  readonly allowed: () => readonly string[]
}

/**
 * What stands before every request over TCP, where a web page in the operator's browser can knock too: the Host must be one
 * of ours (no DNS rebinding), the Origin and Sec-Fetch-Site must not be another site's.
 * @param navigable another site may lead the browser there
 */
export function tcpRefusal({ method, headers }: IncomingMessage, site: Site, navigable = false): Fault | undefined {
  const { host = '', origin, 'sec-fetch-site': from } = headers
  if (!isOwnHost(host, site) && !isAllowedHost(host, site)) {
    return HttpErrors.misdirected(`this daemon does not answer for the host ${JSON.stringify(host.slice(0, 100))}`)
  }
  if (origin !== undefined && !isSameOrigin(origin, host, site)) return HttpErrors.cross_site()
  if (from === undefined || from === 'same-origin' || from === 'none') return undefined
  const isNavigation = headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document'
  return navigable && method === 'GET' && isNavigation ? undefined : HttpErrors.cross_site()
}

const FORWARDED = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip']

/** Whether a proxy says that it speaks for somebody else. One that is silent about it cannot be told from its user. */
export const wasForwarded = (headers: IncomingMessage['headers']): boolean =>
  FORWARDED.some(name => headers[name] !== undefined)

/** Header fields of one request; a browser sends about 20. */
export const MAX_FIELDS = 200

/**
 * Refuses a head that is read in part. Node drops fields behind `maxHeadersCount` without a word, and of a repeated field
 * it keeps the first or joins all, depending on the name: a guard could judge by another value than a handler.
 */
export function headRefusal({ rawHeaders }: IncomingMessage): Fault | undefined {
  if (rawHeaders.length > 2 * MAX_FIELDS) {
    return HttpErrors.headers_too_large(`the request has more than ${MAX_FIELDS} header fields; send fewer`)
  }
  let seen = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] as string).toLowerCase()
    const bit = SINGLE_FIELDS.get(name) ?? 0
    if (seen & bit) return KernelErrors.invalid_request(`the request has more than one ${name} header; send one`)
    seen |= bit
  }
  return undefined
}

/** Fields that decide whether and how a request is served, each with its bit; the parser itself refuses a second Content-Length. */
const SINGLE_FIELDS = new Map(
  'authorization content-encoding content-type host origin sec-fetch-site sec-websocket-key sec-websocket-version'
    .split(' ')
    .map((name, at) => [name, 1 << at]),
)

/** What stands before every request: an address that is a path, and a body, if any, of a type that the route takes. */
export function requestRefusal({ url = '', headers }: IncomingMessage, body?: RouteBody): Fault | undefined {
  if (!url.startsWith('/')) return KernelErrors.invalid_request('the request target is not a path')
  if (headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0) return undefined
  const type = headers['content-type'] ?? ''
  if (!body || isSchema(body)) {
    if (!JSON_TYPE.test(type)) return HttpErrors.unsupported_media_type()
  } else if (!isOneOf(body.types, type)) {
    return HttpErrors.unsupported_media_type(`send one of these content types: ${body.types.join(', ')}`)
  }
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding.toLowerCase() === 'identity') return undefined
  return HttpErrors.unsupported_media_type('bodies with a content-encoding are not taken; send it as it is')
}

/** Whether a content type, its parameters aside, is among those declared. */
export function isOneOf(types: readonly string[], given: string): boolean {
  const [type = ''] = given.toLowerCase().split(';')
  const [main, sub] = type.trim().split('/')
  return types.some(declared => {
    const [wantedMain, wantedSub] = (declared.toLowerCase().split(';')[0] as string).trim().split('/')
    return (
      (wantedMain === '*' || wantedMain === main) && (wantedSub === '*' || (sub !== undefined && wantedSub === sub))
    )
  })
}

const HOST = /^(\[[^\]]+\]|[^:]+)(?::(\d+))?$/

/** Whether a Host header names this machine, or where TCP is bound; what it names is nobody else's. */
export function isOwnHost(host: string, site: Site): boolean {
  const [, name = '', port = site.tls ? 443 : 80] = HOST.exec(host.toLowerCase()) ?? []
  return Number(port) === site.port && (LOOPBACK.includes(name) || name === site.host.toLowerCase())
}

function isAllowedHost(host: string, { allowed }: Site): boolean {
  const name = HOST.exec(host.toLowerCase())?.[1]
  return name !== undefined && (allowed().includes(name) || allowed().includes(host.toLowerCase()))
}

/** Behind a proxy a page is of the very host that it asks, over HTTPS as a rule. */
function isSameOrigin(origin: string, asked: string, site: Site): boolean {
  if (!URL.canParse(origin)) return false
  const { protocol, host } = new URL(origin)
  // A browser leaves the port out where it is the usual one of the scheme.
  const scheme = site.tls ? 'https:' : 'http:'
  if (protocol === scheme && isOwnHost(host, site)) return true
  return /^https?:$/.test(protocol) && isAllowedHost(host, site) && host === asked.toLowerCase()
}

/** JSON is UTF-8 (RFC 8259); a type that says otherwise would be read wrongly. */
const JSON_TYPE = /^application\/json\s*(;\s*charset\s*=\s*"?utf-?8"?\s*)?$/i
