import type { ServerResponse } from 'node:http'
import type { Fault } from '../contract/errors.js'
import type { BytesReply } from '../contract/route.js'
import type { Db } from '../contract/storage.js'
import { HttpErrors } from './errors.js'

export const JSON_TYPE = 'application/json; charset=utf-8'

/** A page of the daemon is of the same site as its API: unless a route says otherwise it runs no script and asks for nothing. */
const HEADERS = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
}

/** Content type of a reply that is not JSON. */
export const typeOf = ({ types: [first = '*/*'] }: BytesReply, headers: Record<string, string> = {}): string =>
  Object.entries(headers).find(([name]) => name.toLowerCase() === 'content-type')?.[1] ?? first

/** Headers of a reply that is not JSON, those that its handler gives before those that it has by itself. */
export const bytesHeaders = (declared: BytesReply, headers: Record<string, string> = {}) => ({
  ...HEADERS,
  ...headers,
  'content-type': typeOf(declared, headers),
})

/** Resolves when all that is read is on the disk. A full one keeps nothing back: what is ahead of it, nobody was told is done. */
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

/** Answers with a fault where no route is. */
export function writeFault(response: ServerResponse, fault: Fault, headers = {}): void {
  if (fault.retryAfter !== undefined) response.setHeader('retry-after', fault.retryAfter)
  response.writeHead(fault.status, { 'content-type': JSON_TYPE, ...headers }).end(JSON.stringify(errorBody(fault)))
}

/** Throws `upgrade_required`, its reply saying by header what to ask for. */
export function refuseHandshake(response: ServerResponse): never {
  response.setHeader('upgrade', 'websocket')
  response.setHeader('sec-websocket-version', '13')
  throw HttpErrors.upgrade_required()
}
