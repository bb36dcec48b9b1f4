import type { IncomingMessage } from 'node:http'
import { type Fault, KernelErrors } from '../contract/errors.js'
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

/**
 * What stands before every request over TCP, where a web page in the operator's browser can knock too: the Host must be one
 * of ours (no DNS rebinding), the Origin and Sec-Fetch-Site must not be another site's.
 */
export function tcpRefusal(
  request: IncomingMessage,
  bound: { readonly host: string; readonly port: number },
): Fault | undefined {
  const { host = '' } = request.headers
  if (!allowedHost(host, bound)) {
    return KernelErrors.misdirected(`this daemon does not answer for the host ${JSON.stringify(host.slice(0, 100))}`)
  }
  const { origin } = request.headers
  if (origin !== undefined && !sameOrigin(origin, bound)) return KernelErrors.cross_site()
  const site = request.headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return KernelErrors.cross_site()
  return undefined
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

/** What stands before every request: an address that is a path, and a body, if any, that is JSON in plain UTF-8. */
export function requestRefusal({ url = '', headers }: IncomingMessage): Fault | undefined {
  if (!url.startsWith('/')) return KernelErrors.invalid_request('the request target is not a path')
  if (headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0) return undefined
  if (!JSON_TYPE.test(headers['content-type'] ?? '')) return KernelErrors.unsupported_media_type()
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding.toLowerCase() === 'identity') return undefined
  return KernelErrors.unsupported_media_type('compressed bodies are not taken; send plain JSON')
}

function allowedHost(host: string, bound: { host: string; port: number }): boolean {
  const match = /^(\[[^\]]+\]|[^:]+)(?::(\d+))?$/.exec(host.toLowerCase())
  if (!match) return false
  const [, name = '', port] = match
  if (Number(port ?? 80) !== bound.port) return false
  return LOOPBACK.includes(name) || name === bound.host.toLowerCase()
}

function sameOrigin(origin: string, bound: { host: string; port: number }): boolean {
  if (!URL.canParse(origin)) return false
  const url = new URL(origin)
  return url.protocol === 'http:' && allowedHost(url.host, bound)
}

/** JSON is UTF-8 (RFC 8259); a type that says otherwise would be read wrongly. */
const JSON_TYPE = /^application\/json\s*(;\s*charset\s*=\s*"?utf-?8"?\s*)?$/i
