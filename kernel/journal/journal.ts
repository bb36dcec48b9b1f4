import path from 'node:path'

import { type Disk, writeAll } from '../store/disk.js'
import { reasonOf, StoreError } from '../store/error.js'
import { turn } from '../store/turn.js'
import type { Journal, JournalOptions, JournalRecord, Timers } from './index.js'
import { writeMark } from './mark.js'
import { Progress } from './progress.js'
import { type Batch, encodeBatch } from './record.js'
import { eachRecord, Segment } from './segment.js'

const DEFAULT_SYNC_DELAY_MS = 50
const DEFAULT_SEGMENT_BYTES = 8 * 1024 * 1024
/** What waits beyond this goes out with the next write. */
const LARGEST_WRITE = 32 * 1024 * 1024

/** A journal after its recovery; see {@link Journal}. */
export class OpenJournal implements Journal {
  readonly generation: number
  last: number
  readonly #options: JournalOptions
  readonly #disk: Disk
  readonly #timers: Timers
  readonly #segments: Segment[]
  /** The mark on the disk says that the end is unclean. */
  #marked: boolean
  /** The newest file, once it is written to. */
  #handle: number | undefined
  #pending: Batch[] = []
  #writing = false
  readonly #written: Progress
  readonly #synced: Progress
  #syncGoal = 0
  #timer: unknown
  /** Syncs and changes of file, one after the other. */
  #exclusive: Promise<void> = Promise.resolve()
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
    this.#timers = options.timers ?? (globalThis as unknown as Timers)
    this.#segments = segments
    this.generation = state.generation
    this.last = state.last
    this.#written = new Progress(state.last)
    this.#synced = new Progress(state.last)
    this.#marked = state.marked
  }

  get first(): number {
    return this.#segments[0]?.first ?? 1
  }

  append(payloads: readonly Uint8Array[], options: { sync?: boolean } = {}): number[] {
    this.#usable()
    if (payloads.length === 0) return []
    const batch = encodeBatch(payloads, this.last + 1)
    this.last = batch.last
    this.#pending.push(batch)
    if (options.sync === true) this.#syncGoal = batch.last
    else this.#timer ??= this.#timers.setTimeout(() => this.#late(), this.#options.syncDelayMs ?? DEFAULT_SYNC_DELAY_MS)
    if (!this.#writing) void this.#write()
    return payloads.map((_, i) => batch.first + i)
  }

  written(): Promise<void> {
    return this.#written.reach(this.last)
  }

  sync(): Promise<void> {
    this.#syncGoal = this.last
    this.#requestSync()
    return this.#synced.reach(this.last)
  }

  async read(from: number, limit: number): Promise<JournalRecord[]> {
    this.#usable()
    const records: JournalRecord[] = []
    const end = this.#written.reached
    let sequence = Math.max(from, this.first)
    while (sequence <= end && records.length < limit) {
      const at = this.#segments.findLastIndex(segment => segment.first <= sequence)
      const nextFirst = this.#segments[at + 1]?.first
      const stop = Math.min(end, (nextFirst ?? Infinity) - 1, sequence + limit - records.length - 1)
      await this.#readSegment(this.#segments[at] as Segment, sequence, stop, nextFirst, records)
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
        if (sequence >= from) into.push({ sequence, payload: new Uint8Array(payload) })
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
        await this.#writeBatches(this.#takePending())
        this.#requestSync()
      }
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#writing = false
    }
  }

  #takePending(): Batch[] {
    let bytes = 0
    let count = 0
    for (const batch of this.#pending) {
      bytes += batch.bytes.length
      if (count > 0 && bytes > LARGEST_WRITE) break
      count++
    }
    return this.#pending.splice(0, count)
  }

  async #writeBatches(batches: readonly Batch[]): Promise<void> {
    const [{ first, bytes: only }] = batches as [Batch]
    const bytes = batches.length === 1 ? only : Buffer.concat(batches.map(batch => batch.bytes))
    await this.#markUnclean()
    const segment = await this.#segmentFor(first, bytes.length)
    await writeAll(this.#disk, this.#handle as number, bytes, segment.size)
    for (const batch of batches) {
      for (const [i, start] of batch.starts.entries()) segment.note(batch.first + i, segment.size + start)
      segment.size += batch.bytes.length
    }
    this.#written.advance((batches.at(-1) as Batch).last)
  }

  async #markUnclean(): Promise<void> {
    if (this.#marked) return
    await this.#disk.mkdir(this.#options.dir)
    const { generation } = this
    await writeMark(this.#disk, this.#options.dir, { generation, clean: false, last: this.#synced.reached })
    this.#marked = true
  }

  /** The file that the next write goes to. */
  async #segmentFor(first: number, bytes: number): Promise<Segment> {
    const segment = this.#segments.at(-1)
    const largest = this.#options.segmentBytes ?? DEFAULT_SEGMENT_BYTES
    if (segment === undefined || (segment.size > 0 && segment.size + bytes > largest)) {
      return this.#alone(() => this.#beginSegment(first))
    }
    this.#handle ??= await this.#disk.open(segment.file, 'update')
    return segment
  }

  /** Syncs and leaves the newest file before another is made, so that only the newest can have a torn tail. */
  async #beginSegment(first: number): Promise<Segment> {
    if (this.#handle !== undefined) {
      await this.#disk.fsync(this.#handle)
      await this.#disk.close(this.#handle)
      this.#handle = undefined
      this.#syncedTo(this.#written.reached)
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
    if (this.#syncGoal <= this.#synced.reached) return
    void this.#alone(async () => {
      const target = this.#written.reached
      if (target <= this.#synced.reached || this.#handle === undefined || this.#failure !== undefined) return
      await this.#disk.fsync(this.#handle)
      this.#syncedTo(target)
    }).catch(error => this.#fail(error))
  }

  #syncedTo(sequence: number): void {
    this.#synced.advance(sequence)
    if (sequence === this.last) this.#stopTimer()
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

  /** The first error is the end: a failed sync says nothing about what is on the disk, so none is tried again. */
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
    this.#written.fail(this.#failure)
    this.#synced.fail(this.#failure)
  }

  async #close(): Promise<void> {
    try {
      await this.sync()
      const { generation, last } = this
      if (this.#marked) await writeMark(this.#disk, this.#options.dir, { generation, clean: true, last })
    } finally {
      this.#stopTimer()
      await this.#exclusive
      if (this.#handle !== undefined) await this.#disk.close(this.#handle)
      this.#handle = undefined
    }
  }
}
