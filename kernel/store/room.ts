import { systemClock } from '../clock.js'
import type { Awaitable } from '../contract/basics.js'
import { messageOf } from '../contract/errors.js'
import type { Room } from '../contract/storage.js'
import { codeOf } from '../kit/system-calls.js'
import type { Disk } from './disk.js'
import { StoreError } from './error.js'

/** Milliseconds between two attempts of a write on a full disk. */
const AGAIN_MS = 100

/** No reserve: a write on a full disk is repeated until there is space. */
export const noReserve: Room = { spend: () => false, again: () => systemClock().sleep(AGAIN_MS) }

/** Whether a call failed for lack of space and may be repeated; see {@link syncing}. */
export function isFull(thrown: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes(codeOf(thrown))
}

/**
 * Runs a sync. Its error must not be repeated, even on a full disk, since the state that it leaves is unknown; so it loses its
 * code.
 */
export async function syncing(sync: () => Promise<void>): Promise<void> {
  try {
    await sync()
  } catch (error) {
    throw new Error(messageOf(error), { cause: error })
  }
}

/** @returns StoreError `disk_full`, for work that is not acknowledged because a write finds no space */
export function diskFull(what: string, cause?: unknown): StoreError {
  const why = cause === undefined ? '' : `: ${messageOf(cause)}`
  return new StoreError('disk_full', `${what}, the disk is full${why}`, 'free some space', cause)
}

/**
 * Writes all the bytes. A short write continues at its end; one that finds no space is repeated as long as `room` has space to
 * release, and then fails. Repeating is safe: the same bytes go to the same place, with no sync in between.
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

/** Runs a step that can be repeated as a whole; repeated while it fails for lack of space and `room` has space to release. */
export async function spending<T>(room: Room, bytes: number, step: () => Awaitable<T>): Promise<T> {
  for (;;) {
    try {
      return await step()
    } catch (error) {
      if (!isFull(error) || !room.spend(bytes)) throw error
    }
  }
}

/** Repeats writes until there is space. It does not queue: a caller with several writes awaits each before the next. */
export class Patience {
  /** Set while a write waits for space. */
  stalled: StoreError | undefined
  #closed = false
  readonly #waiting = new Set<() => void>()

  /** @param waits called once when a write begins to wait; @param what begins the text of `stalled` */
  constructor(
    readonly room: Room,
    private readonly what: string,
    private readonly waits: (stalled: StoreError) => void,
  ) {}

  /** Runs a write until it no longer fails for lack of space; each attempt writes everything again. */
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

  /** Ends all waits: a write that finds no space fails with `disk_full` from now on. */
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
