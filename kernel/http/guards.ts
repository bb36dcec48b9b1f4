import type { IncomingMessage } from 'node:http'
import { type Fault, KernelErrors } from '../errors.js'

const WITH_BODY = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])
const LOOPBACK = ['localhost', '127.0.0.1', '[::1]']

/** Is a bind address reachable from this machine only. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}

/**
 * What stands before every request over TCP, where a web page in the operator's browser can knock too: the Host must be one
 * of ours (no DNS rebinding), the Origin and Sec-Fetch-Site must not be another site's, a body must be JSON (no simple form).
 */
export function tcpRefusal(
  request: IncomingMessage,
  bound: { readonly host: string; readonly port: number },
): Fault | undefined {
  const host = request.headers.host ?? ''
  if (!allowedHost(host, bound)) {
    return KernelErrors.misdirected(`this daemon does not answer for the host ${JSON.stringify(host.slice(0, 100))}`)
  }
  const { origin } = request.headers
  if (origin !== undefined && !sameOrigin(origin, bound)) return KernelErrors.cross_site()
  const site = request.headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return KernelErrors.cross_site()
  if (WITH_BODY.has(request.method ?? '') && hasBody(request) && !isJson(request.headers['content-type'])) {
    return KernelErrors.unsupported_media_type()
  }
  return undefined
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

const hasBody = (request: IncomingMessage) =>
  request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length'] ?? 0) > 0

const isJson = (type: string | undefined) => /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(type ?? '')
