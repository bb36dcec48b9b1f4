import type { IncomingMessage } from 'node:http'
import { type Fault, KernelErrors } from '../errors.js'

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]']

/** Is a bind address reachable from this machine only. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}

/**
 * What stands before every request over TCP, where a web page in the operator's browser can knock too: the Host must be one
 * of ours (no DNS rebinding), the Origin and Sec-Fetch-Site must not be another site's.
 */
export function tcpRefusal(
  request: IncomingMessage,
  bound: { readonly host: string; readonly port: number },
): Fault | undefined {
  const [host = '', ...more] = request.headersDistinct.host ?? []
  if (more.length > 0) return KernelErrors.invalid_request('the request has more than one Host header')
  if (!allowedHost(host, bound)) {
    return KernelErrors.misdirected(`this daemon does not answer for the host ${JSON.stringify(host.slice(0, 100))}`)
  }
  const { origin } = request.headers
  if (origin !== undefined && !sameOrigin(origin, bound)) return KernelErrors.cross_site()
  const site = request.headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return KernelErrors.cross_site()
  return undefined
}

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
