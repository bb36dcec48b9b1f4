import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ClientRequest } from 'node:http'

/** What Node says of a request that `fetch` is about to send. */
interface FetchRequest {
  readonly origin: unknown
  readonly path: string
  /** Names and values in turn, or lines. */
  readonly headers: unknown
  addHeader(name: string, value: string): void
}

const HEADER = 'traceparent'
const OF_FETCH = 'undici:request:create'
const OF_HTTP = 'http.client.request.created'

/**
 * Requests that the daemon sends while a span is current carry its place. Node announces them, so plugins do nothing for it.
 * @param collector whose requests carry none, or each would be part of what it reports
 * @param current the header's value; undefined outside of a trace
 * @returns what ends it
 */
export function markOutgoing(collector: URL, current: () => string | undefined): () => void {
  const ofFetch = (message: unknown) => {
    const { request } = message as { request: FetchRequest }
    if (String(request.origin) === collector.origin && request.path === collector.pathname + collector.search) return
    if ([request.headers].flat().join('\n').toLowerCase().includes(HEADER)) return
    const value = current()
    if (value !== undefined) request.addHeader(HEADER, value)
  }
  const ofHttp = (message: unknown) => {
    const { request } = message as { request: ClientRequest }
    if (request.headersSent || request.hasHeader(HEADER)) return
    const value = current()
    if (value !== undefined) request.setHeader(HEADER, value)
  }
  subscribe(OF_FETCH, ofFetch)
  subscribe(OF_HTTP, ofHttp)
  return () => {
    unsubscribe(OF_FETCH, ofFetch)
    unsubscribe(OF_HTTP, ofHttp)
  }
}
