import { Serial } from '../../../kernel/kit/serial.js'
import {
  type Disk,
  isFull,
  Note,
  noReserve,
  Patience,
  Progress,
  StoreError,
  spending,
  syncing,
  writeAll,
} from '../../../kernel/platform.js'
import { type Clock, systemClock, type Timer, turn } from '../../../kernel/plugin.js'
import type { Journal, JournalRecord } from './api.js'
import { intactJournal } from './intact.js'
import { type Mark, markFile, writeMark } from './mark.js'
import type { JournalOptions } from './open.js'
import { type Batch, encodeBatch } from './record.js'
import { journalFailed, Segment } from './segment.js'

const [DEFAULT_SYNC_DELAY_MS, DEFAULT_SEGMENT_BYTES] = [50, 8 * 1024 * 1024]
/** Maximum bytes of one write; the rest goes out with the next. */
const LARGEST_WRITE = 32 * 1024 * 1024

/** A journal after its recovery; see {@link Journal}. */
export class OpenJournal implements Journal {
  readonly generation: number
  last: number
  damage: StoreError | undefined
  readonly #intact = new Map<Segment, Journal>()
  readonly #clock: Pick<Clock, 'timeout'>
  /** Handle of the newest file, once it is written to. */
  #handle: number | undefined
  /** The mark file, once it records an unclean state. */
  #note: Note | undefined
  #pending: Batch[] = []
  #writing = false
  readonly #written: Progress
  readonly #synced: Progress
  #syncGoal = 0
  #timer: Timer | undefined
  /** Serializes syncs and changes of file. */
  readonly #exclusive = new Serial()
  #failure: StoreError | undefined
  readonly #patience: Patience
  #closing: Promise<void> | undefined

  constructor(
    readonly options: JournalOptions,
    readonly disk: Disk,
    readonly segments: Segment[],
    readonly found: Mark,
  ) {
    const what = `the journal ${options.dir} cannot be written`
    this.#patience = new Patience(options.room ?? noReserve, what, stalled => this.#synced.refuse(stalled))
    this.#clock = options.clock ?? systemClock()
    this.generation = found.generation
    this.last = found.last
    this.#written = new Progress(found.last)
    this.#synced = new Progress(found.last)
  }

  get first() {
    return this.segments[0]?.first ?? 1
  }

  get files() {
    return this.segments.map(({ first }) => first)
  }

  append(payloads: readonly Uint8Array[], options: { sync?: boolean } = {}): number[] {
    this.#usable()
    if (this.#patience.stalled !== undefined) throw this.#patience.stalled
    if (payloads.length === 0) return []
    const batch = encodeBatch(payloads, this.last + 1)
    this.last = batch.last
    this.#pending.push(batch)
    if (options.sync === true) this.#syncGoal = batch.last
    else this.#timer ??= this.#clock.timeout(this.options.syncDelayMs ?? DEFAULT_SYNC_DELAY_MS, () => this.#late())
    if (!this.#writing) void this.#write()
    return payloads.map((_, i) => batch.first + i)
  }

  written(): Promise<void> {
    return this.#written.reach(this.last)
  }

  sync(): Promise<void> {
    if (this.#patience.stalled !== undefined) return Promise.reject(this.#patience.stalled)
    this.#syncGoal = this.last
    this.#requestSync()
    return this.#synced.reach(this.last)
  }

  async read(from: number, limit: number): Promise<JournalRecord[]> {
    this.#usable()
    const records: JournalRecord[] = []
    const end = this.#written.reached
    for (let sequence = Math.max(from, this.first); sequence <= end && records.length < limit; ) {
      const at = this.segments.findLastIndex(segment => segment.first <= sequence)
      const nextFirst = this.segments[at + 1]?.first ?? Infinity
      const stop = Math.min(end, nextFirst - 1, sequence + limit - records.length - 1)
      const found = await this.#recordsOf(this.segments[at] as Segment, sequence, stop, nextFirst)
      for (const record of found) records.push(record)
      sequence = stop + 1
    }
    return records
  }

  drop(before: number): Promise<void> {
    this.#usable()
    return this.#exclusive.run(async () => {
      for (let next = this.segments[1]; next !== undefined && next.first <= before; next = this.segments[1]) {
        await this.disk.unlink((this.segments.shift() as Segment).file)
        // One by one: after a power loss an older file must not exist without the younger ones.
        await this.disk.fsyncDir(this.options.dir)
      }
    })
  }

  close(): Promise<void> {
    this.#patience.close()
    this.#closing ??= this.#close()
    return this.#closing
  }

  /** Records of a file; of a damaged one, if opened `intact`, those that can be read. */
  async #recordsOf(segment: Segment, from: number, to: number, nextFirst: number): Promise<JournalRecord[]> {
    let intact = this.#intact.get(segment)
    if (intact === undefined) {
      try {
        return await segment.read(this.disk, from, to, nextFirst)
      } catch (error) {
        if (!this.options.intact || !(error instanceof StoreError) || error.code !== 'journal_damaged') throw error
        this.damage ??= error
        intact = await intactJournal(this.disk, [segment], error, undefined, nextFirst)
        if (segment !== this.segments.at(-1)) this.#intact.set(segment, intact)
      }
    }
    return intact.read(from, to - from + 1)
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

  /** One write at a time; records of the same turn are written together. */
  async #write(): Promise<void> {
    this.#writing = true
    try {
      while (this.#pending.length > 0 && this.#failure === undefined) {
        // In the loop, because a caller that appends after every write must not block the event loop.
        await turn()
        let bytes = 0
        const large = this.#pending.findIndex(batch => {
          bytes += batch.bytes.length
          return bytes > LARGEST_WRITE
        })
        const batches = this.#pending.splice(0, large < 0 ? this.#pending.length : Math.max(large, 1))
        await this.#patience.write(() => this.#writeBatches(batches))
        this.#requestSync()
      }
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#writing = false
    }
  }

  async #writeBatches(batches: readonly Batch[]): Promise<void> {
    const [{ first, bytes: only }] = batches as [Batch]
    const bytes = batches.length === 1 ? only : Buffer.concat(batches.map(batch => batch.bytes))
    this.#note ??= await spending(this.#patience.room, bytes.length, () => this.#markUnclean())
    const segment = await spending(this.#patience.room, bytes.length, () => this.#segmentFor(first, bytes.length))
    if (this.#failure !== undefined) throw this.#failure
    await writeAll(this.disk, this.#handle as number, bytes, segment.size, this.#patience.room)
    for (const batch of batches) {
      for (const [i, start] of batch.starts.entries()) segment.note(batch.first + i, segment.size + start)
      segment.size += batch.bytes.length
    }
    // Before the notification, since a waiting caller may append at once.
    this.#patience.stalled = undefined
    this.#written.advance((batches.at(-1) as Batch).last)
  }

  /** Marks the journal as unclean, durably before the first write, unless the open has done so. */
  async #markUnclean(): Promise<Note> {
    const { dir } = this.options
    if (this.found.clean) {
      await this.disk.mkdir(dir)
      await writeMark(this.disk, dir, { ...this.found, clean: false }, this.#patience.room)
    }
    return new Note(this.disk, await this.disk.open(markFile(dir), 'update'), {}, this.#patience.room)
  }

  /** The file of the next write. */
  async #segmentFor(first: number, bytes: number): Promise<Segment> {
    const segment = this.segments.at(-1)
    const largest = this.options.segmentBytes ?? DEFAULT_SEGMENT_BYTES
    if (segment === undefined || (segment.size > 0 && segment.size + bytes > largest)) {
      return this.#exclusive.run(() => this.#beginSegment(first))
    }
    this.#handle ??= await this.disk.open(segment.file, 'update')
    return segment
  }

  /** Syncs and closes the newest file before another is made, so that only the newest can have a torn tail. */
  async #beginSegment(first: number): Promise<Segment> {
    const { dir } = this.options
    if (this.#handle !== undefined) {
      await this.#sync(this.#handle)
      await this.disk.close(this.#handle)
      this.#handle = undefined
    }
    const segment = new Segment(dir, first)
    segment.index = []
    this.#handle = await this.disk.open(segment.file, 'create')
    await syncing(() => this.disk.fsyncDir(dir))
    this.segments.push(segment)
    return segment
  }

  /** Syncs written records if a caller waits for that; later writes request another sync. */
  #requestSync(): void {
    if (this.#syncGoal <= this.#synced.reached) return
    void this.#exclusive
      .run(async () => {
        if (this.#handle === undefined || this.#failure !== undefined) return
        if (this.#written.reached > this.#synced.reached) await this.#sync(this.#handle)
      })
      .catch(error => this.#fail(error))
  }

  /** The mark is written before the notification, so that it survives a kill after that. */
  async #sync(handle: number): Promise<void> {
    // A sync that was queued behind a failed one must not try again.
    if (this.#failure !== undefined) throw this.#failure
    const last = this.#written.reached
    try {
      await this.disk.fsync(handle)
      const note = { generation: this.generation, clean: false, last }
      const due = await this.#patience.write(() => this.#note?.write(note))
      this.#synced.advance(last)
      if (last === this.last) this.#stopTimer()
      if (due) await this.#note?.sync()
    } catch (error) {
      this.#fail(error)
    }
    if (this.#failure !== undefined) throw this.#failure
  }

  #stopTimer(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  /** The first error ends the journal: after a failed sync the state of the disk is unknown, so none is repeated. */
  #fail(cause: unknown): void {
    if (this.#failure !== undefined) return
    this.#failure = journalFailed(this.options.dir, 'written', cause)
    this.#stopTimer()
    this.#pending = []
    this.#written.fail(this.#failure)
    this.#synced.fail(this.#failure)
  }

  async #close(): Promise<void> {
    const { generation, last, options, disk } = this
    try {
      await this.sync()
      await this.#exclusive.idle()
      if (this.#note !== undefined || !this.found.clean)
        await writeMark(disk, options.dir, { generation, clean: true, last }, this.#patience.room).catch(error => {
          // Without space it stays marked as unclean, which only costs a generation.
          if (!isFull(error)) throw error
        })
    } catch (error) {
      this.#fail(error)
      throw this.#failure
    } finally {
      this.#stopTimer()
      await this.#exclusive.idle()
      for (const handle of [this.#handle, this.#note?.handle]) if (handle !== undefined) await disk.close(handle)
    }
  }
}
