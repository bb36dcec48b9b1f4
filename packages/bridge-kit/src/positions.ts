import { messageOf } from './running.js'
import type { Timing } from './timing.js'
import type { Host } from './types.js'

/** Remembered places; all of them fit into one value of the daemon. */
const MOST_PLACES = 600
/** Minimum interval between saves. */
const SAVE_MS = 500
const KEY = 'positions'

interface ChannelPosition {
  /** The daemon has all messages up to this id. */
  at: string
  /** Messages being handed to the daemon, and messages above {@link at} that it already has. */
  readonly open: Set<string>
  readonly done: Set<string>
}

/**
 * The read position of each place of a platform, kept over restarts, so that missed messages can be fetched. A position never
 * passes a message that the daemon lacks. Message ids must grow with time: digits, optionally with a point.
 */
export class Positions {
  readonly #places = new Map<string, ChannelPosition>()
  #saving: Promise<void> | undefined
  #changed = false

  constructor(
    private readonly host: Pick<Host, 'values' | 'signal' | 'log'>,
    private readonly timing: Timing,
  ) {}

  /** Loads the positions of an earlier process. */
  async load(): Promise<void> {
    const kept = Object(await this.host.values.get(KEY)) as Readonly<Record<string, unknown>>
    for (const [key, at] of Object.entries(kept))
      if (typeof at === 'string' && isId(at)) this.#places.set(key, { at, open: new Set(), done: new Set() })
  }

  /** Id of the newest read message; undefined: the place is unknown. */
  of(key: string): string | undefined {
    return this.#places.get(key)?.at
  }

  /** Places, the most recently used first. */
  places(): readonly string[] {
    return [...this.#places.keys()].reverse()
  }

  /** Sets the first position of a place; a known place keeps its own. */
  begin(key: string, at: string): void {
    if (this.#places.has(key) || !isId(at)) return
    this.#put(key, { at, open: new Set(), done: new Set() })
    this.#save()
  }

  /** Records that a message is being handed to the daemon. */
  taking(key: string, id: string): void {
    if (!isId(id)) return
    const known = this.#places.get(key)
    // Without a known position, all smaller ids count as read.
    const one = known ?? { at: before(id), open: new Set<string>(), done: new Set<string>() }
    if (isAfter(id, one.at)) one.open.add(id)
    this.#put(key, one)
  }

  /** Freezes a position until it is released, because messages missed above it are not known yet. */
  hold(key: string): () => void {
    const one = this.#places.get(key)
    if (!one) return () => {}
    const { at } = one
    one.open.add(at)
    return () => {
      one.open.delete(at)
      this.#advance(one)
    }
  }

  /** Records that the daemon has a message or that it needs no handling. */
  taken(key: string, id: string): void {
    const one = this.#places.get(key)
    if (!one?.open.delete(id)) return
    one.done.add(id)
    this.#advance(one)
  }

  #advance(one: ChannelPosition): void {
    for (const done of [...one.done].sort(compare)) {
      if ([...one.open].some(open => isAfter(done, open))) break
      one.at = done
      one.done.delete(done)
    }
    this.#save()
  }

  forget(key: string): void {
    if (this.#places.delete(key)) this.#save()
  }

  #put(key: string, one: ChannelPosition): void {
    this.#places.delete(key)
    this.#places.set(key, one)
    for (const oldest of this.#places.keys()) {
      if (this.#places.size <= MOST_PLACES) return
      this.#places.delete(oldest)
    }
  }

  #save(): void {
    this.#changed = true
    this.#saving ??= this.#saveSoon().finally(() => {
      this.#saving = undefined
      if (this.#changed && !this.host.signal.aborted) this.#save()
    })
  }

  async #saveSoon(): Promise<void> {
    await this.timing.sleep(SAVE_MS, this.host.signal).catch(() => {})
    if (this.host.signal.aborted) return
    this.#changed = false
    const all = Object.fromEntries([...this.#places].map(([key, { at }]) => [key, at]))
    // After a failed save the messages are fetched again, and the daemon ignores the duplicates.
    await this.host.values.put(KEY, all).catch(error => this.host.log(`positions are not kept: ${messageOf(error)}`))
  }
}

const isId = (id: string): boolean => /^\d{1,25}(?:\.\d{1,10})?$/.test(id)

/** Whether `id` is later than `other`. */
export const isAfter = (id: string, other: string): boolean => compare(id, other) > 0

const compare = (a: string, b: string): number => a.length - b.length || (a < b ? -1 : a > b ? 1 : 0)

/** The id directly below another. */
function before(id: string): string {
  const digits = String(BigInt(id.replace('.', '')) - 1n).padStart(id.replace('.', '').length, '0')
  const point = id.indexOf('.')
  return point === -1 ? digits : `${digits.slice(0, point)}.${digits.slice(point)}`
}
