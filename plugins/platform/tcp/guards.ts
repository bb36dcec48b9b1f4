import type { IncomingHttpHeaders } from 'node:http'
import { shown } from '../../../kernel/kit/text.js'
import { type Fault, type Incoming, KernelErrors } from '../../../kernel/plugin.js'
import { TcpErrors } from './errors.js'

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

/** Where TCP is served, and the other names under which it is. */
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
export function tcpRefusal({ method, headers }: Incoming, site: Site, navigable = false): Fault | undefined {
  const { host = '', origin, 'sec-fetch-site': from } = headers as IncomingHttpHeaders
  if (!isOwnHost(host, site) && !isAllowedHost(host, site)) {
    return TcpErrors.misdirected(`this daemon does not answer for the host ${shown(host, 100)}`)
  }
  if (origin !== undefined && !isSameOrigin(origin, host, site)) return TcpErrors.cross_site()
  if (from === undefined || from === 'same-origin' || from === 'none') return undefined
  const isNavigation = headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document'
  return navigable && method === 'GET' && isNavigation ? undefined : TcpErrors.cross_site()
}

const FORWARDED = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip']

/** Whether a proxy says that it speaks for somebody else. One that is silent about it cannot be told from its user. */
export const wasForwarded = (headers: Incoming['headers']): boolean =>
  FORWARDED.some(name => headers[name] !== undefined)

const HOST = /^(\[[^\]]+\]|[^:]+)(?::(\d+))?$/

/** Whether a Host header names this machine, or where TCP is bound; what it names is nobody else's. */
export function isOwnHost(host: string, site: Site): boolean {
  const [, name = '', port = site.tls ? 443 : 80] = HOST.exec(host.toLowerCase()) ?? []
  return Number(port) === site.port && (LOOPBACK.includes(name) || name === site.host.toLowerCase())
}

function isAllowedHost(host: string, { allowed }: Site): boolean {
  const name = HOST.exec(host.toLowerCase())?.[1]
  return allowed().some(one => [name, host.toLowerCase()].includes(one.toLowerCase()))
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
