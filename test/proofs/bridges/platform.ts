import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DeliveryRequest, InboundEvent } from '../../../plugins/reach/bridges/api.js'
import type { Chance } from '../library/chance.js'

/** A message of the platform. */
export interface PlatformMessage {
  readonly id: string
  readonly room: string
  readonly nonce: string
  text: string
}

type Unseen = Omit<InboundEvent, 'bridge_instance_id'>

/** A chat platform in this process: it outlives the daemon and its adapter, and knows what really arrived. */
export class Platform {
  readonly messages: PlatformMessage[] = []
  readonly #unseen = new Map<string, Unseen>()
  readonly #server: Server
  #ids = 0

  constructor(private readonly chance: Chance) {
    this.#server = createServer(async (request, response) => {
      const pieces: Buffer[] = []
      for await (const piece of request) pieces.push(piece as Buffer)
      try {
        const reply = await this.#answer(request.url ?? '', JSON.parse(Buffer.concat(pieces).toString()))
        response.end(JSON.stringify(reply))
      } catch {
        // The connection breaks: whoever asked does not know what happened.
        response.destroy()
      }
    })
  }

  async listen(): Promise<number> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return (this.#server.address() as AddressInfo).port
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  /** Somebody writes. */
  say(event: Unseen): void {
    this.#unseen.set(event.idempotency_key, event)
  }

  get unseen(): number {
    return this.#unseen.size
  }

  room(room: string): readonly PlatformMessage[] {
    return this.messages.filter(message => message.room === room)
  }

  async #answer(path: string, body: unknown): Promise<unknown> {
    if (path === '/unseen') return [...this.#unseen.values()].slice(0, 3)
    if (path === '/seen') return this.#unseen.delete((body as { key: string }).key)
    if (path === '/settle') {
      const found = this.messages.find(({ nonce }) => nonce === (body as DeliveryRequest).nonce)
      return found ? { outcome: 'delivered', remote_message_id: found.id } : { outcome: 'absent' }
    }
    const request = body as DeliveryRequest
    const luck = this.chance()
    // A platform takes its time, before and after it has a message; sometimes it breaks off.
    await sleep(this.chance.int(60))
    if (luck < 0.05) throw new Error('broken before')
    const id = this.#take(request)
    await sleep(this.chance.int(60))
    if (luck > 0.95) throw new Error('broken after')
    return { status: 'delivered', remote_message_id: id }
  }

  #take({ remote_message_id: known, text, nonce, target }: DeliveryRequest): string {
    const message = this.messages.find(({ id }) => id === known)
    if (message) {
      message.text = text
      return message.id
    }
    const id = `m${++this.#ids}`
    this.messages.push({ id, room: `${target.group_id}/${target.thread_id}`, nonce, text })
    return id
  }
}
