import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/server'
import type { StdioServerHandle } from '@modelcontextprotocol/server/stdio'
import type { ListingServer } from './servers.js'

type Id = string | number

/** Transport with one message per HTTP request, whose response carries the answer. */
export class Channel implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  readonly #waiting = new Map<Id, (answer: JSONRPCMessage | undefined) => void>()

  async start(): Promise<void> {}

  /** Delivers answers to their pending requests; there is no receiver for other messages. */
  async send(message: JSONRPCMessage): Promise<void> {
    const { id } = message as { id?: Id }
    if (id === undefined || 'method' in message) return
    this.#waiting.get(id)?.(message)
  }

  async close(): Promise<void> {
    for (const settle of this.#waiting.values()) settle(undefined)
    this.onclose?.()
  }

  /** Pending requests. */
  get open(): number {
    return this.#waiting.size
  }

  /** Passes a message to the server; resolves with the answer, or undefined if there is none or the caller disconnected. */
  async take(message: JSONRPCMessage, signal: AbortSignal): Promise<JSONRPCMessage | undefined> {
    const { id, method } = message as { id?: Id; method?: string }
    if (id === undefined || method === undefined) {
      this.onmessage?.(message)
      return undefined
    }
    if (this.#waiting.has(id)) throw new Error(`a request with the id ${id} has no reply yet`)
    const cancel = () => {
      this.onmessage?.({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } })
      this.#waiting.get(id)?.(undefined)
    }
    try {
      return await new Promise(resolve => {
        this.#waiting.set(id, resolve)
        signal.addEventListener('abort', cancel, { once: true })
        this.onmessage?.(message)
      })
    } finally {
      this.#waiting.delete(id)
      signal.removeEventListener('abort', cancel)
    }
  }
}

/** A connected client of the daemon. */
export interface HostedConnection {
  readonly id: string
  /** The client's actor: messages of others are refused. */
  readonly actorId: string
  readonly sessionId: string | undefined
  /** Whether its nonce is not spent yet: so far it only discovered the server's version. */
  isOnTrial: boolean
  readonly made: ListingServer
  readonly server: StdioServerHandle
  readonly channel: Channel
}
