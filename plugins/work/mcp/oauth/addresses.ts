import type { LookupFunction } from 'node:net'
import { clip } from '../../../../kernel/kit/text.js'
import type { Clock } from '../../../../kernel/plugin.js'
import { DownloadError, exchange, judgeAddress } from '../../../delivery/extensions/api.js'
import { McpErrors } from '../errors.js'

const MOST_BYTES = 1024 * 1024
const LONGEST_MS = 15_000

const isLoopback = (host: string) => /^(?:localhost|127(?:\.\d+){3}|\[?::1\]?)$/i.test(host)

/**
 * Refuses an address that a login must not use: neither https nor loopback, or inside this machine or its network
 * without being the server's own address. The operator of a server controls its metadata.
 * @param server URL of the MCP server
 * @throws Fault `mcp_auth_address_refused`
 */
export async function checkAddress(what: string, url: string, server: string, lookup?: LookupFunction): Promise<URL> {
  const refused = (why: string) => McpErrors.mcp_auth_address_refused(`${what} ${clip(url, 200)}: ${why}`)
  if (!URL.canParse(url)) throw refused('it is no URL')
  const parsed = new URL(url)
  const { protocol, hostname, username, password } = parsed
  if (username || password) throw refused('it carries a password')
  if (protocol !== 'https:' && !(protocol === 'http:' && isLoopback(hostname)))
    throw refused('https is required, except on this machine')
  await judgeAddress(parsed, { named: new URL(server), ...(lookup && { lookup }) }).catch(error => {
    throw error instanceof DownloadError ? refused(error.message) : error
  })
  return parsed
}

/** A `fetch` for logins: it checks every address, follows no redirects, and limits size and time. */
export const guardedFetch =
  (clock: Clock, server: string, lookup?: LookupFunction) =>
  async (input: string | URL, init: RequestInit = {}): Promise<Response> => {
    const url = await checkAddress('the address', String(input), server, lookup)
    const rules = { clock, named: new URL(server), maxBytes: MOST_BYTES, timeoutMs: LONGEST_MS }
    const reply = await exchange(url, init, { ...rules, ...(lookup && { lookup }) }).catch(error => {
      if (error instanceof DownloadError && error.problem === 'private')
        throw McpErrors.mcp_auth_address_refused(error.message)
      throw error
    })
    const { status, statusText, headers, body } = reply
    const isEmpty = [101, 204, 205, 304].includes(status)
    return new Response(isEmpty ? null : new Uint8Array(body), { status, statusText, headers })
  }
