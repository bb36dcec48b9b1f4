import type { Awaitable } from '../contract/basics.js'

/** The newest entries of one subject by position, and a signal for readers that wait for the next. */
export class Feed<E> {
  readonly #entries: { readonly at: number; readonly entry: E }[] = []
  #next: { readonly happened: Promise<void>; readonly wake: () => void } | undefined

  /** @param remembered number of kept entries; readers that are further behind begin with a snapshot */
  constructor(private readonly remembered = 256) {}

  /** Position of the newest entry; undefined before the first one. */
  get last(): number | undefined {
    return this.#entries.at(-1)?.at
  }

  /** Adds an entry and wakes readers. Its position is the last one plus 1, or more after a gap. */
  publish(at: number, entry: E): void {
    const last = this.last
    if (last !== undefined && at <= last) throw new RangeError(`the entry at ${at} cannot follow the entry at ${last}`)
    this.#entries.push({ at, entry })
    if (this.#entries.length > this.remembered) this.#entries.shift()
    this.wake()
  }

  /** The entries after a position up to another, or undefined when some of them are no longer known. */
  between(after: number, upTo: number): E[] | undefined {
    const missed = this.#entries.filter(({ at }) => at > after && at <= upTo)
    return missed.length === upTo - after ? missed.map(({ entry }) => entry) : undefined
  }

  /** Wakes readers, for a new entry or any other change. */
  wake(): void {
    const next = this.#next
    this.#next = undefined
    next?.wake()
  }

  /** Resolves when readers are woken the next time. Call it before reading the state, so that no change is missed. */
  next(): Promise<void> {
    let wake = () => {}
    this.#next ??= { happened: new Promise<void>(resolve => (wake = resolve)), wake: () => wake() }
    return this.#next.happened
  }
}

/** The source of {@link follow}. Positions are increasing integers. */
export interface FeedSource<S, E> {
  /** Position of the newest change; undefined when the subject is gone, which ends the feed. */
  last(): number | undefined
  /**
   * Entries after a position and the position of the last one (the given one without entries); undefined when they are no longer
   * known.
   */
  read(after: number): Awaitable<{ readonly at: number; readonly entries: readonly E[] } | undefined>
  /** The current state and its position. */
  snapshot(): Awaitable<{ readonly at: number; readonly snapshot: S }>
  /** Resolves at the next change. */
  next(): Promise<unknown>
  /** When this value changes, readers get a snapshot. */
  epoch?(): unknown
}

/** Why a reader with a position gets a snapshot: its next entries are forgotten, its position is ahead, or the epoch changed. */
export type FeedReset = 'behind' | 'ahead' | 'epoch'

/** One item for a reader: a snapshot, or entries; no entries when it was woken for another reason. */
export type FeedItem<S, E> =
  | { readonly at: number; readonly entries: readonly E[] }
  | { readonly at: number; readonly snapshot: S; readonly reset: FeedReset | undefined }

/**
 * Yields a snapshot, unless all entries after the reader's position are known; then entries as they come. Ends with the signal or
 * the subject. A reader holds a position and no queue, so a slow one costs nothing. A reader ahead of the newest change, for
 * example after a restore, gets a snapshot instead of waiting for entries that may never come.
 * @param after position of the reader, see {@link positionOf}
 */
export async function* follow<S, E>(
  source: FeedSource<S, E>,
  after: number | undefined,
  signal: AbortSignal,
  // Taken at the call: a change between the call and the first item must not be missed.
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
      // Not Promise.race: the promise of the abort would keep a reaction for every wait, and a stream has many.
      await new Promise<void>(resolve => {
        wake = resolve
        void next.then(() => resolve())
      })
    }
  } finally {
    signal.removeEventListener('abort', aborted)
  }
}

/** The position in a `Last-Event-ID`; undefined when it is absent or invalid. */
export function positionOf(lastEventId: string | undefined): number | undefined {
  const text = lastEventId?.trim() ?? ''
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined
}
