import path from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { type Disk, systemDisk, writeAll } from '../store/disk.js'
import { reasonOf, StoreError } from '../store/error.js'
import { readMark, writeMark } from './mark.js'
import { type Batch, encodeBatch } from './record.js'
import { eachRecord, journalDamaged, Segment } from './segment.js'

export { LARGEST_PAYLOAD } from './record.js'

/** One record; sequences start at 1 and are contiguous. */
export interface JournalRecord {
  readonly sequence: number
  readonly payload: Uint8Array
}

/** An append-only journal (Storage, "The journal"). After a disk error everything throws or rejects with `journal_failed`. */
export interface Journal {
  /** Raised at an open after an unclean end: a sequence of an older generation may stand for something else now. */
  readonly generation: number
  /** First sequence that is kept. */
  readonly first: number
  /** Last sequence given out; 0 when there never was one. */
  readonly last: number
  /**
   * Gives out sequences at once; what is appended in one turn goes out as one write. With `sync` it is synced right after,
   * else at most `syncDelayMs` later.
   * @throws StoreError `journal_record_too_large` (nothing is appended), `journal_failed`, `journal_closed`
   */
  append(payloads: readonly Uint8Array[], options?: { sync?: boolean }): number[]
  /** Everything appended so far is on the disk. */
  sync(): Promise<void>
  /** Everything appended so far has reached the file: readers may be told. */
  written(): Promise<void>
  /** Records from a sequence on that have reached the file, at most `limit`. @throws StoreError `journal_damaged` */
  read(from: number, limit: number): Promise<JournalRecord[]>
  /** Syncs, marks a clean end. */
  close(): Promise<void>
}

export interface Timers {
  setTimeout(fn: () => void, ms: number): unknown
  clearTimeout(handle: unknown): void
}

export interface JournalOptions {
  /** The journal's own folder; made when missing. */
  readonly dir: string
  readonly disk?: Disk
  readonly timers?: Timers
  /** Milliseconds after which an append is synced at the latest; default 50. */
  readonly syncDelayMs?: number
  /** Size at which the next write begins another file; default 8 MiB. */
  readonly segmentBytes?: number
}

interface Waiter {
  readonly need: number
  readonly resolve: () => void
  readonly reject: (error: StoreError) => void
}

/**
 * Opens a journal, making it when there is none: cuts a torn tail, raises the generation after an unclean end.
 * @throws StoreError `journal_damaged` naming file and offset
 */
export async function openJournal(options: JournalOptions): Promise<Journal> {
  const disk = options.disk ?? systemDisk()
  const segments = (await disk.list(options.dir))
    .map(name => /^events-(\d{1,15})\.log$/.exec(name)?.[1])
    .filter(first => first !== undefined)
    .map(first => new Segment(options.dir, Number(first)))
    .sort((a, b) => a.first - b.first)
  const found = await readMark(disk, options.dir)
  if (found === undefined && segments.length > 0)
    throw journalDamaged(`${options.dir} at offset 0: journal.json is missing`)
  const mark = found ?? { generation: 1, clean: true, last: 0 }
  const active = segments.at(-1)
  const last = active === undefined ? 0 : await recoverTail(disk, active, mark.clean)
  if (last < mark.last || (mark.clean && last !== mark.last)) {
    const where = active === undefined ? `${options.dir} at offset 0` : `${active.file} at offset ${active.size}`
    throw journalDamaged(`${where}: it ends with sequence ${last}, but ${mark.last} was on the disk`)
  }
  const generation = mark.clean ? mark.generation : mark.generation + 1
  if (!mark.clean) await writeMark(disk, options.dir, { generation, clean: false, last })
  return new OpenJournal(options, disk, segments, { generation, last, marked: !mark.clean })
}

/** The last sequence of the newest segment; after an unclean end its torn tail is cut. */
async function recoverTail(disk: Disk, segment: Segment, clean: boolean): Promise<number> {
  const handle = await disk.open(segment.file, 'update')
  try {
    const { next, fileSize } = await segment.scan(disk, handle)
    if (segment.size < fileSize) {
      if (clean || (await segment.goodRecordAfter(disk, handle, next, fileSize))) {
        throw segment.damaged(segment.size, `record ${next} is not readable`)
      }
      await disk.truncate(handle, segment.size)
      await disk.fsync(handle)
    }
    return next - 1
  } finally {
    await disk.close(handle)
  }
}

class OpenJournal implements Journal {
  readonly generation: number
  last: number
  readonly #options: JournalOptions
  readonly #disk: Disk
  readonly #timers: Timers
  readonly #segments: Segment[]
  /** The mark on the disk says that the end is unclean. */
  #marked: boolean
  #handle: number | undefined
  #pending: Batch[] = []
  #writing = false
  #written: number
  #synced: number
  #syncGoal = 0
  #timer: unknown
  /** Syncs and changes of file, one after the other. */
  #exclusive: Promise<void> = Promise.resolve()
  #writeWaiters: Waiter[] = []
  #syncWaiters: Waiter[] = []
  #failure: StoreError | undefined
  #closing: Promise<void> | undefined

  constructor(
    options: JournalOptions,
    disk: Disk,
    segments: Segment[],
    state: { readonly generation: number; readonly last: number; readonly marked: boolean },
  ) {
    this.#options = options
    this.#disk = disk
    this.#timers = options.timers ?? (globalThis as Timers)
    this.#segments = segments
    this.generation = state.generation
    this.last = this.#written = this.#synced = state.last
    this.#marked = state.marked
  }

  get first(): number {
    return this.#segments[0]?.first ?? 1
  }

  append(payloads: readonly Uint8Array[], options: { sync?: boolean } = {}): number[] {
    this.#usable()
    if (payloads.length === 0) return []
    const batch = encodeBatch(payloads, this.last + 1, options.sync === true)
    this.last = batch.last
    this.#pending.push(batch)
    if (batch.sync) this.#syncGoal = batch.last
    else this.#timer ??= this.#timers.setTimeout(() => this.#late(), this.#options.syncDelayMs ?? 50)
    if (!this.#writing) void this.#write()
    return payloads.map((_, i) => batch.first + i)
  }

  written(): Promise<void> {
    return this.#reached(this.#writeWaiters, this.last, this.#written)
  }

  sync(): Promise<void> {
    this.#syncGoal = this.last
    const synced = this.#reached(this.#syncWaiters, this.last, this.#synced)
    this.#requestSync()
    return synced
  }

  async read(from: number, limit: number): Promise<JournalRecord[]> {
    this.#usable()
    const records: JournalRecord[] = []
    const end = this.#written
    let sequence = Math.max(from, this.first)
    while (sequence <= end && records.length < limit) {
      const at = this.#segments.findLastIndex(segment => segment.first <= sequence)
      const segment = this.#segments[at] as Segment
      const stop = Math.min(end, (this.#segments[at + 1]?.first ?? Infinity) - 1, sequence + limit - records.length - 1)
      await this.#readSegment(segment, sequence, stop, this.#segments[at + 1]?.first, records)
      sequence = stop + 1
    }
    return records
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #readSegment(
    segment: Segment,
    from: number,
    to: number,
    nextFirst: number | undefined,
    into: JournalRecord[],
  ): Promise<void> {
    const handle = await this.#disk.open(segment.file, 'read')
    try {
      if (!segment.scanned) {
        const { next, fileSize } = await segment.scan(this.#disk, handle)
        if (next !== nextFirst || segment.size !== fileSize) {
          throw segment.damaged(segment.size, `record ${next} is not readable, the next file begins with ${nextFirst}`)
        }
      }
      const place = segment.placeBefore(from)
      const end = await eachRecord(this.#disk, handle, place, segment.size, (sequence, _offset, payload) => {
        if (sequence > to) return false
        if (sequence >= from) into.push({ sequence, payload: Uint8Array.from(payload) })
        return true
      })
      if (end.sequence <= to) throw segment.damaged(end.offset, `record ${end.sequence} is not readable`)
    } finally {
      await this.#disk.close(handle)
    }
  }

  #usable(): void {
    if (this.#failure !== undefined) throw this.#failure
    if (this.#closing !== undefined) throw new StoreError('journal_closed', 'the journal is closed', 'open it again')
  }

  #reached(waiters: Waiter[], need: number, reached: number): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    if (reached >= need) return Promise.resolve()
    return new Promise((resolve, reject) => waiters.push({ need, resolve, reject }))
  }

  #late(): void {
    this.#timer = undefined
    this.#syncGoal = this.last
    this.#requestSync()
  }

  /** One at a time; what was appended in the same turn goes out as one write. */
  async #write(): Promise<void> {
    this.#writing = true
    try {
      await turn()
      while (this.#pending.length > 0 && this.#failure === undefined) {
        const batches = this.#pending
        this.#pending = []
        await this.#writeBatches(batches)
        settle(this.#writeWaiters, this.#written)
        this.#requestSync()
      }
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#writing = false
    }
  }

  async #writeBatches(batches: readonly Batch[]): Promise<void> {
    const bytes = batches.length === 1 ? (batches[0] as Batch).bytes : Buffer.concat(batches.map(batch => batch.bytes))
    const first = (batches[0] as Batch).first
    if (!this.#marked) {
      await this.#disk.mkdir(this.#options.dir)
      await writeMark(this.#disk, this.#options.dir, { generation: this.generation, clean: false, last: this.#synced })
      this.#marked = true
    }
    const largest = this.#options.segmentBytes ?? 8 * 1024 * 1024
    let segment = this.#segments.at(-1)
    if (segment === undefined || (segment.size > 0 && segment.size + bytes.length > largest)) {
      segment = await this.#alone(() => this.#begin(first))
    } else if (this.#handle === undefined) {
      this.#handle = await this.#disk.open(segment.file, 'update')
    }
    await writeAll(this.#disk, this.#handle as number, bytes, segment.size)
    for (const batch of batches) {
      for (const [i, start] of batch.starts.entries()) segment.note(batch.first + i, segment.size + start)
      segment.size += batch.bytes.length
    }
    this.#written = (batches.at(-1) as Batch).last
  }

  /** Ends the newest file and begins another; its end is on the disk first, so that only the newest can have a torn tail. */
  async #begin(first: number): Promise<Segment> {
    if (this.#handle === undefined && this.#segments.length > 0) this.#handle = undefined
    if (this.#handle !== undefined) {
      await this.#disk.fsync(this.#handle)
      await this.#disk.close(this.#handle)
      this.#handle = undefined
      this.#syncedTo(this.#written)
    }
    const segment = new Segment(this.#options.dir, first)
    segment.begin()
    this.#handle = await this.#disk.open(segment.file, 'create')
    await this.#disk.fsyncDir(this.#options.dir)
    if (this.#segments.length === 0) await this.#disk.fsyncDir(path.dirname(this.#options.dir))
    this.#segments.push(segment)
    return segment
  }

  /** Syncs what is written when somebody waits for it; what is still to be written asks again. */
  #requestSync(): void {
    if (this.#syncGoal <= this.#synced || this.#written <= this.#synced) return
    void this.#alone(async () => {
      const target = this.#written
      if (target <= this.#synced || this.#handle === undefined || this.#failure !== undefined) return
      await this.#disk.fsync(this.#handle)
      this.#syncedTo(target)
    }).catch(error => this.#fail(error))
  }

  #syncedTo(sequence: number): void {
    this.#synced = Math.max(this.#synced, sequence)
    if (this.#synced === this.last) this.#stopTimer()
    settle(this.#syncWaiters, this.#synced)
  }

  #alone<T>(fn: () => Promise<T>): Promise<T> {
    const run = this.#exclusive.then(fn)
    this.#exclusive = run.then(
      () => {},
      () => {},
    )
    return run
  }

  #stopTimer(): void {
    if (this.#timer !== undefined) this.#timers.clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #fail(cause: unknown): void {
    if (this.#failure !== undefined) return
    this.#failure = new StoreError(
      'journal_failed',
      `the journal ${this.#options.dir} can no longer be written: ${reasonOf(cause)}`,
      'free space or repair the disk, then open it again; it recovers what was synced',
      cause,
    )
    this.#stopTimer()
    this.#pending = []
    for (const waiter of [...this.#writeWaiters.splice(0), ...this.#syncWaiters.splice(0)]) waiter.reject(this.#failure)
  }

  async #close(): Promise<void> {
    try {
      await this.sync()
      if (this.#marked) {
        await writeMark(this.#disk, this.#options.dir, { generation: this.generation, clean: true, last: this.last })
      }
    } finally {
      this.#stopTimer()
      const handle = this.#handle
      this.#handle = undefined
      await this.#exclusive
      if (handle !== undefined) await this.#disk.close(handle)
    }
  }
}

function settle(waiters: Waiter[], reached: number): void {
  const count = waiters.findIndex(waiter => waiter.need > reached)
  for (const waiter of waiters.splice(0, count < 0 ? waiters.length : count)) waiter.resolve()
}
