import { PAIR_MESSAGES, type Pace, PairLimit } from '../../bridges/api.js'
import type { MessageRow } from '../tables.js'

/** Conversations whose last speakers are remembered. */
const MAX_CONVERSATIONS = 10_000

/** What is said, and where. */
export type Said = Pick<MessageRow, 'workspaceId' | 'channel' | 'containerId' | 'sender' | 'receiver'>

interface Conversation {
  /** The peer that spoke last, and the other one that spoke last before it. */
  last: string | undefined
  before: string | undefined
  /** When the first peer spoke, while no other one has. */
  readonly alone: number[]
}

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
  readonly #conversations = new Map<string, Conversation>()

  /** Counts a message; undefined: there is no other peer that it answers. */
  said({ workspaceId, channel, containerId, sender, receiver }: Said, now: number): Paced | undefined {
    const place = `${workspaceId} ${channel}`
    const conversation = containerId === undefined ? undefined : this.#of(`${place} ${containerId}`)
    const { last } = conversation ?? {}
    const other = receiver ?? (last === sender ? conversation?.before : last)
    if (conversation && last !== sender) Object.assign(conversation, { last: sender, before: last })
    if (other === undefined || other === sender) {
      if (conversation && conversation.alone.length < PAIR_MESSAGES) conversation.alone.push(now)
      return undefined
    }
    const pair: readonly [string, string] = sender < other ? [sender, other] : [other, sender]
    const key = `${place} ${pair.join(' ')}`
    const sideOf = (peer: string) => (pair[0] === peer ? 0 : 1)
    // What the first peer said before any other spoke belongs to the pair as well, if it is one of the two.
    const first = last !== undefined && pair.includes(last) ? last : undefined
    for (const at of conversation?.alone.splice(0) ?? [])
      if (first !== undefined) this.#limit.said(key, sideOf(first), at)
    return { pair, pace: this.#limit.said(key, sideOf(sender), now) }
  }

  #of(key: string): Conversation {
    const known = this.#conversations.get(key)
    if (known) this.#conversations.delete(key)
    const conversation: Conversation = known ?? { last: undefined, before: undefined, alone: [] }
    this.#conversations.set(key, conversation)
    for (const old of this.#conversations.keys())
      if (this.#conversations.size > MAX_CONVERSATIONS) this.#conversations.delete(old)
    return conversation
  }
}
