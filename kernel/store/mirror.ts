import { type Disk, writeAll } from './disk.js'
import { reasonOf, StoreError } from './error.js'
import type { FileEvents, FilePart } from './file-watcher.js'
import { turn } from './turn.js'

/** Where the mirror writes: open handles of the database and of its write-ahead log. */
export type MirrorFiles = Readonly<Record<MirroredPart, number>>

/** One run of adjacent bytes; `buffer` has room for `length` and more. */
interface WriteStep {
  readonly kind: 'write'
  readonly part: MirroredPart
  readonly offset: number
  buffer: Uint8Array
  length: number
}
type MirroredPart = 'main' | 'wal'
type Step =
  | WriteStep
  | { readonly kind: 'truncate'; readonly part: MirroredPart; readonly size: number }
  /** `covers`: how many syncs of the log that SQLite asked for are done with this one. */
  | { readonly kind: 'sync'; readonly part: MirroredPart; readonly covers: number }

interface Waiter {
  readonly need: number
  readonly done: (error?: StoreError) => void
}

const FIRST_BUFFER = 16 * 1024
/** A run is written in pieces of this size at most. */
const LARGEST_RUN = 4 * 1024 * 1024
/** Writes into the page cache between two turns of the event loop. */
const WRITES_A_TURN = 64

/**
 * Repeats on the real files, in order, what SQLite does in memory (Storage, "The mirror"). Syncs of the log that follow
 * each other merge into one for all transactions that wait (group commit); a sync stays wherever the file changes and after
 * the header of the log was written, for there the order on the disk matters. The first error ends it: it is never tried
 * again, everything that waits is rejected, and nothing is acknowledged any more.
 */
export class Mirror implements FileEvents {
  syncs = 0
  /** SQLite has removed its log, as it does when the database is closed; the owner of the files follows after `drain`. */
  walRemoved = false
  readonly sizes: Record<MirroredPart, number>
  readonly failed: Promise<StoreError>
  failure: StoreError | undefined
  #announce: (error: StoreError) => void = () => {}
  #steps: Step[] = []
  /** The file with bytes written or queued since its last sync. */
  #dirty: MirroredPart | undefined
  #header = false
  #wanted = false
  #asked = 0
  #done = 0
  #flushing = false
  #waiters: Waiter[] = []
  readonly #disk: Disk
  readonly #files: MirrorFiles

  constructor(disk: Disk, files: MirrorFiles, sizes: Record<MirroredPart, number>) {
    this.#disk = disk
    this.#files = files
    this.sizes = { ...sizes }
    this.failed = new Promise(resolve => {
      this.#announce = resolve
    })
  }

  /** True when all that SQLite asked to be synced is on the disk. */
  get settled(): boolean {
    return this.#done === this.#asked
  }

  /** Calls `done` when everything asked for so far is synced, in the order of the calls, or with the error. */
  whenSynced(done: (error?: StoreError) => void): void {
    if (this.failure !== undefined) done(this.failure)
    else if (this.settled) done()
    else this.#waiters.push({ need: this.#asked, done })
  }

  write(part: FilePart, offset: number, bytes: Uint8Array): void {
    const file = this.#touch(part)
    if (file === undefined) return
    if (file === 'wal' && offset === 0) {
      // A new header makes the old frames void: they must not be overtaken by it, nor it by the new frames.
      if (this.#dirty === 'wal') this.#barrier()
      this.#header = true
    }
    this.#dirty = file
    this.sizes[file] = Math.max(this.sizes[file], offset + bytes.length)
    const last = this.#steps.at(-1)
    if (
      last?.kind === 'write' &&
      last.part === file &&
      last.offset + last.length === offset &&
      last.length + bytes.length <= LARGEST_RUN
    ) {
      append(last, bytes)
    } else {
      const room = file === 'wal' ? FIRST_BUFFER : bytes.length
      const step: WriteStep = { kind: 'write', part: file, offset, buffer: new Uint8Array(room), length: 0 }
      append(step, bytes)
      this.#steps.push(step)
    }
  }

  truncate(part: FilePart, size: number): void {
    const file = this.#touch(part)
    // SQLite sets the size of the database after every checkpoint, mostly to what it is.
    if (file === undefined || this.sizes[file] === size) return
    this.#dirty = file
    this.sizes[file] = size
    this.#steps.push({ kind: 'truncate', part: file, size })
  }

  sync(part: FilePart): void {
    if (this.failure !== undefined || part === 'journal') return
    if (part === 'wal') this.#asked++
    this.#wanted = true
    if (this.#header && part === 'wal') this.#barrier()
    if (!this.#flushing) void this.#flush()
  }

  close(): void {}

  remove(part: FilePart): void {
    this.walRemoved ||= part === 'wal'
  }

  /** Syncs and carries out whatever is still queued; rejects with the failure. */
  async drain(): Promise<void> {
    this.sync('wal')
    await new Promise<void>((resolve, reject) => this.whenSynced(error => (error ? reject(error) : resolve())))
  }

  #fail(cause: unknown): void {
    if (this.failure !== undefined) return
    const failure = new StoreError(
      'store_failed',
      `the database can no longer be written: ${reasonOf(cause)}`,
      'free space or repair the disk, then start the daemon again; it recovers what was acknowledged',
      cause,
    )
    this.failure = failure
    this.#steps = []
    for (const waiter of this.#waiters.splice(0)) waiter.done(failure)
    this.#announce(failure)
  }

  /** Keeps the order where a file follows another; undefined when nothing is to be mirrored. */
  #touch(part: FilePart): MirroredPart | undefined {
    if (this.failure !== undefined) return undefined
    if (part === 'journal') {
      this.#fail(new Error('SQLite used a rollback journal, which is not mirrored'))
      return undefined
    }
    if (this.#dirty !== undefined && this.#dirty !== part) this.#barrier()
    return part
  }

  #barrier(): void {
    this.#steps.push({ kind: 'sync', part: this.#dirty ?? 'wal', covers: this.#asked })
    this.#dirty = undefined
    this.#header = false
    this.#wanted = false
  }

  /** One at a time. Waits for the end of the turn first, so that transactions of the same turn share a sync. */
  async #flush(): Promise<void> {
    this.#flushing = true
    try {
      while (this.failure === undefined) {
        await turn()
        if (this.#wanted) this.#barrier()
        const steps = this.#steps
        if (!steps.some(step => step.kind === 'sync')) break
        this.#steps = []
        await this.#carryOut(steps)
      }
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#flushing = false
    }
  }

  async #carryOut(steps: readonly Step[]): Promise<void> {
    let writes = 0
    for (const step of steps) {
      if (this.failure !== undefined) return
      if (step.kind === 'sync') {
        await this.#disk.fsync(this.#files[step.part])
        this.syncs++
        await this.#checkLink(step.part)
        this.#settle(step.covers)
      } else if (step.kind === 'write') {
        const pending = writeAll(this.#disk, this.#files[step.part], step.buffer.subarray(0, step.length), step.offset)
        if (pending !== undefined) await pending
        if (++writes % WRITES_A_TURN === 0) await turn()
      } else {
        await this.#disk.truncate(this.#files[step.part], step.size)
      }
    }
  }

  /** Another program that closes the database as its last user removes the log under our hands: that is a lost disk. */
  async #checkLink(part: MirroredPart): Promise<void> {
    const { links } = await this.#disk.stat(this.#files[part])
    if (links === 0) throw new Error(`another program removed the ${part === 'wal' ? 'write-ahead log' : 'database'}`)
  }

  #settle(covers: number): void {
    this.#done = Math.max(this.#done, covers)
    let count = 0
    for (const waiter of this.#waiters) {
      if (waiter.need > this.#done) break
      count++
    }
    // Taken out first: what a waiter does may add to the list.
    for (const waiter of this.#waiters.splice(0, count)) waiter.done()
  }
}

function append(step: WriteStep, bytes: Uint8Array): void {
  const length = step.length + bytes.length
  if (length > step.buffer.length) {
    const grown = new Uint8Array(Math.max(length, step.buffer.length * 2))
    grown.set(step.buffer.subarray(0, step.length))
    step.buffer = grown
  }
  step.buffer.set(bytes, step.length)
  step.length = length
}
