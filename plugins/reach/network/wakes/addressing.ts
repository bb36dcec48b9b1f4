import type { FanoutPolicy } from '../../../../schemas/network/channels.js'
import type { Envelope } from '../../../../schemas/network/messages.js'
import { EVERYONE } from '../envelope.js'

/** How a message addresses a peer: by its name, as a peer of a direct room, or by a mention. */
export type AddressedBy = 'to' | 'room' | 'mention' | 'channel'

/** Settings of a channel that determine the receivers of a message to all. */
export interface Fanout {
  readonly policy: FanoutPolicy
  /** Id of the leading peer. */
  readonly coordinator: string | undefined
}

/** Declared capabilities of a peer. */
export type CapabilitiesOf = (peerId: string) => readonly string[]

/**
 * How a message addresses a peer; undefined if it does not. A mention of the whole channel addresses all members, only
 * the coordinator, or the peers with a capability that the message names as its intent or as a word.
 */
export function addressing(
  { to, mentions = [], body }: Pick<Envelope, 'to' | 'mentions' | 'body'>,
  { policy, coordinator }: Fanout,
  isRoom: boolean,
  capabilitiesOf: CapabilitiesOf,
): (peerId: string) => AddressedBy | undefined {
  const named = new Set(mentions)
  const isForAll = named.has(EVERYONE)
  const wanted = isForAll && policy === 'capability_match' ? capabilitiesIn(body) : () => false
  const isMember = (peerId: string) => {
    if (policy === 'coordinator') return coordinator === peerId
    return policy === 'all_members' || capabilitiesOf(peerId).some(wanted)
  }
  return peerId => {
    if (to === peerId) return 'to'
    if (isRoom) return 'room'
    if (named.has(peerId)) return 'mention'
    return isForAll && isMember(peerId) ? 'channel' : undefined
  }
}

/** Returns a test whether a body names a capability. */
function capabilitiesIn(body: unknown): (id: string) => boolean {
  const { text, intent } = body as { readonly text?: unknown; readonly intent?: unknown }
  const words = new Set(
    `${text ?? ''}`
      .toLowerCase()
      .split(/[^a-z0-9._-]+/)
      .map(word => word.replace(/^[._-]+|[._-]+$/g, '')),
  )
  return id => id === intent || words.has(id.toLowerCase())
}
