import { token } from '../../../kernel/plugin.js'

/** One record; sequences start at 1 and are contiguous. */
export interface JournalRecord {
  readonly sequence: number
  readonly payload: Uint8Array
}

/**
 * An append-only journal. After a disk error every call throws or rejects with `journal_failed`. On a
 * full disk nothing is lost: appended records are written once there is space, until then `append` and `sync` fail with
 * `disk_full`, `written` waits, and reads keep working.
 */
export interface Journal {
  /** Why nothing can be appended, of one that was opened `intact` and is damaged. */
  readonly damage?: Error | undefined
  /** Raised at an open after an unclean end: a sequence of an older generation may stand for something else now. */
  readonly generation: number
  /** First sequence that is kept. */
  readonly first: number
  /** The sequence with which each of its files begins, oldest first. */
  readonly files: readonly number[]
  /** Last sequence given out; 0 when there never was one. */
  readonly last: number
  /**
   * Gives out sequences at once; what is appended in one turn goes out as one write. With `sync` it is synced right after,
   * else at most `syncDelayMs` later.
   * @throws StoreError `journal_record_too_large`, `disk_full` (nothing is appended), `journal_failed`, `journal_closed`
   */
  append(payloads: readonly Uint8Array[], options?: { sync?: boolean }): number[]
  /** Everything appended so far is on the disk. */
  sync(): Promise<void>
  /** Everything appended so far has reached the file: readers may be told. */
  written(): Promise<void>
  /**
   * Records from a sequence on that have reached the file, at most `limit`. Of a journal opened `intact` those of the next
   * `limit` sequences that can be read, which may be fewer.
   * @throws StoreError `journal_damaged`, unless opened `intact`
   */
  read(from: number, limit: number): Promise<JournalRecord[]>
  /** Removes the oldest files, as far as all of their records come before a sequence; the newest file stays. */
  drop(before: number): Promise<void>
  /** Syncs, marks a clean end. */
  close(): Promise<void>
}

/** How a journal is opened. */
export interface OpenOptions {
  /** Opens a damaged journal as well: what is intact can be read, nothing can be appended. Default true. */
  readonly intact?: boolean
  /** Bytes from which on the next write begins another file; default 8 MiB. */
  readonly segmentBytes?: number
}

/** Opens journals for one plugin; each is closed with the plugin's scope, unless it was closed before. */
export interface JournalsApi {
  /**
   * Opens the journal in a folder below the home, and makes it when there is none. It spends of the reserve on a full disk.
   * @throws StoreError `journal_damaged` unless `intact`, `disk_full`, `journal_failed`
   */
  open(path: readonly string[], options?: OpenOptions): Promise<Journal>
}

export const Journals = token<JournalsApi>('journals@1')

/** One thing of a home that was looked at, and what is wrong with it. */
export interface Checked {
  readonly kind: 'database' | 'table' | 'journal'
  /** File, table or folder. */
  readonly name: string
  /** Rows or records that could be read. */
  readonly entries: number
  readonly problems: readonly string[]
}

/** Reads every record of every journal below a home that no daemon holds, and changes nothing. */
export async function verifyJournals(root: string): Promise<Checked[]> {
  return (await import('./verify.js')).verifyJournals(root)
}
