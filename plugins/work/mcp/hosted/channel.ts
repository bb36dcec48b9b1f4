import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/server'
import type { StdioServerHandle } from '@modelcontextprotocol/server/stdio'

type Id = string | number

/** Carries messages that come one request each: what answers a request is handed back by it. */
export class Channel implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  readonly #waiting = new Map<Id, (answer: JSONRPCMessage | undefined) => void>()

  async start(): Promise<void> {}

  /** What the server says: answers go to who waits for them, everything else has nobody that listens. */
  async send(message: JSONRPCMessage): Promise<void> {
    const { id } = message as { id?: Id }
    if (id === undefined || 'method' in message) return
    this.#waiting.get(id)?.(message)
  }

  async close(): Promise<void> {
    for (const settle of this.#waiting.values()) settle(undefined)
    this.onclose?.()
  }

  /** Requests that have no answer yet. */
  get open(): number {
    return this.#waiting.size
  }

  /** Hands a message to the server; resolves with its answer, or nothing when there is none or the caller has gone. */
  async take(message: JSONRPCMessage, signal: AbortSignal): Promise<JSONRPCMessage | undefined> {
    const { id, method } = message as { id?: Id; method?: string }
    if (id === undefined || method === undefined) {
      this.onmessage?.(message)
      return undefined
    }
    if (this.#waiting.has(id)) throw new Error(`a request of the id ${id} has no answer yet`)
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

/** A client of the daemon. */
export interface HostedConnection {
  readonly id: string
  /** Whose it is: nobody else's messages are taken. */
  readonly actorId: string
  readonly sessionId: string | undefined
  /** It was opened by a nonce that is not spent yet: it has asked for nothing but what the server is. */
  isOnTrial: boolean
  readonly server: StdioServerHandle
  readonly channel: Channel
}
