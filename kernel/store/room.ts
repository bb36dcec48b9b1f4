import { systemClock } from '../clock.js'
import type { Awaitable } from '../contract/basics.js'
import type { Room } from '../contract/storage.js'
import type { Disk } from './disk.js'
import { errnoOf, reasonOf, StoreError } from './error.js'

/** Milliseconds between two tries of a write that has no room. */
const AGAIN_MS = 100

/** Nothing is kept: a write that finds no room is tried again until there is some. */
export const noReserve: Room = { spend: () => false, again: () => systemClock().sleep(AGAIN_MS) }

/** A call that failed for want of room and may be repeated; see {@link syncing}. */
export function isFull(thrown: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes(errnoOf(thrown) ?? '')
}

/** Syncs; an error of it is one that nobody repeats, also of a full disk: what it left there is not known. */
export async function syncing(sync: () => Promise<void>): Promise<void> {
  try {
    await sync()
  } catch (error) {
    throw new Error(reasonOf(error), { cause: error })
  }
}

/** @returns StoreError `disk_full`, for work that is not acknowledged because a write finds no room */
export function diskFull(what: string, cause?: unknown): StoreError {
  const why = cause === undefined ? '' : `: ${reasonOf(cause)}`
  return new StoreError('disk_full', `${what}, the disk is full${why}`, 'free some space', cause)
}

/**
 * Writes all the bytes. A short write goes on where it ended; one that finds no room is repeated as long as `room` has some
 * to spend, and fails after that. Repeating is safe: the same bytes go to the same place, and no sync lies between.
 */
export function writeAll(
  disk: Pick<Disk, 'pwrite'>,
  handle: number,
  bytes: Uint8Array,
  offset: number,
  room: Room = noReserve,
): Awaitable<void> {
  let done = 0
  const advance = (written: number): void => {
    done += written
    if (written === 0) orSpend(Object.assign(new Error(`nothing of ${bytes.length} bytes was written`), FULL))
  }
  const orSpend = (error: unknown): void => {
    if (!isFull(error) || !room.spend(bytes.length - done)) throw error
  }
  const goOn = (): Awaitable<void> => {
    while (done < bytes.length) {
      try {
        const written = disk.pwrite(handle, done === 0 ? bytes : bytes.subarray(done), offset + done)
        if (typeof written !== 'number') return written.then(advance, orSpend).then(goOn)
        advance(written)
      } catch (error) {
        orSpend(error)
      }
    }
  }
  return goOn()
}

const FULL = { code: 'ENOSPC' }

/** Runs a step that can be repeated whole, again as long as it fails for want of room and `room` has some to spend. */
export async function spending<T>(room: Room, bytes: number, step: () => Awaitable<T>): Promise<T> {
  for (;;) {
    try {
      return await step()
    } catch (error) {
      if (!isFull(error) || !room.spend(bytes)) throw error
    }
  }
}

/** Repeats writes until there is room for them, in order: who has several awaits one before the next. */
export class Patience {
  /** Set while a write waits for room. */
  stalled: StoreError | undefined
  #closed = false
  readonly #waiting = new Set<() => void>()

  /** @param waits told once when a write begins to wait; @param what begins the text of `stalled` */
  constructor(
    readonly room: Room,
    private readonly what: string,
    private readonly waits: (stalled: StoreError) => void,
  ) {}

  /** Runs a write until it does not fail for want of room; what it has written already it writes once more. */
  write<T>(write: () => Awaitable<T>): Awaitable<T> {
    const again = async (error: unknown): Promise<T> => {
      if (!isFull(error)) throw error
      await this.#wait(error)
      return this.write(write)
    }
    const over = (result: T): T => {
      this.stalled = undefined
      return result
    }
    try {
      const written = write()
      return written instanceof Promise ? written.then(over, again) : over(written as T)
    } catch (error) {
      return again(error)
    }
  }

  /** From here on no write waits: one that finds no room fails with `disk_full`. */
  close(): void {
    this.#closed = true
    for (const wake of this.#waiting) wake()
  }

  async #wait(cause: unknown): Promise<void> {
    if (this.stalled === undefined) {
      this.stalled = diskFull(this.what, cause)
      this.waits(this.stalled)
    }
    const { stalled } = this
    if (!this.#closed) {
      await new Promise<void>((resolve, reject) => {
        this.#waiting.add(resolve)
        this.room
          .again()
          .then(resolve, reject)
          .finally(() => this.#waiting.delete(resolve))
      })
    }
    if (this.#closed) throw stalled
  }
}
