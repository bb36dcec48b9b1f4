import { clip, type Host, messageOf, NotSent, type Target } from '../../bridge-kit/src/index.js'
import { isTransient, type MatrixClient, MatrixError } from './client.js'
import { isRoom, isUser } from './config.js'

/** Cached state of a room. */
export interface Room {
  readonly name?: string
  readonly encrypted: boolean
  /** The other member of a room with two members. */
  readonly peer?: string
}

const MOST_ROOMS = 1000
/** Bytes of a member list; a longer one is not of a direct chat. */
const MOST_BYTES = 1024 * 1024
/** A larger room is assumed to stay a group. */
const MANY = 20
/** Unknown rooms that one list of targets looks up. */
const MOST_ASKED = 50
const MOST_TARGETS = 500

/** Room state, fetched on demand and again after a change. */
export class Rooms {
  readonly #known = new Map<string, Promise<Room>>()
  /** Configured rooms, which are never direct chats. */
  readonly #fixed = new Set<string>()
  /** Rooms with many members, whose member list is not fetched again on joins and leaves. */
  readonly #large = new Set<string>()
  readonly #direct = new Map<string, string>()

  constructor(
    private readonly client: MatrixClient,
    private readonly host: Pick<Host, 'values' | 'log'>,
    private readonly self: string,
  ) {}

  /** Joins a configured room and returns its id. */
  async join(name: string): Promise<string> {
    const { room_id: room } = await this.client.call('POST', ['join', name], { body: {} })
    if (!isRoom(room)) throw new Error(`the homeserver returned no id for ${name}`)
    this.#fixed.add(room)
    this.forget(room)
    return room
  }

  get(room: string): Promise<Room> {
    const known = this.#known.get(room)
    if (known) return known
    const pending = this.#ask(room)
    for (const oldest of this.#known.keys()) {
      if (this.#known.size < MOST_ROOMS) break
      this.#known.delete(oldest)
    }
    this.#known.set(room, pending)
    pending.catch(() => this.#known.get(room) === pending && this.#known.delete(room))
    return pending
  }

  /** Discards the cached state after a change of members, name or encryption. */
  forget(room: string): void {
    this.#known.delete(room)
  }

  /**
   * The direct chat with a person.
   * @throws NotSent If there is none
   */
  async directOf(user: string): Promise<string> {
    const kept = this.#direct.get(user) ?? (await this.host.values.get(`direct/${user}`))
    if (isRoom(kept)) {
      this.#direct.set(user, kept)
      // Another person may have joined the room meanwhile.
      if ((await this.get(kept)).peer === user) return kept
    }
    throw new NotSent(
      'unknown_destination',
      `${clip(user, 255)} has no direct chat with the bot: it has to invite the bot`,
    )
  }

  /** Stores a direct chat; resolves when it is durable. */
  async learnDirect(user: string, room: string): Promise<void> {
    if (this.#direct.get(user) === room) return
    await this.host.values.put(`direct/${user}`, room)
    if (this.#direct.size >= MOST_ROOMS) this.#direct.clear()
    this.#direct.set(user, room)
  }

  async targets(): Promise<readonly Target[]> {
    const { joined_rooms: joined } = await this.client.call('GET', ['joined_rooms'])
    const rooms = (Array.isArray(joined) ? joined : []).filter(isRoom).slice(0, MOST_TARGETS)
    const targets: Target[] = []
    let requestCount = 0
    for (const room of rooms) {
      const isAsked = this.#known.has(room) || requestCount++ < MOST_ASKED
      const known = isAsked ? await this.get(room).catch(() => undefined) : undefined
      const { name, peer, encrypted } = known ?? {}
      if (encrypted) continue
      targets.push({
        ...(peer === undefined ? { group_id: room } : { peer_id: peer }),
        display_name: name ?? peer ?? room,
        target_type: peer === undefined ? 'group' : 'user',
        ...(name === undefined ? {} : { qualifier: room }),
      })
    }
    return targets
  }

  async #ask(room: string): Promise<Room> {
    const [encryption, name, peer] = await Promise.all([
      this.#state(room, 'm.room.encryption'),
      this.#state(room, 'm.room.name'),
      this.#fixed.has(room) || this.#large.has(room) ? undefined : this.#peerIn(room),
    ])
    const called = typeof name?.name === 'string' && name.name.trim() !== '' ? clip(name.name, 200) : undefined
    return {
      encrypted: encryption !== undefined,
      ...(called === undefined ? {} : { name: called }),
      ...(peer === undefined ? {} : { peer }),
    }
  }

  async #state(room: string, type: string): Promise<Readonly<Record<string, unknown>> | undefined> {
    return this.client.call('GET', ['rooms', room, 'state', type]).catch(error => {
      if (error instanceof MatrixError && error.status === 404) return undefined
      throw error
    })
  }

  async #peerIn(room: string): Promise<string | undefined> {
    try {
      const { joined } = await this.client.call('GET', ['rooms', room, 'joined_members'], { mostBytes: MOST_BYTES })
      const members = Object.keys((joined ?? {}) as object).filter(isUser)
      if (members.length > MANY) this.#large.add(room)
      return members.length === 2 ? members.find(user => user !== this.self) : undefined
    } catch (error) {
      if (error instanceof MatrixError && isTransient(error)) throw error
      if (!/a reply of more than/.test(messageOf(error))) throw error
      this.#large.add(room)
      return undefined
    }
  }
}
