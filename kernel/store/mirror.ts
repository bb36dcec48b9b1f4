import { turn } from '../clock.js'
import { Fault, messageOf } from '../contract/errors.js'
import type { Room } from '../contract/storage.js'
import type { Disk } from './disk.js'
import { StoreError } from './error.js'
import type { FileEvents, FilePart } from './file-watcher.js'
import { type Mark, MarkFinder } from './mark.js'
import type { Note } from './note.js'
import { Progress } from './progress.js'
import { noReserve, Patience, syncing, writeAll } from './room.js'

type MirroredPart = Exclude<FilePart, 'journal'>
/** Files of the mirror: open handles of the database, its write-ahead log and its mark. */
export type MirrorDisk = Pick<Disk, 'pwrite' | 'truncate' | 'fsync' | 'stat'>
export type MirrorFiles = Readonly<Record<MirroredPart | 'mark', number>>

/** One run of adjacent bytes; `buffer` has space for `length` and more. */
interface WriteStep {
  readonly kind: 'write'
  readonly part: MirroredPart
  readonly offset: number
  buffer: Uint8Array
  length: number
}
type Step =
  | WriteStep
  | { readonly kind: 'truncate'; readonly part: MirroredPart; readonly size: number }
  /** `covers`: number of SQLite's syncs of the log that this one completes; `mark`: the mark at that point. */
  | { readonly kind: 'sync'; readonly part: MirroredPart; readonly covers: number; readonly mark: Mark | undefined }
  /** Clears the mark, which no longer matches the files. */
  | { readonly kind: 'unmark' }

const FIRST_BUFFER = 16 * 1024
/** Largest buffer of a run that is reused, which saves clearing and collecting one per commit. */
const SPARE_BYTES = 1024 * 1024
/** Maximum bytes of a run. */
const LARGEST_RUN = 4 * 1024 * 1024
/** Writes into the page cache between two turns of the event loop. */
const WRITES_A_TURN = 64

/**
 * Repeats SQLite's changes in memory on the real files, in order. Adjacent syncs of the log merge into one for all waiting
 * transactions (group commit); a sync stays wherever the file changes and after the header of the log was written, because the
 * order on the disk matters there.
 *
 * The files and the queued steps together equal SQLite's memory: no step is dropped or reordered. So a write that finds no space is
 * repeated until there is some, and waiting callers are rejected meanwhile (`disk_full`). Any other error, and every error of a
 * sync, ends the mirror: all waiting callers are rejected, and nothing is acknowledged any more.
 */
export class Mirror implements FileEvents {
  syncs = 0
  /** SQLite has removed its log, as it does when the database is closed. The owner of the files removes it after `drain`. */
  walRemoved = false
  readonly failed: Promise<StoreError>
  failure: StoreError | undefined
  /** Called before queued steps run: the open commit can still be added to them. */
  beforeFlush: () => void = () => {}
  #announce: (error: StoreError) => void = () => {}
  readonly #patience: Patience
  #steps: Step[] = []
  readonly #spare: Uint8Array[] = []
  /** The file with bytes written or queued since its last sync. */
  #dirty: MirroredPart | undefined
  #header = false
  #wanted = false
  #requests = 0
  readonly #progress = new Progress(0)
  #flushing = false
  /** The mark in the file. That of an earlier process counts until it is cleared. */
  #marked: Mark | undefined | 'unknown' = 'unknown'
  readonly #finder = new MarkFinder()

  constructor(
    readonly disk: MirrorDisk,
    readonly files: MirrorFiles,
    readonly sizes: Record<MirroredPart, number>,
    readonly note: Note,
    room: Room = noReserve,
    /** Throws when another process owns the files. */
    private readonly checkOwner: () => void = () => {},
  ) {
    this.#patience = new Patience(room, 'the database cannot be written', stalled => {
      // The open commit also waits for space: its callers are rejected with the others, and it is written with the other steps.
      this.beforeFlush()
      this.#progress.refuse(stalled)
    })
    this.failed = new Promise(resolve => {
      this.#announce = resolve
    })
  }

  /** Set while a write waits for space: no new write may begin, as it would have to queue behind that one. */
  get stalled(): StoreError | undefined {
    return this.#patience.stalled
  }

  /** Whether everything that SQLite wants to be synced is on the disk. */
  get settled(): boolean {
    return this.#progress.reached === this.#requests
  }

  /** Calls `done` when all syncs requested so far are done, in the order of the calls, or with the error. */
  whenSynced(done: (error?: Error) => void): void {
    if (this.stalled !== undefined && !this.settled) done(this.stalled)
    else this.#progress.when(this.#requests, done)
  }

  /** Like {@link whenSynced}, but waits while the disk is full. */
  whenSyncedAtLast(done: (error?: Error) => void): void {
    this.#progress.when(this.#requests, error => {
      if (error !== undefined && error === this.stalled) this.whenSyncedAtLast(done)
      else done(error)
    })
  }

  /** {@link whenSynced} as a promise. */
  synced(): Promise<void> {
    return new Promise((resolve, reject) => this.whenSynced(error => (error ? reject(error) : resolve())))
  }

  write(part: FilePart, offset: number, bytes: Uint8Array): void {
    if (!this.#touch(part)) return
    if (part === 'wal') {
      if (offset === 0) this.#beginLog()
      this.#finder.write(offset, bytes, this.sizes.main)
    }
    this.#dirty = part
    this.sizes[part] = Math.max(this.sizes[part], offset + bytes.length)
    const last = this.#steps.at(-1)
    const goesOn = last?.kind === 'write' && last.part === part && last.offset + last.length === offset
    if (goesOn && last.length + bytes.length <= LARGEST_RUN) append(last, bytes)
    else {
      const buffer = part === 'wal' ? (this.#spare.pop() ?? new Uint8Array(FIRST_BUFFER)) : new Uint8Array(bytes.length)
      const run: WriteStep = { kind: 'write', part, offset, buffer, length: 0 }
      this.#steps.push(run)
      append(run, bytes)
    }
  }

  truncate(part: FilePart, size: number): void {
    // SQLite sets the size of the database after every checkpoint, mostly to the size it has.
    if (!this.#touch(part) || this.sizes[part] === size) return
    if (part === 'wal') this.#beginLog()
    else if (size < this.sizes.main) {
      // The file becomes shorter than the mark says. Its log is synced, and valid without a mark until it starts over.
      this.#finder.mark = undefined
      this.#steps.push({ kind: 'unmark' })
    }
    this.#dirty = part
    this.sizes[part] = size
    this.#steps.push({ kind: 'truncate', part, size })
  }

  sync(part: FilePart): void {
    if (this.failure !== undefined || part === 'journal') return
    if (part === 'wal') this.#requests++
    this.#wanted = true
    if (this.#header && part === 'wal') this.#barrier()
    this.request()
  }

  /** Requests a flush at the end of this turn. */
  request(): void {
    if (!this.#flushing) void this.#flush()
  }

  remove(part: FilePart): void {
    this.walRemoved ||= part === 'wal'
  }

  /** Syncs and runs all queued steps; rejects with the failure. */
  drain(): Promise<void> {
    this.sync('wal')
    return this.synced()
  }

  /** Ends all waits for space. Everything acknowledged is in the files; the next start recovers it. */
  close(): void {
    this.#patience.close()
  }

  /** Ends the mirror; the first cause is the one that is reported. */
  fail(cause: unknown): void {
    if (this.failure !== undefined) return
    const hint = 'free space or repair the disk, then start the daemon again; it recovers what was acknowledged'
    const next = cause instanceof Fault && cause.next !== undefined ? cause.next : hint
    const text = `the database can no longer be written to: ${messageOf(cause)}`
    this.failure = new StoreError('store_failed', text, next, cause)
    this.#steps = []
    this.#progress.fail(this.failure)
    this.#announce(this.failure)
  }

  /** Inserts a sync when the next change is to another file; false when nothing is to be mirrored. */
  #touch(part: FilePart): part is MirroredPart {
    if (part === 'journal') this.fail(new Error('SQLite used a rollback journal, which is not mirrored'))
    if (this.failure !== undefined) return false
    if (this.#dirty !== undefined && this.#dirty !== part) this.#barrier()
    return true
  }

  /** The old frames become invalid. Syncs on both sides keep this step in order with the old and the new frames. */
  #beginLog(): void {
    if (this.#dirty === 'wal') this.#barrier()
    this.#header = true
    this.#finder.mark = undefined
    this.#steps.push({ kind: 'unmark' })
  }

  #barrier(): void {
    this.#steps.push({ kind: 'sync', part: this.#dirty ?? 'wal', covers: this.#requests, mark: this.#finder.mark })
    this.#dirty = undefined
    this.#header = false
    this.#wanted = false
  }

  /** One flush at a time. It waits for the end of the turn first, so that transactions of the same turn share a sync. */
  async #flush(): Promise<void> {
    this.#flushing = true
    try {
      while (this.failure === undefined) {
        await turn()
        this.beforeFlush()
        if (this.#wanted) this.#barrier()
        const steps = this.#steps
        if (!steps.some(step => step.kind === 'sync')) break
        this.#steps = []
        await this.#carryOut(steps)
      }
    } catch (error) {
      this.fail(error)
    } finally {
      this.#flushing = false
    }
  }

  async #carryOut(steps: readonly Step[]): Promise<void> {
    let writes = 0
    this.checkOwner()
    for (const step of steps) {
      if (this.failure !== undefined) return
      if (step.kind === 'sync') {
        await this.#sync(step.part)
        // Checked again: an owner that appeared during the sync may have read the files before it.
        this.checkOwner()
        await this.#mark(step.mark, step.covers)
      } else if (step.kind === 'write') {
        const pending = this.#patience.write(() =>
          writeAll(
            this.disk,
            this.files[step.part],
            step.buffer.subarray(0, step.length),
            step.offset,
            this.#patience.room,
          ),
        )
        if (pending !== undefined) await pending
        if (step.part === 'wal' && step.buffer.length <= SPARE_BYTES) this.#spare[0] = step.buffer
        if (++writes % WRITES_A_TURN === 0) await turn()
      } else if (step.kind === 'truncate') {
        await this.disk.truncate(this.files[step.part], step.size)
      } else if (this.#marked !== undefined) {
        await this.#patience.write(() => this.note.write({}))
        await this.#sync('mark')
        this.#marked = undefined
      }
    }
  }

  async #sync(part: MirroredPart | 'mark'): Promise<void> {
    await syncing(() => this.disk.fsync(this.files[part]))
    this.syncs++
    // If it was not excluded, another program that closes the database as its last user removes the log.
    const { links } = await this.disk.stat(this.files[part])
    if (links === 0) {
      const what = part === 'wal' ? 'write-ahead log' : part
      throw new Fault('store_file_removed', 500, `another program removed the ${what} (for example sqlite3)`, {
        next: 'svc daemon start',
      })
    }
  }

  /** The mark is written before the acknowledgement, so that it survives a kill after that. */
  async #mark(mark: Mark | undefined, covers: number): Promise<void> {
    const due = mark !== undefined && mark !== this.#marked && (await this.#patience.write(() => this.note.write(mark)))
    if (mark !== undefined) this.#marked = mark
    this.#progress.advance(covers)
    if (due) await this.#sync('mark')
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
