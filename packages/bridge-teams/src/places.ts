import { createHash } from 'node:crypto'
import { type Address, clip, type Host, messageOf, NotSent, type Target } from '../../bridge-kit/src/index.js'
import { connectorOf } from './config.js'

/** A conversation that the bot has heard of, and how it is reached: Teams has no list of them. */
export interface Place extends Address {
  readonly kind: 'personal' | 'groupChat' | 'channel'
  /** Of the conversation at the Bot Connector, without a thread. */
  readonly conversation: string
  /** Address of its Bot Connector, without a slash at its end. */
  readonly service: string
  readonly name?: string
}

/** A group of places is one value of the daemon, which has at most 64 KiB. */
const GROUPS = 16
const MOST_BYTES = 60_000

const keyOf = ({ group_id: group, peer_id: peer }: Address): string =>
  group === undefined ? `peer:${peer ?? ''}` : `group:${group}`

/** The known conversations of one instance; they outlast the process. */
export class Places {
  /** Groups by their number, each with its places by key, the ones that changed last at the end. */
  readonly #groups = new Map<number, Promise<Map<string, Place>>>()
  /** Changes of a group, one after the other. */
  readonly #changes = new Map<number, Promise<void>>()

  constructor(
    private readonly host: Pick<Host, 'values' | 'log'>,
    private readonly ownService: string | undefined,
  ) {}

  /** The conversation of an address. @throws NotSent there is none */
  async get(target: Address): Promise<Place> {
    const key = keyOf(target)
    const place = (await this.#group(numberOf(key))).get(key)
    // The configuration may name another address since.
    if (place && connectorOf(place.service, this.ownService) !== undefined) return place
    const message = `${JSON.stringify(clip(key, 120))} is not known: a person has to write to the bot, or the bot has to be added there`
    throw new NotSent('unknown_destination', message)
  }

  /** Remembers a conversation; resolves when that is durable, or the daemon did not take it. */
  learn(place: Place): Promise<void> {
    const key = keyOf(place)
    const number = numberOf(key)
    const change = (this.#changes.get(number) ?? Promise.resolve()).then(() => this.#put(number, key, place))
    const done = change.catch(error => this.host.log(`a conversation is not kept: ${messageOf(error)}`))
    this.#changes.set(number, done)
    return done
  }

  async targets(): Promise<readonly Target[]> {
    const groups = await Promise.all(Array.from({ length: GROUPS }, (_, number) => this.#group(number)))
    return groups.flatMap(group =>
      [...group.values()].map(({ kind, name, conversation, group_id: group, peer_id: peer }) => ({
        ...(group === undefined ? { peer_id: peer ?? '' } : { group_id: group }),
        display_name: clip(name ?? peer ?? conversation, 200),
        target_type: kind === 'personal' ? 'user' : kind === 'channel' ? 'channel' : 'group',
      })),
    )
  }

  #group(number: number): Promise<Map<string, Place>> {
    const known = this.#groups.get(number)
    if (known) return known
    const loading = this.host.values.get(`places/${number}`).then(placesOf)
    this.#groups.set(number, loading)
    loading.catch(() => this.#groups.delete(number))
    return loading
  }

  async #put(number: number, key: string, place: Place): Promise<void> {
    const group = await this.#group(number)
    const before = group.get(key)
    const next = before?.name !== undefined && place.name === undefined ? { ...place, name: before.name } : place
    if (before && JSON.stringify(before) === JSON.stringify(next)) return
    group.delete(key)
    group.set(key, next)
    for (const oldest of group.keys()) {
      if (Buffer.byteLength(JSON.stringify([...group])) <= MOST_BYTES) break
      group.delete(oldest)
    }
    await this.host.values.put(`places/${number}`, [...group])
  }
}

const numberOf = (key: string): number => (createHash('sha256').update(key).digest()[0] ?? 0) % GROUPS

function placesOf(value: unknown): Map<string, Place> {
  return new Map(Array.isArray(value) ? (value as [string, Place][]) : [])
}
