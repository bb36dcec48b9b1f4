import { type Pace, PairLimit } from '../../bridges/api.js'
import type { MessageRow } from '../tables.js'

/** Conversations whose last speakers are remembered. */
const MAX_CONVERSATIONS = 10_000

/** What is said, and where. */
export type Said = Pick<MessageRow, 'workspaceId' | 'channel' | 'containerId' | 'sender' | 'receiver'>

/** What becomes of a message of two peers, and who they are. */
export interface Paced {
  readonly pace: Pace
  readonly pair: readonly [string, string]
}

/**
 * Stops two peers that answer each other. A message belongs to the pair of its sender and of the peer that it is for; one that is for
 * no peer by name answers the other peer that spoke last in its conversation, so that peers which only read are stopped as well.
 */
export class Pairs {
  readonly #limit = new PairLimit()
  /** By conversation: who spoke last, and who before that peer. */
  readonly #speakers = new Map<string, readonly [last: string, before: string | undefined]>()

  /** Counts a message; undefined: there is no other peer that it answers. */
  said({ workspaceId, channel, containerId, sender, receiver }: Said, now: number): Paced | undefined {
    const place = `${workspaceId} ${channel}`
    const heard = containerId === undefined ? undefined : this.#heard(`${place} ${containerId}`, sender)
    const other = receiver ?? heard
    if (other === undefined || other === sender) return undefined
    const pair: readonly [string, string] = sender < other ? [sender, other] : [other, sender]
    return { pair, pace: this.#limit.said(`${place} ${pair.join(' ')}`, pair[0] === sender ? 0 : 1, now) }
  }

  /** The peer that spoke last in a conversation besides this one, which speaks now. */
  #heard(key: string, sender: string): string | undefined {
    const [last, before] = this.#speakers.get(key) ?? []
    const other = last === sender ? before : last
    this.#speakers.delete(key)
    this.#speakers.set(key, [sender, other])
    for (const old of this.#speakers.keys()) if (this.#speakers.size > MAX_CONVERSATIONS) this.#speakers.delete(old)
    return other
  }
}
