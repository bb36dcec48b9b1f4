import { lookup as systemLookup } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { shown } from '../../../../kernel/kit/text.js'
import { DownloadError } from './rules.js'

/** Networks that a public server must not lead into. */
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

const INNER = 'it leads to a private network address'
const bare = (host: string) => host.replace(/^\[|\]$/g, '')

function isInner(address: string): boolean {
  const [bytes = ''] = address.split('%')
  // `BlockList` also matches an IPv4 address mapped to IPv6, in either spelling.
  return inner.check(bytes, isIP(bytes) === 6 ? 'ipv6' : 'ipv4')
}

/** Whether the host of a URL is this machine. */
export const isLoopback = (host: string) => /^(?:localhost|127(?:\.\d+){3}|::1)$/i.test(bare(host))

/** Whether a person named the host; all loopback names count as one. */
const isNamed = ({ hostname }: URL, named: URL) =>
  hostname === named.hostname || (isLoopback(hostname) && isLoopback(named.hostname))

/**
 * Refuses an address inside this machine or its networks unless a person named it: the operator of a public server
 * controls where its answers redirect to. @throws DownloadError `private`, `unreachable`
 */
export async function judge(url: URL, named: URL, lookup = systemLookup as LookupFunction): Promise<void> {
  if (isNamed(url, named)) return
  const host = bare(url.hostname)
  if (isIP(host) ? isInner(host) : (await addressesOf(host, lookup)).some(isInner))
    throw new DownloadError('private', `${shown(url.host)}: ${INNER}`)
}

/**
 * Resolves a name for a connection and refuses inner addresses again: a DNS server may return another address than for
 * the first check (DNS rebinding).
 */
export function lookupFor(url: URL, named: URL, lookup = systemLookup as LookupFunction): LookupFunction {
  if (isNamed(url, named)) return lookup
  return (host, options, callback) =>
    lookup(host, { ...options, all: true }, (error, found) => {
      const all = Array.isArray(found) ? found : []
      if (error) return callback(error, '', 0)
      if (all.some(({ address }) => isInner(address)))
        return callback(new DownloadError('private', `${shown(host)}: ${INNER}`), '', 0)
      if (options.all) return callback(null, all)
      callback(null, all[0]?.address ?? '', all[0]?.family ?? 0)
    })
}

function addressesOf(host: string, lookup: LookupFunction): Promise<readonly string[]> {
  return new Promise((resolve, reject) =>
    lookup(host, { all: true }, (error, found) => {
      const all = Array.isArray(found) ? found.map(({ address }) => address) : []
      if (error || all.length === 0) reject(new DownloadError('unreachable', `${shown(host)}: unknown host name`))
      else resolve(all)
    }),
  )
}
