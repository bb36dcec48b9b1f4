import type { ServerResponse } from 'node:http'
import type { Fault } from '../contract/errors.js'
import type { BytesReply } from '../contract/route.js'
import type { Db } from '../contract/storage.js'
import { HttpErrors } from './errors.js'

export const JSON_TYPE = 'application/json; charset=utf-8'

/** A page of the daemon has the same origin as its API. Unless a route sets another policy, it runs no script and loads nothing. */
const HEADERS = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
}

/** Content type of a reply that is not JSON. */
export const typeOf = ({ types: [first = '*/*'] }: BytesReply, headers: Record<string, string> = {}): string =>
  Object.entries(headers).find(([name]) => name.toLowerCase() === 'content-type')?.[1] ?? first

/** Headers of a reply that is not JSON; those of the handler take precedence, except for the content type. */
export const bytesHeaders = (declared: BytesReply, headers: Record<string, string> = {}) => ({
  ...HEADERS,
  ...headers,
  'content-type': typeOf(declared, headers),
})

/**
 * Resolves when all data that a reply shows is on the disk. A full disk delays no reply: writes that it holds back have not been
 * acknowledged.
 */
export async function durableToRead({ db }: { readonly db: Pick<Db, 'durable'> }): Promise<void> {
  await db.durable().catch(error => {
    if (error.code !== 'disk_full') throw error
  })
}

/** The error body of all routes. */
export function errorBody(fault: Fault) {
  const details = { ...fault.details, ...(fault.next ? { next: fault.next } : {}) }
  return { error: fault.message, code: fault.code, ...(Object.keys(details).length > 0 ? { details } : {}) }
}

/** Writes a fault outside of any route. */
export function writeFault(response: ServerResponse, fault: Fault, headers = {}): void {
  if (fault.retryAfter !== undefined) response.setHeader('retry-after', fault.retryAfter)
  response.writeHead(fault.status, { 'content-type': JSON_TYPE, ...headers }).end(JSON.stringify(errorBody(fault)))
}

/** Throws `upgrade_required`; the headers of the reply name the expected protocol. */
export function refuseHandshake(response: ServerResponse): never {
  response.setHeader('upgrade', 'websocket')
  response.setHeader('sec-websocket-version', '13')
  throw HttpErrors.upgrade_required()
}
