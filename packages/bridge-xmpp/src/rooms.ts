import { type Element, xml } from '@xmpp/client-core'
import { bareOf, resourceOf } from './address.js'
import type { XmppConfig } from './config.js'
import { errorOf, NS, occupantIdOf } from './stanzas.js'

const MOST_OCCUPANTS = 5000
const MOST_ALTERNATIVES = 5

/** A configured room. */
interface Room {
  /** The bot's nick in the room. */
  nick: string
  joined: boolean
  refused: string | undefined
  /** Bare JIDs by nick; undefined for a hidden address. */
  readonly occupants: Map<string, string | undefined>
  /** Bare JIDs by occupant id. */
  readonly byId: Map<string, string>
  alternatives: number
}

/** The rooms of one connection, with their occupants. */
export class Rooms {
  readonly #rooms: Map<string, Room>

  constructor(
    private readonly config: XmppConfig,
    private readonly send: (stanza: Element) => Promise<void>,
    private readonly changed: (joined?: string) => void,
  ) {
    this.#rooms = new Map(
      config.rooms.map(room => [
        room,
        {
          nick: config.nick,
          joined: false,
          refused: undefined,
          occupants: new Map(),
          byId: new Map(),
          alternatives: 0,
        },
      ]),
    )
  }

  /** Joins all rooms that are not joined, without their history. */
  async join(): Promise<void> {
    for (const [address, room] of this.#rooms) {
      if (room.joined) continue
      const history = xml('history', { maxstanzas: '0' })
      await this.send(xml('presence', { to: `${address}/${room.nick}` }, xml('x', { xmlns: NS.muc }, history)))
    }
  }

  has(address: string): boolean {
    return this.#rooms.has(address)
  }

  isJoined(address: string): boolean {
    return this.#rooms.get(address)?.joined === true
  }

  /** Rooms that are not joined, with the reason. */
  missing(): readonly (readonly [address: string, why: string])[] {
    return [...this.#rooms].flatMap(([address, room]) =>
      room.joined ? [] : [[address, room.refused ?? 'not joined yet'] as const],
    )
  }

  joined(): readonly string[] {
    return [...this.#rooms].flatMap(([address, { joined }]) => (joined ? [address] : []))
  }

  nickIn(address: string): string {
    return this.#rooms.get(address)?.nick ?? this.config.nick
  }

  /** Whether an address is the bot's own in a room. */
  isMine(from: string): boolean {
    return this.#rooms.get(bareOf(from))?.nick === resourceOf(from)
  }

  /** The bare JID behind a nick, if the room shows it. */
  addressBehind(from: string): string | undefined {
    return this.#rooms.get(bareOf(from))?.occupants.get(resourceOf(from))
  }

  /** The bare JID of a present occupant, by occupant id. Only rooms with occupant ids: elsewhere a client could choose the id. */
  addressOfOccupant(room: string, id: string): string | undefined {
    return this.#rooms.get(room)?.byId.get(id)
  }

  presence(stanza: Element): void {
    const { from = '', type } = stanza.attrs
    const room = this.#rooms.get(bareOf(from))
    if (!room) return
    if (type === 'error') {
      this.#refused(room, stanza)
      return
    }
    const x = stanza.getChild('x', NS.mucUser)
    const codes = new Set(x?.getChildren('status').map(({ attrs }) => attrs.code))
    const nick = resourceOf(from)
    if (type === 'unavailable') {
      room.occupants.delete(nick)
      if (codes.has('303') && nick === room.nick) room.nick = x?.getChild('item')?.attrs.nick ?? room.nick
      else if (nick === room.nick) this.#left(room, codes)
      return
    }
    const real = x?.getChild('item')?.attrs.jid
    if (room.occupants.size < MOST_OCCUPANTS || room.occupants.has(nick))
      room.occupants.set(nick, real === undefined ? undefined : bareOf(real))
    const id = occupantIdOf(stanza)
    if (id !== undefined && real !== undefined && room.byId.size < MOST_OCCUPANTS) room.byId.set(id, bareOf(real))
    if (!codes.has('110') || room.joined) return
    // The room may have assigned another nick.
    room.nick = nick
    room.joined = true
    room.refused = undefined
    this.changed(bareOf(from))
  }

  #refused(room: Room, stanza: Element): void {
    if (room.joined) return
    const { text } = errorOf(stanza)
    room.refused = text
    if (text.startsWith('conflict') && room.alternatives < MOST_ALTERNATIVES) {
      room.alternatives++
      room.nick = `${this.config.nick}${'_'.repeat(room.alternatives)}`
      void this.join().catch(() => {})
    } else this.changed()
  }

  #left(room: Room, codes: ReadonlySet<string | undefined>): void {
    const why = { '301': 'banned', '307': 'kicked', '321': 'no longer a member', '332': 'the room server stops' }
    room.joined = false
    room.occupants.clear()
    room.byId.clear()
    room.refused = Object.entries(why).find(([code]) => codes.has(code))?.[1] ?? 'left'
    room.nick = this.config.nick
    room.alternatives = 0
    this.changed()
  }
}
