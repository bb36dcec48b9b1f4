import type { Awaitable } from '../contract/basics.js'

/** The newest entries of one subject by position, and a signal for those who wait for the next. */
export class Feed<E> {
  readonly #entries: { readonly at: number; readonly entry: E }[] = []
  #next: { readonly happened: Promise<void>; readonly wake: () => void } | undefined

  /** @param remembered so many entries; readers that come back later than that begin with a snapshot */
  constructor(private readonly remembered = 256) {}

  /** Position of the newest entry; undefined before the first one. */
  get last(): number | undefined {
    return this.#entries.at(-1)?.at
  }

  /** Adds an entry at a position, 1 more than that of the entry before or beyond a gap, and wakes who waits. */
  publish(at: number, entry: E): void {
    const last = this.last
    if (last !== undefined && at <= last) throw new RangeError(`an entry at ${at} cannot follow the one at ${last}`)
    this.#entries.push({ at, entry })
    if (this.#entries.length > this.remembered) this.#entries.shift()
    this.wake()
  }

  /** The entries behind a position up to another, or undefined when not all of them are known any more. */
  between(after: number, upTo: number): E[] | undefined {
    const missed = this.#entries.filter(({ at }) => at > after && at <= upTo)
    return missed.length === upTo - after ? missed.map(({ entry }) => entry) : undefined
  }

  /** Something that readers want to know, an entry or not. */
  wake(): void {
    const next = this.#next
    this.#next = undefined
    next?.wake()
  }

  /** Resolves when readers are woken the next time; to be asked for before the state is read. */
  next(): Promise<void> {
    let wake = () => {}
    this.#next ??= { happened: new Promise<void>(resolve => (wake = resolve)), wake: () => wake() }
    return this.#next.happened
  }
}

/** What {@link follow} reads from. Positions are whole numbers that only grow. */
export interface FeedSource<S, E> {
  /** Position of the newest change; undefined when the subject is gone, which ends the feed. */
  last(): number | undefined
  /** Some entries behind a position and where they end, that position when there are none; undefined: no longer known. */
  read(after: number): Awaitable<{ readonly at: number; readonly entries: readonly E[] } | undefined>
  /** Everything as it is now, and the position of that. */
  snapshot(): Awaitable<{ readonly at: number; readonly snapshot: S }>
  /** Resolves at the next change. */
  next(): Promise<unknown>
  /** When it is another value than before, readers get a snapshot. */
  epoch?(): unknown
}

/** Why a reader that was somewhere gets a snapshot: what follows is forgotten, not yet there, or reckoned otherwise. */
export type FeedReset = 'behind' | 'ahead' | 'epoch'

/** What a reader gets at one time: a snapshot, or entries; neither when it was woken for something else. */
export type FeedItem<S, E> =
  | { readonly at: number; readonly entries: readonly E[] }
  | { readonly at: number; readonly snapshot: S; readonly reset: FeedReset | undefined }

/**
 * A snapshot, unless the reader was somewhere from where all that follows is known; then entries as they come. Ends with the
 * signal or the subject. A reader holds a position and no queue, so a slow one costs nothing. One that claims to be ahead of the
 * newest change, after a restore say, gets a snapshot instead of waiting for what was never there.
 * @param after where the reader was, see {@link positionOf}
 */
export async function* follow<S, E>(
  source: FeedSource<S, E>,
  after: number | undefined,
  signal: AbortSignal,
  // Of the moment of the call: what changes until the first item is asked for is told as well.
  epochNow: unknown = source.epoch?.(),
): AsyncGenerator<FeedItem<S, E>> {
  let at = after
  let epoch = epochNow
  let wake = () => {}
  const aborted = () => wake()
  signal.addEventListener('abort', aborted)
  try {
    while (!signal.aborted) {
      const next = source.next()
      const last = source.last()
      if (last === undefined) return
      const same = source.epoch?.() === epoch
      const found = at === undefined || at > last || !same ? undefined : await source.read(at)
      if (found) {
        const moved = found.at !== at
        at = found.at
        yield { at, entries: found.entries }
        if (moved) continue
      } else {
        const reset = at === undefined ? undefined : !same ? 'epoch' : at > last ? 'ahead' : 'behind'
        epoch = source.epoch?.()
        const taken = await source.snapshot()
        at = taken.at
        yield { at, snapshot: taken.snapshot, reset }
      }
      if (signal.aborted) return
      // Not Promise.race: the one for the abort would keep all of its calls, and a stream has many.
      await new Promise<void>(resolve => {
        wake = resolve
        void next.then(() => resolve())
      })
    }
  } finally {
    signal.removeEventListener('abort', aborted)
  }
}

/** The position that a `Last-Event-ID` names; undefined for none and for what is no position. */
export function positionOf(lastEventId: string | undefined): number | undefined {
  const text = lastEventId?.trim() ?? ''
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined
}
