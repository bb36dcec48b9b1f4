import {
  type APIChannel,
  ChannelType,
  GatewayDispatchEvents as Events,
  type GatewayDispatchPayload,
} from '@discordjs/core'
import type { Address, Target } from '../../bridge-kit/src/index.js'

const MOST_PLACES = 5000
const THREADS: ReadonlySet<ChannelType> = new Set([
  ChannelType.AnnouncementThread,
  ChannelType.PublicThread,
  ChannelType.PrivateThread,
])
/** Types of channels that a bot can write to. */
const ROOMS: ReadonlySet<ChannelType> = new Set([ChannelType.GuildText, ChannelType.GuildAnnouncement])

interface ChannelInfo {
  readonly type: ChannelType
  readonly name: string
  readonly parent: string | undefined
  readonly guild: string | undefined
}

interface AnyChannel {
  readonly id: string
  readonly type: ChannelType
  readonly name?: string | null
  readonly parent_id?: string | null
  readonly guild_id?: string
}

/** Servers, channels and threads reported by the gateway, and the senders of direct messages. */
export class Channels {
  readonly #places = new Map<string, ChannelInfo>()
  readonly #guilds = new Map<string, string>()
  /** Direct-message channel and name by person. */
  readonly #people = new Map<string, { readonly channel: string; readonly name: string }>()

  get guilds(): number {
    return this.#guilds.size
  }

  /** Updates the known places from a gateway event. */
  learn(payload: GatewayDispatchPayload): void {
    switch (payload.t) {
      case Events.GuildCreate: {
        const { id, name, channels, threads } = payload.d
        this.#guilds.set(id, name ?? id)
        for (const channel of [...(channels ?? []), ...(threads ?? [])])
          this.add({ ...(channel as AnyChannel), guild_id: id })
        return
      }
      case Events.GuildDelete:
        if (payload.d.unavailable) return
        this.#guilds.delete(payload.d.id)
        for (const [id, { guild }] of this.#places) if (guild === payload.d.id) this.#places.delete(id)
        return
      case Events.ChannelCreate:
      case Events.ChannelUpdate:
      case Events.ThreadCreate:
      case Events.ThreadUpdate:
        this.add(payload.d as AnyChannel)
        return
      case Events.ChannelDelete:
      case Events.ThreadDelete:
        this.#places.delete(payload.d.id)
    }
  }

  add({ id, type, name, parent_id: parent, guild_id: guild }: AnyChannel | (APIChannel & AnyChannel)): void {
    put(this.#places, id, { type, name: name ?? id, parent: parent ?? undefined, guild })
  }

  has(channel: string): boolean {
    return this.#places.has(channel)
  }

  /** The address of a server channel; a thread is addressed below its parent channel. */
  addressOf(channel: string): Address {
    const location = this.#places.get(channel)
    if (!location || !THREADS.has(location.type) || location.parent === undefined) return { group_id: channel }
    return { group_id: location.parent, thread_id: channel }
  }

  learnPerson(user: string, channel: string, name?: string): void {
    put(this.#people, user, { channel, name: name ?? this.#people.get(user)?.name ?? user })
  }

  directOf(user: string): string | undefined {
    return this.#people.get(user)?.channel
  }

  targets(): readonly Target[] {
    const targets: Target[] = []
    for (const [id, { type, name, parent, guild = '' }] of this.#places) {
      const isThread = THREADS.has(type)
      if (!isThread && !ROOMS.has(type)) continue
      const server = this.#guilds.get(guild) ?? guild
      const above = parent === undefined ? undefined : this.#places.get(parent)?.name
      targets.push({
        ...this.addressOf(id),
        display_name: isThread ? name : `#${name}`,
        target_type: isThread ? 'thread' : 'channel',
        qualifier: isThread && above !== undefined ? `${server} #${above}` : server,
      })
    }
    for (const [user, { name }] of this.#people)
      targets.push({ peer_id: user, display_name: `@${name}`, target_type: 'user' })
    return targets
  }
}

function put<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key)
  map.set(key, value)
  if (map.size <= MOST_PLACES) return
  for (const oldest of map.keys()) {
    map.delete(oldest)
    return
  }
}
