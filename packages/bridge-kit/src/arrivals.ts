import type { Host, InboundEvent, IngestResult } from './types.js'

/** Recent events that are remembered, so that a repetition fetches no file again. */
const MOST = 1000

/**
 * Hands events to the daemon in order of arrival, even if files have to be fetched first. A repeated event shares the first one's
 * result.
 */
export class Arrivals {
  readonly #known = new Map<string, Promise<IngestResult>>()
  /** The latest event of each conversation. */
  readonly #last = new Map<string, Promise<unknown>>()

  constructor(private readonly host: Pick<Host, 'ingest'>) {}

  /** @param complete Adds the files of the event; it must not reject */
  take(event: InboundEvent, complete?: (event: InboundEvent) => Promise<InboundEvent>): Promise<IngestResult> {
    const { idempotency_key: key } = event
    const before = this.#known.get(key)
    if (before) return before
    const result = this.#inTurn(event, complete)
    remember(this.#known, key, result, MOST)
    // After a failure the event may be repeated.
    result.catch(() => this.#known.delete(key))
    return result
  }

  async #inTurn(event: InboundEvent, complete = async (one: InboundEvent) => one): Promise<IngestResult> {
    const conversation = JSON.stringify([event.group_id, event.peer_id, event.thread_id])
    const before = this.#last.get(conversation)
    const ready = (async () => {
      await before
      return complete(event)
    })()
    this.#last.set(conversation, ready)
    try {
      return await this.host.ingest(await ready)
    } finally {
      if (this.#last.get(conversation) === ready) this.#last.delete(conversation)
    }
  }
}

/** Adds an entry and evicts the oldest ones beyond the limit. */
export function remember<T>(map: Map<string, T>, key: string, value: T, most: number): void {
  map.delete(key)
  map.set(key, value)
  for (const oldest of map.keys()) {
    if (map.size <= most) return
    map.delete(oldest)
  }
}
