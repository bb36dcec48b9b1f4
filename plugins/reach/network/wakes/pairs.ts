import { PAIR_MESSAGES, type Pace, PairLimit } from '../../bridges/api.js'
import type { MessageRow } from '../tables.js'

/** Conversations whose last speakers are remembered. */
const MAX_CONVERSATIONS = 10_000

/** A message and its place. */
export type Said = Pick<MessageRow, 'workspaceId' | 'channel' | 'containerId' | 'sender' | 'receiver'>

/** Consecutive messages of two peers that count as a dialogue in a conversation of more than two. */
const ROW = 6

interface Spoken {
  readonly sender: string
  readonly at: number
  isCounted: boolean
}

interface Conversation {
  /** The newest messages, back to the last one of a third peer. */
  readonly row: Spoken[]
  /** Whether more than two peers have spoken. */
  isOfMany: boolean
}

/** Verdict on a message of two peers, and the peers. */
export interface Paced {
  readonly pace: Pace
  readonly pair: readonly [string, string]
}

/**
 * Stops two peers that answer each other endlessly. A message belongs to the pair of its sender and receiver. One
 * without a receiver belongs to the two that speak in its conversation, so that silent readers do not prevent a stop;
 * if a third peer speaks in between, it belongs to no pair.
 */
export class Pairs {
  readonly #limit = new PairLimit()
  readonly #conversations = new Map<string, Conversation>()

  /** Counts a message; undefined if it answers no other peer. */
  said({ workspaceId, channel, containerId, sender, receiver }: Said, now: number): Paced | undefined {
    const channelKey = `${workspaceId} ${channel}`
    const conversation = containerId === undefined ? emptyConversation() : this.#of(`${channelKey} ${containerId}`)
    const spoken = { sender, at: now, isCounted: receiver !== undefined && receiver !== sender }
    speak(conversation, spoken)
    const { row, isOfMany } = conversation
    const isOfTwo = !isOfMany || row.length >= ROW
    const partner = row.find(one => one.sender !== sender)?.sender
    const other = receiver ?? partner
    if (other === undefined || other === sender) return undefined
    const pair: readonly [string, string] = sender < other ? [sender, other] : [other, sender]
    const key = `${channelKey} ${pair.join(' ')}`
    let pace: Pace = 'passes'
    const count = (one: Spoken) => {
      one.isCounted = true
      const next = this.#limit.said(key, pair[0] === one.sender ? 0 : 1, one.at)
      // Only the first stop is reported.
      if (pace !== 'first') pace = next
    }
    if (other === partner && isOfTwo) for (const one of row) if (!one.isCounted && one !== spoken) count(one)
    if (receiver !== undefined || isOfTwo) count(spoken)
    return { pair, pace }
  }

  #of(key: string): Conversation {
    const conversation = this.#conversations.get(key) ?? emptyConversation()
    // Moved to the end: the map is ordered by last use.
    this.#conversations.delete(key)
    this.#conversations.set(key, conversation)
    for (const old of this.#conversations.keys())
      if (this.#conversations.size > MAX_CONVERSATIONS) this.#conversations.delete(old)
    return conversation
  }
}

const emptyConversation = (): Conversation => ({ row: [], isOfMany: false })

/** Adds a message. A third peer's message limits the row to that peer and the previous speaker. */
function speak(conversation: Conversation, spoken: Spoken): void {
  const { row } = conversation
  const last = row.at(-1)?.sender
  if (new Set([...row.map(one => one.sender), spoken.sender]).size > 2) {
    conversation.isOfMany = true
    row.splice(0, row.findLastIndex(one => one.sender !== last) + 1)
  }
  row.push(spoken)
  if (row.length > PAIR_MESSAGES) row.shift()
}
