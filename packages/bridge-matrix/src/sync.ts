import type { RoomEvent } from './events.js'

const SEEN = [
  'm.room.message',
  'm.reaction',
  'm.room.encrypted',
  'm.room.encryption',
  'm.room.member',
  'm.room.name',
] as const

/** State events that only invalidate the cached room state. */
const CHANGES: ReadonlySet<unknown> = new Set(['m.room.encryption', 'm.room.member', 'm.room.name'])

/** Events per room in one response; older events have to be fetched. */
const AT_ONCE = 20
const NONE = { types: [] }

/** The sync filter as JSON. */
export const SYNC_FILTER = JSON.stringify({
  presence: NONE,
  account_data: NONE,
  room: {
    account_data: NONE,
    ephemeral: NONE,
    state: { types: [...CHANGES], lazy_load_members: true },
    timeline: { types: SEEN, limit: AT_ONCE, lazy_load_members: true },
  },
})

/** The filter for older events of a room. */
export const BACKFILL_FILTER = JSON.stringify({ types: SEEN, lazy_load_members: true })

/** A joined room with its new events. */
export interface JoinedRoom {
  readonly room: string
  readonly events: readonly RoomEvent[]
  /** The position before these events; undefined: no events precede them. */
  readonly before: string | undefined
  /** Members, name or encryption may have changed. */
  readonly changed: boolean
}

/** The parsed part of a `/sync` response. */
export interface Synced {
  readonly next: string
  readonly joined: readonly JoinedRoom[]
  readonly invites: readonly { readonly room: string; readonly from: string }[]
}

type Raw = Readonly<Record<string, unknown>>
const objectIn = (value: unknown): Raw => (typeof value === 'object' && value !== null ? (value as Raw) : {})

/** The objects of a list of events. */
export const eventsIn = (value: unknown): readonly RoomEvent[] =>
  (Array.isArray(value) ? value : []).filter(one => typeof one === 'object' && one !== null)

/**
 * Parses a `/sync` response.
 * @throws Error If it is invalid
 */
export function readSync(answer: Raw, self: string): Synced {
  const { next_batch: next, rooms } = answer
  if (typeof next !== 'string' || next === '') throw new Error('the homeserver answered no events')
  const { join, invite } = objectIn(rooms)
  const joined = Object.entries(objectIn(join)).map(([room, value]) => {
    const { timeline, state } = objectIn(value)
    const { events: list, limited, prev_batch: before } = objectIn(timeline)
    const events = eventsIn(list)
    const changed = [...events, ...eventsIn(objectIn(state).events)].some(({ type }) => CHANGES.has(type))
    return { room, events, before: limited === true && typeof before === 'string' ? before : undefined, changed }
  })
  const invites = Object.entries(objectIn(invite)).flatMap(([room, value]) => {
    const events = eventsIn(objectIn(objectIn(value).invite_state).events)
    const own = events.find(one => one.type === 'm.room.member' && one.state_key === self)
    return own?.content?.membership === 'invite' && typeof own.sender === 'string' ? [{ room, from: own.sender }] : []
  })
  return { next, joined, invites }
}

/** Whether the event is the account's own join. */
export const isOwnJoin = ({ type, state_key: user, content, unsigned }: RoomEvent, self: string): boolean =>
  type === 'm.room.member' &&
  user === self &&
  content?.membership === 'join' &&
  unsigned?.prev_content?.membership !== 'join'

/** Events after the account's join: earlier messages were not addressed to it. */
export function sinceJoin(events: readonly RoomEvent[], self: string): readonly RoomEvent[] {
  const at = events.findLastIndex(event => isOwnJoin(event, self))
  return events.slice(at + 1)
}
