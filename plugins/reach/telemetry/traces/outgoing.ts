import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ClientRequest } from 'node:http'

/** Node's diagnostics message for a request of `fetch`. */
interface FetchRequest {
  readonly origin: unknown
  readonly path: string
  /** Alternating names and values, or lines. */
  readonly headers: unknown
  addHeader(name: string, value: string): void
}

const HEADER = 'traceparent'
const OF_FETCH = 'undici:request:create'
const OF_HTTP = 'http.client.request.created'

/**
 * Adds the current span to the daemon's outgoing requests. Node announces them, so plugins need no code for it.
 * @param collector its requests are excluded, since they would become part of the traces they report
 * @param current the header's value; undefined outside a trace
 * @returns a function that stops it
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
