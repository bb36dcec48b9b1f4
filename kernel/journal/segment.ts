import path from 'node:path'
import { type Disk, readInto } from '../store/disk.js'
import { StoreError } from '../store/error.js'
import { HEADER_BYTES, recordLength, sequenceAt } from './record.js'

/** Bytes between two entries of the sparse index. */
const INDEX_BYTES = 64 * 1024
const CHUNK_BYTES = 256 * 1024

/** One file of a journal, `events-<first sequence>.log`. */
export class Segment {
  readonly file: string
  /** Bytes of good records, once the segment was scanned. */
  size = 0
  #index: { sequence: number; offset: number }[] | undefined

  constructor(
    readonly folder: string,
    readonly first: number,
  ) {
    this.file = path.join(folder, `events-${first}.log`)
  }

  /** True when the sparse index is there. */
  get scanned(): boolean {
    return this.#index !== undefined
  }

  /** Takes a record into the sparse index. */
  note(sequence: number, offset: number): void {
    this.#index ??= []
    const last = this.#index.at(-1)
    if (last === undefined || offset - last.offset >= INDEX_BYTES) this.#index.push({ sequence, offset })
  }

  /** Starts the index of an empty segment. */
  begin(): void {
    this.#index = []
  }

  /** The place nearest before a sequence where a record is known to begin. */
  placeBefore(sequence: number): { sequence: number; offset: number } {
    const index = this.#index ?? []
    let low = 0
    for (let high = index.length; low < high; ) {
      const middle = (low + high) >>> 1
      if ((index[middle]?.sequence ?? 0) <= sequence) low = middle + 1
      else high = middle
    }
    return index[low - 1] ?? { sequence: this.first, offset: 0 }
  }

  /**
   * Reads all records, building the index; returns the sequence after the last good one and the size of the file, which is
   * more than `size` when something that is no record follows.
   */
  async scan(disk: Disk, handle: number): Promise<{ next: number; fileSize: number }> {
    const fileSize = (await disk.stat(handle)).size
    this.begin()
    const end = await eachRecord(disk, handle, { sequence: this.first, offset: 0 }, fileSize, (sequence, offset) => {
      this.note(sequence, offset)
      return true
    })
    this.size = end.offset
    return { next: end.sequence, fileSize }
  }

  /** Whether any good record lies after a bad place: then that place is damage and no torn tail. */
  async goodRecordAfter(disk: Disk, handle: number, expected: number, fileSize: number): Promise<boolean> {
    const rest = Buffer.allocUnsafe(fileSize - this.size)
    await readInto(disk, handle, rest, this.size)
    const most = expected + rest.length / HEADER_BYTES
    for (let at = 1; at + HEADER_BYTES <= rest.length; at++) {
      if (recordLength(rest, at, sequence => sequence >= expected && sequence <= most) > 0) return true
    }
    return false
  }

  /** The error for this segment; only this journal is affected. */
  damaged(offset: number, what: string): StoreError {
    return journalDamaged(`${this.file} at offset ${offset}: ${what}`)
  }
}

/** @returns StoreError `journal_damaged` */
export function journalDamaged(what: string): StoreError {
  return new StoreError(
    'journal_damaged',
    `journal damaged: ${what}`,
    'restore its folder from a backup, or move the folder away to go on without it; other journals are not affected',
  )
}

/**
 * Visits good records with contiguous sequences from a place on, until one is missing or `visit` says false; returns where
 * that is. The payload is a view that is valid during the call.
 */
export async function eachRecord(
  disk: Disk,
  handle: number,
  from: { readonly sequence: number; readonly offset: number },
  end: number,
  visit: (sequence: number, offset: number, payload: Buffer) => boolean,
): Promise<{ sequence: number; offset: number }> {
  let { sequence, offset } = from
  let chunk = Buffer.alloc(0)
  let base = offset
  const load = async (bytes: number): Promise<boolean> => {
    const fresh = Buffer.allocUnsafe(Math.min(Math.max(bytes, CHUNK_BYTES), end - offset))
    chunk = fresh.subarray(0, await readInto(disk, handle, fresh, offset))
    base = offset
    return chunk.length >= bytes
  }
  const next = (found: number): boolean => found === sequence
  for (;;) {
    const length = recordLength(chunk, offset - base, next)
    if (length > 0) {
      const at = offset - base
      if (!visit(sequenceAt(chunk, at), offset, chunk.subarray(at + HEADER_BYTES, at + length))) break
      offset += length
      sequence++
    } else if (length === 0 || offset - length > end || !(await load(-length))) {
      break
    }
  }
  return { sequence, offset }
}
