import { Readable } from 'node:stream'
import type { Bytes, BytesReply } from '../contract/route.js'
import type { Call } from './admission.js'

/** A page of the daemon is of the same site as its API: unless a route says otherwise it runs no script and asks for nothing. */
const HEADERS = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
}

/** Content type of a reply that is not JSON. */
export const typeOf = (
  { types: [first = '*/*'] }: BytesReply,
  headers: Readonly<Record<string, string>> = {},
): string => Object.entries(headers).find(([name]) => name.toLowerCase() === 'content-type')?.[1] ?? first

/** Headers of such a reply, those that its handler gives before those that it has by itself. */
export const bytesHeaders = (declared: BytesReply, headers: Readonly<Record<string, string>> = {}) => ({
  ...HEADERS,
  ...headers,
  'content-type': typeOf(declared, headers),
})

/**
 * What is sent of such a reply. A source is read as fast as the caller takes it, and ends when the caller or the plugin goes;
 * the plugin is busy with it until then. `failed` hears of a source that fails by itself.
 */
export function bytesPayload(body: Bytes, call: Call, failed: (error: unknown) => void): string | Buffer | Readable {
  if (typeof body === 'string') return body
  if (body instanceof Uint8Array) return Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const source = body instanceof Readable ? body : Readable.from(body, { objectMode: false })
  call.signal.addEventListener('abort', () => source.destroy(call.reason))
  source.on('error', error => {
    if (call.reason === undefined) failed(error)
  })
  return source
}
