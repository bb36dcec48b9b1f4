import { lookup as systemLookup } from 'node:dns'
import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { shown } from '../../../kernel/kit/text.js'
import { type Clock, within } from '../../../kernel/plugin.js'
import { McpErrors } from '../errors.js'

const MOST_BYTES = 1024 * 1024
const LONGEST_MS = 15_000

/** Networks that nothing of a public server leads into. */
const inner = new BlockList()
for (const [net, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
] as const)
  inner.addSubnet(net, bits, 'ipv4')
for (const [net, bits] of [
  ['::', 127],
  ['64:ff9b::', 96],
  ['fc00::', 7],
  ['fe80::', 10],
  ['ff00::', 8],
] as const)
  inner.addSubnet(net, bits, 'ipv6')

const bare = (host: string) => host.replace(/^\[|\]$/g, '')
const isInner = (address: string): boolean => {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped) return inner.check(mapped, 'ipv4')
  return inner.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}
const isLoopback = (host: string) => /^(?:localhost|127(?:\.\d+){3}|::1)$/i.test(bare(host))

/**
 * Refuses an address that a login must not lead to: one that is neither https nor loopback, or one inside of this machine or
 * its network that is not the address of the server itself. Whoever runs a server chooses what its metadata name.
 * @param server URL of the MCP server
 * @throws Fault `mcp_auth_address_refused`
 */
export async function checkAddress(
  what: string,
  url: string,
  server: string,
  lookup = systemLookup as LookupFunction,
): Promise<URL> {
  const refused = (why: string) => McpErrors.mcp_auth_address_refused(`${what} ${url.slice(0, 200)}: ${why}`)
  if (!URL.canParse(url)) throw refused('it is no URL')
  const parsed = new URL(url)
  const { protocol, hostname, username, password } = parsed
  if (username || password) throw refused('it carries a password')
  if (protocol !== 'https:' && !(protocol === 'http:' && isLoopback(hostname)))
    throw refused('https is needed, but on this machine')
  if (isOwn(parsed, server)) return parsed
  const host = bare(hostname)
  if (isIP(host) ? isInner(host) : (await addressesOf(host, lookup)).some(isInner)) throw refused(INNER)
  return parsed
}

const INNER = 'it leads into a network of this machine'

/** The address of the server itself, or one of this machine for a server of this machine. */
function isOwn({ hostname }: URL, server: string): boolean {
  const own = new URL(server).hostname
  return hostname === own || (isLoopback(hostname) && isLoopback(own))
}

function addressesOf(host: string, lookup: LookupFunction): Promise<readonly string[]> {
  return new Promise((resolve, reject) =>
    lookup(host, { all: true }, (error, found) => {
      const all = Array.isArray(found) ? found.map(({ address }) => address) : []
      if (error || all.length === 0)
        reject(McpErrors.mcp_auth_address_refused(`${shown(host)}: this name is not known`))
      else resolve(all)
    }),
  )
}

/**
 * Looks a name up for a connection and refuses what leads inward: whoever has a name may answer the first question, by which it was
 * judged, with one address and the second with another.
 */
const judged =
  (lookup: LookupFunction): LookupFunction =>
  (host, options, callback) =>
    lookup(host, { ...options, all: true }, (error, found) => {
      const all = Array.isArray(found) ? found : []
      if (error) return callback(error, '', 0)
      if (all.some(({ address }) => isInner(address)))
        return callback(McpErrors.mcp_auth_address_refused(`${shown(host)}: ${INNER}`), '', 0)
      if (options.all) return callback(null, all)
      callback(null, all[0]?.address ?? '', all[0]?.family ?? 0)
    })

/** `fetch` for logins: every address is judged, nothing is redirected, replies are small and come soon. */
export const guardedFetch =
  (clock: Clock, server: string, lookup = systemLookup as LookupFunction) =>
  async (input: string | URL, init: RequestInit = {}): Promise<Response> => {
    const url = await checkAddress('the address', String(input), server, lookup)
    const given = new AbortController()
    try {
      return await within(
        clock,
        LONGEST_MS,
        send(url, init, isOwn(url, server) ? lookup : judged(lookup), given.signal),
      )
    } finally {
      given.abort()
    }
  }

async function send(url: URL, init: RequestInit, lookup: LookupFunction, signal: AbortSignal): Promise<Response> {
  const { method, headers, body } = new Request(url, { ...init, redirect: 'manual' })
  const bytes = body && Buffer.from(await new Response(body).arrayBuffer())
  const request = url.protocol === 'https:' ? requestHttps : requestHttp
  const reply = await new Promise<IncomingMessage>((resolve, reject) => {
    const options = {
      method,
      headers: { 'user-agent': 'svc', ...Object.fromEntries(headers) },
      lookup,
      signal,
      agent: false,
    }
    request(url, options, resolve)
      .on('error', reject)
      .end(bytes ?? undefined)
  })
  const parts: Buffer[] = []
  let size = 0
  for await (const part of reply as AsyncIterable<Buffer>) {
    size += part.length
    if (size > MOST_BYTES) throw new Error(`${url.host} sent more than ${MOST_BYTES} bytes`)
    parts.push(part)
  }
  const { statusCode: status = 502, statusMessage: statusText = '' } = reply
  const isEmpty = [101, 204, 205, 304].includes(status)
  const named = Object.entries(reply.headers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] as [string, string]],
  )
  return new Response(isEmpty ? null : Buffer.concat(parts), { status, statusText, headers: named })
}
