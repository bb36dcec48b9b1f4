import { messageOf } from './running.js'
import type { Timing } from './timing.js'
import type { Host } from './types.js'

/** Places that are remembered; all of them fit into one value of the daemon. */
const MOST_PLACES = 600
/** Positions are kept at most so often. */
const SAVE_MS = 500
const KEY = 'positions'

interface Place {
  /** The newest message below which the daemon has all of them. */
  at: string
  /** Messages on their way to the daemon, and those above {@link at} that it has. */
  readonly open: Set<string>
  readonly done: Set<string>
}

/**
 * How far each place of a platform was read, over restarts: what came meanwhile is asked for from there on. A position passes over no
 * message that the daemon does not have. Ids of messages grow with time: digits, with a point perhaps.
 */
export class Positions {
  readonly #places = new Map<string, Place>()
  #saving: Promise<void> | undefined
  #changed = false

  constructor(
    private readonly host: Pick<Host, 'values' | 'signal' | 'log'>,
    private readonly timing: Timing,
  ) {}

  /** Reads what an earlier process kept. */
  async load(): Promise<void> {
    const kept = Object(await this.host.values.get(KEY)) as Readonly<Record<string, unknown>>
    for (const [place, at] of Object.entries(kept))
      if (typeof at === 'string' && isId(at)) this.#places.set(place, { at, open: new Set(), done: new Set() })
  }

  /** Id of the newest message that was read; undefined: nothing is known of the place. */
  of(place: string): string | undefined {
    return this.#places.get(place)?.at
  }

  /** Places, those that were used last first. */
  places(): readonly string[] {
    return [...this.#places.keys()].reverse()
  }

  /** Where nothing is known of a place, it counts as read up to a message. */
  begin(place: string, at: string): void {
    if (this.#places.has(place) || !isId(at)) return
    this.#put(place, { at, open: new Set(), done: new Set() })
    this.#save()
  }

  /** A message is on its way to the daemon. */
  taking(place: string, id: string): void {
    if (!isId(id)) return
    const known = this.#places.get(place)
    // The position before it is not known; smaller ids count as read.
    const one = known ?? { at: before(id), open: new Set<string>(), done: new Set<string>() }
    if (isAfter(id, one.at)) one.open.add(id)
    this.#put(place, one)
  }

  /** Until it is released a position stays where it is: what was missed above it is not known yet. */
  hold(place: string): () => void {
    const one = this.#places.get(place)
    if (!one) return () => {}
    const { at } = one
    one.open.add(at)
    return () => {
      one.open.delete(at)
      this.#advance(one)
    }
  }

  /** The daemon has a message, or nothing is to be done with it. */
  taken(place: string, id: string): void {
    const one = this.#places.get(place)
    if (!one?.open.delete(id)) return
    one.done.add(id)
    this.#advance(one)
  }

  #advance(one: Place): void {
    for (const done of [...one.done].sort(compare)) {
      if ([...one.open].some(open => isAfter(done, open))) break
      one.at = done
      one.done.delete(done)
    }
    this.#save()
  }

  forget(place: string): void {
    if (this.#places.delete(place)) this.#save()
  }

  #put(place: string, one: Place): void {
    this.#places.delete(place)
    this.#places.set(place, one)
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
    const all = Object.fromEntries([...this.#places].map(([place, { at }]) => [place, at]))
    // What is not kept is asked for again, and the daemon knows it.
    await this.host.values.put(KEY, all).catch(error => this.host.log(`positions are not kept: ${messageOf(error)}`))
  }
}

const isId = (id: string): boolean => /^\d{1,25}(?:\.\d{1,10})?$/.test(id)

/** Whether one id is that of a later message than another. */
export const isAfter = (id: string, other: string): boolean => compare(id, other) > 0

const compare = (a: string, b: string): number => a.length - b.length || (a < b ? -1 : a > b ? 1 : 0)

/** An id below another one, and above all that are smaller by more than one. */
function before(id: string): string {
  const digits = String(BigInt(id.replace('.', '')) - 1n).padStart(id.replace('.', '').length, '0')
  const point = id.indexOf('.')
  return point === -1 ? digits : `${digits.slice(0, point)}.${digits.slice(point)}`
}
