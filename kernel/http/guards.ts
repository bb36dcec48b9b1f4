import type { IncomingMessage } from 'node:http'
import { type Fault, KernelErrors } from '../contract/errors.js'
import { isSchema, type RouteBody } from '../contract/route.js'
import type { Peer } from './peers.js'

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]']

/** Is a bind address reachable from this machine only. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}

/** Over TCP nobody but the daemon's own user is served, root included: any local user can connect to a loopback address. */
export function peerRefusal(peer: Peer): Fault | undefined {
  if (peer.status === 'unknown') {
    return KernelErrors.unauthorized_peer(
      'the user at the other end of this TCP connection cannot be determined: its socket is closed, half closed or ' +
        'in another network namespace; keep it open until the reply, or use the Unix socket',
    )
  }
  if (peer.uid === process.geteuid?.()) return undefined
  return KernelErrors.unauthorized_peer(
    `this TCP connection comes from user ${peer.uid}; the daemon answers only to the user that it runs as`,
  )
}

/** Where TCP is served, and the other names, lower case, under which it is. */
export interface Site {
  readonly host: string
  readonly port: number
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
    return KernelErrors.misdirected(`this daemon does not answer for the host ${JSON.stringify(host.slice(0, 100))}`)
  }
  if (origin !== undefined && !isSameOrigin(origin, host, site)) return KernelErrors.cross_site()
  if (from === undefined || from === 'same-origin' || from === 'none') return undefined
  const isNavigation = headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document'
  return navigable && method === 'GET' && isNavigation ? undefined : KernelErrors.cross_site()
}

/** Header fields of one request; a browser sends about 20. */
export const MAX_FIELDS = 200

/**
 * Refuses a head that is read in part. Node drops fields behind `maxHeadersCount` without a word, and of a repeated field
 * it keeps the first or joins all, depending on the name: a guard could judge by another value than a handler.
 */
export function headRefusal({ rawHeaders }: IncomingMessage): Fault | undefined {
  if (rawHeaders.length > 2 * MAX_FIELDS) {
    return KernelErrors.headers_too_large(`the request has more than ${MAX_FIELDS} header fields; send fewer`)
  }
  const seen = new Set<string>()
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] as string).toLowerCase()
    if (!SINGLE_FIELDS.has(name)) continue
    if (seen.has(name)) return KernelErrors.invalid_request(`the request has more than one ${name} header; send one`)
    seen.add(name)
  }
  return undefined
}

/** Fields that decide whether and how a request is served; the parser itself refuses a second Content-Length. */
const SINGLE_FIELDS = new Set([
  'authorization',
  'content-encoding',
  'content-type',
  'host',
  'origin',
  'sec-fetch-site',
  'sec-websocket-key',
  'sec-websocket-version',
])

/** What stands before every request: an address that is a path, and a body, if any, of a type that the route takes. */
export function requestRefusal({ url = '', headers }: IncomingMessage, body?: RouteBody): Fault | undefined {
  if (!url.startsWith('/')) return KernelErrors.invalid_request('the request target is not a path')
  if (headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0) return undefined
  const type = headers['content-type'] ?? ''
  if (!body || isSchema(body)) {
    if (!JSON_TYPE.test(type)) return KernelErrors.unsupported_media_type()
  } else if (!isOneOf(body.types, type)) {
    return KernelErrors.unsupported_media_type(`send one of these content types: ${body.types.join(', ')}`)
  }
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding.toLowerCase() === 'identity') return undefined
  return KernelErrors.unsupported_media_type('bodies with a content-encoding are not taken; send it as it is')
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
  const [, name = '', port = 80] = HOST.exec(host.toLowerCase()) ?? []
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
  if (protocol === 'http:' && isOwnHost(host, site)) return true
  return /^https?:$/.test(protocol) && isAllowedHost(host, site) && host === asked.toLowerCase()
}

/** JSON is UTF-8 (RFC 8259); a type that says otherwise would be read wrongly. */
const JSON_TYPE = /^application\/json\s*(;\s*charset\s*=\s*"?utf-?8"?\s*)?$/i
