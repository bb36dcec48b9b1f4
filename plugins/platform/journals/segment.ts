import path from 'node:path'
import { type Disk, type OpenMode, readInto, StoreError } from '../../../kernel/platform.js'
import { messageOf } from '../../../kernel/plugin.js'
import type { JournalRecord } from './api.js'
import { HEADER_BYTES, recordLength } from './record.js'

/** Bytes between two entries of the sparse index. */
const INDEX_BYTES = 64 * 1024
const CHUNK_BYTES = 256 * 1024

/** Position of a record in a file. */
export interface IndexEntry {
  readonly sequence: number
  readonly offset: number
}

/** One file of a journal, `events-<first sequence>.log`. */
export class Segment {
  readonly file: string
  /** Bytes of good records, once the segment was scanned. */
  size = 0
  /** The sparse index; undefined before the segment was scanned. */
  index: IndexEntry[] | undefined

  constructor(
    readonly folder: string,
    readonly first: number,
  ) {
    this.file = path.join(folder, `events-${first}.log`)
  }

  /** Adds a record to the sparse index. */
  note(sequence: number, offset: number): void {
    this.index ??= []
    if (offset - (this.index.at(-1)?.offset ?? -INDEX_BYTES) >= INDEX_BYTES) this.index.push({ sequence, offset })
  }

  /** The nearest indexed record at or before a sequence. */
  placeBefore(sequence: number): IndexEntry {
    return this.index?.findLast(entry => entry.sequence <= sequence) ?? { sequence: this.first, offset: 0 }
  }

  /**
   * Reads all records and builds the index; returns the sequence after the last good one and the size of the file, which exceeds
   * `size` when other bytes follow.
   */
  async scan(disk: Disk, handle: number): Promise<{ next: number; fileSize: number }> {
    const fileSize = (await disk.stat(handle)).size
    this.index = []
    const end = await eachRecord(disk, handle, this.placeBefore(this.first), fileSize, (sequence, offset) => {
      this.note(sequence, offset)
      return true
    })
    this.size = end.offset
    return { next: end.sequence, fileSize }
  }

  async opened<T>(disk: Disk, mode: OpenMode, work: (handle: number) => Promise<T>): Promise<T> {
    const handle = await disk.open(this.file, mode)
    try {
      return await work(handle)
    } finally {
      await disk.close(handle)
    }
  }

  /** Records between two sequences, inclusive. @param nextFirst the first sequence of the next file */
  read(disk: Disk, from: number, to: number, nextFirst: number): Promise<JournalRecord[]> {
    return this.opened(disk, 'read', async handle => {
      if (this.index === undefined) {
        const { next, fileSize } = await this.scan(disk, handle)
        if (next !== nextFirst || this.size !== fileSize) {
          throw this.damaged(this.size, `record ${next} is not readable, the next file begins with ${nextFirst}`)
        }
      }
      const { records, over } = await recordsIn(disk, handle, this.placeBefore(from), this.size, from, to)
      if (over.sequence <= to) throw this.damaged(over.offset, `record ${over.sequence} is not readable`)
      return records
    })
  }

  /** The error for this segment; only this journal is affected. */
  damaged(offset: number, what: string): StoreError {
    return journalDamaged(`${this.file} at offset ${offset}: ${what}`)
  }
}

/** @returns StoreError `journal_damaged` */
export function journalDamaged(what: string): StoreError {
  const hint = 'restore its folder from a backup, or move it away to go on without it; other journals are not affected'
  return new StoreError('journal_damaged', `journal damaged: ${what}`, hint)
}

/** The error that ended a journal, with a code of this program. */
export function journalFailed(dir: string, did: string, cause: unknown): StoreError {
  if (cause instanceof StoreError) return cause
  const hint = 'free space or repair the disk, then open it again; it recovers what was synced'
  return new StoreError(
    'journal_failed',
    `the journal ${dir} can no longer be ${did}: ${messageOf(cause)}`,
    hint,
    cause,
  )
}

/**
 * Visits good records with contiguous sequences from a place on, until one is missing or `visit` returns false; returns that place.
 * The payload is a view that is only valid during the call.
 */
async function eachRecord(
  disk: Disk,
  handle: number,
  from: IndexEntry,
  end: number,
  visit: (sequence: number, offset: number, payload: Buffer) => boolean,
): Promise<IndexEntry> {
  let { sequence, offset } = from
  let chunk = Buffer.alloc(0)
  let base = offset
  for (;;) {
    const at = offset - base
    const length = recordLength(chunk, at, sequence)
    if (length > 0) {
      if (!visit(sequence, offset, chunk.subarray(at + HEADER_BYTES, at + length))) break
      offset += length
      sequence++
    } else {
      if (length === 0 || offset - length > end) break
      chunk = Buffer.allocUnsafe(Math.min(Math.max(-length, CHUNK_BYTES), end - offset))
      chunk = chunk.subarray(0, await readInto(disk, handle, chunk, offset))
      base = offset
      if (chunk.length < -length) break
    }
  }
  return { sequence, offset }
}

/** The records `from` to `to` that follow a place without a gap, and the place behind them. */
export async function recordsIn(disk: Disk, handle: number, place: IndexEntry, end: number, from: number, to: number) {
  const records: JournalRecord[] = []
  const over = await eachRecord(disk, handle, place, end, (sequence, _offset, payload) => {
    if (sequence >= from && sequence <= to) records.push({ sequence, payload: new Uint8Array(payload) })
    return sequence <= to
  })
  return { records, over }
}
