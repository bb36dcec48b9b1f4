import type { IncomingHttpHeaders } from 'node:http'
import { shown } from '../../../kernel/kit/text.js'
import { type Fault, type Incoming, KernelErrors } from '../../../kernel/plugin.js'
import { TcpErrors } from './errors.js'

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]']

/** Whether a bind address is reachable from this machine only. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}

/** The refusal of a bind address that other machines reach and that lacks a guard. */
export const unguarded = (host: string, lacks: string, next: string): Fault =>
  KernelErrors.forbidden(`http.host ${host} is reachable from other machines, and ${lacks}`, {
    next: `${next} in config.json, or set http.host to localhost`,
  })

/** The address of the TCP listener, and its further names. */
export interface Site {
  readonly host: string
  readonly port: number
  /** Whether it speaks TLS. */
  readonly tls: boolean
  readonly allowed: () => readonly string[]
}

/**
 * Checks before every request over TCP, which a web page in the operator's browser can reach too: the Host must be one of ours (no
 * DNS rebinding), the Origin and Sec-Fetch-Site must not be another site's.
 * @param navigable whether another site may navigate the browser there
 */
export function tcpRefusal({ method, headers }: Incoming, site: Site, navigable = false): Fault | undefined {
  const { host = '', origin, 'sec-fetch-site': from } = headers as IncomingHttpHeaders
  if (!isOwnHost(host, site) && !isAllowedHost(host, site)) {
    return TcpErrors.misdirected(`this daemon does not accept requests for the host ${shown(host, 100)}`)
  }
  if (origin !== undefined && !isSameOrigin(origin, host, site)) return TcpErrors.cross_site()
  if (from === undefined || from === 'same-origin' || from === 'none') return undefined
  const isNavigation = headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document'
  return navigable && method === 'GET' && isNavigation ? undefined : TcpErrors.cross_site()
}

const FORWARDED = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip']

/** Whether a proxy declares that it forwards the request. A proxy that does not cannot be told from its user. */
export const wasForwarded = (headers: Incoming['headers']): boolean =>
  FORWARDED.some(name => headers[name] !== undefined)

const HOST = /^(\[[^\]]+\]|[^:]+)(?::(\d+))?$/

/** Whether a Host header names this machine or the bound address, which no foreign site can use. */
export function isOwnHost(host: string, site: Site): boolean {
  const [, name = '', port = site.tls ? 443 : 80] = HOST.exec(host.toLowerCase()) ?? []
  return Number(port) === site.port && (LOOPBACK.includes(name) || name === site.host.toLowerCase())
}

function isAllowedHost(host: string, { allowed }: Site): boolean {
  const name = HOST.exec(host.toLowerCase())?.[1]
  return allowed().some(one => [name, host.toLowerCase()].includes(one.toLowerCase()))
}

/** Behind a proxy, a page has the same host as its requests, usually over HTTPS. */
function isSameOrigin(origin: string, requestHost: string, site: Site): boolean {
  if (!URL.canParse(origin)) return false
  const { protocol, host } = new URL(origin)
  // Browsers omit the default port of a scheme.
  const scheme = site.tls ? 'https:' : 'http:'
  if (protocol === scheme && isOwnHost(host, site)) return true
  return /^https?:$/.test(protocol) && isAllowedHost(host, site) && host === requestHost.toLowerCase()
}
