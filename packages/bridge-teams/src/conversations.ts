import { createHash } from 'node:crypto'
import { type Address, clip, type Host, messageOf, NotSent, type Target } from '../../bridge-kit/src/index.js'
import { connectorOf } from './config.js'

/** A known conversation and its connector: Teams offers no list. */
export interface Conversation extends Address {
  readonly kind: 'personal' | 'groupChat' | 'channel'
  /** Id of the conversation at the Bot Connector, without a thread. */
  readonly conversation: string
  /** Bot Connector URL without a trailing slash. */
  readonly service: string
  readonly name?: string
}

/** Each group of places is one value of the daemon, which is limited to 64 KiB. */
const GROUPS = 16
const MOST_BYTES = 60_000

const keyOf = ({ group_id: group, peer_id: peer }: Address): string =>
  group === undefined ? `peer:${peer ?? ''}` : `group:${group}`

/** The known conversations of one instance, kept over restarts. */
export class Conversations {
  /** Groups by number; the places of each in order of change, the latest last. */
  readonly #groups = new Map<number, Promise<Map<string, Conversation>>>()
  /** Serialises the changes of each group. */
  readonly #changes = new Map<number, Promise<void>>()

  constructor(
    private readonly host: Pick<Host, 'values' | 'log'>,
    private readonly ownService: string | undefined,
  ) {}

  /**
   * The conversation of an address.
   * @throws NotSent If it is unknown
   */
  async get(target: Address): Promise<Conversation> {
    const key = keyOf(target)
    const location = (await this.#group(numberOf(key))).get(key)
    // The stored URL may no longer be allowed by the configuration.
    if (location && connectorOf(location.service, this.ownService) !== undefined) return location
    const message = `${JSON.stringify(clip(key, 120))} is not known: a person has to write to the bot, or the bot has to be added there`
    throw new NotSent('unknown_destination', message)
  }

  /** Stores a conversation; resolves when it is durable or the daemon has refused it. */
  learn(location: Conversation): Promise<void> {
    const key = keyOf(location)
    const number = numberOf(key)
    const change = (this.#changes.get(number) ?? Promise.resolve()).then(() => this.#put(number, key, location))
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

  #group(number: number): Promise<Map<string, Conversation>> {
    const known = this.#groups.get(number)
    if (known) return known
    const loading = this.host.values.get(`places/${number}`).then(placesOf)
    this.#groups.set(number, loading)
    loading.catch(() => this.#groups.delete(number))
    return loading
  }

  async #put(number: number, key: string, location: Conversation): Promise<void> {
    const group = await this.#group(number)
    const before = group.get(key)
    const next =
      before?.name !== undefined && location.name === undefined ? { ...location, name: before.name } : location
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

function placesOf(value: unknown): Map<string, Conversation> {
  return new Map(Array.isArray(value) ? (value as [string, Conversation][]) : [])
}
