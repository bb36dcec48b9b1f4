import { token } from '../../../kernel/plugin.js'

/** One record; sequences start at 1 and are contiguous. */
export interface JournalRecord {
  readonly sequence: number
  readonly payload: Uint8Array
}

/**
 * An append-only journal. After a disk error every call throws or rejects with `journal_failed`. On a full disk nothing is lost:
 * appended records are written once there is space, until then `append` and `sync` fail with `disk_full`, `written` waits, and
 * reads keep working.
 */
export interface Journal {
  /** Why nothing can be appended: damage of a journal that was opened `intact`. */
  readonly damage?: Error | undefined
  /** Incremented by an open after an unclean end: a sequence of an older generation may now name another record. */
  readonly generation: number
  /** First sequence that is kept. */
  readonly first: number
  /** The first sequence of each of its files, oldest first. */
  readonly files: readonly number[]
  /** Last assigned sequence; 0 before the first. */
  readonly last: number
  /**
   * Assigns sequences at once; records of one turn are written together. With `sync` they are synced right after, else at most
   * `syncDelayMs` later.
   * @throws StoreError `journal_record_too_large`, `disk_full` (nothing is appended), `journal_failed`, `journal_closed`
   */
  append(payloads: readonly Uint8Array[], options?: { sync?: boolean }): number[]
  /** Resolves when everything appended so far is on the disk. */
  sync(): Promise<void>
  /** Resolves when everything appended so far has reached the file, so that readers may see it. */
  written(): Promise<void>
  /**
   * Written records from a sequence on, at most `limit`. A journal opened `intact` returns the readable ones of the next `limit`
   * sequences, which may be fewer.
   * @throws StoreError `journal_damaged`, unless opened `intact`
   */
  read(from: number, limit: number): Promise<JournalRecord[]>
  /** Removes the oldest files whose records all precede a sequence; the newest file stays. */
  drop(before: number): Promise<void>
  /** Syncs, marks a clean end. */
  close(): Promise<void>
}

/** Options of a journal. */
export interface OpenOptions {
  /** Opens a damaged journal too: its intact records can be read, and nothing can be appended. Default for plugins: true. */
  readonly intact?: boolean
  /** Minimum size of a file before the next write begins another one; default 8 MiB. */
  readonly segmentBytes?: number
}

/** Opens journals for one plugin; each is closed with the plugin's scope at the latest. */
export interface JournalsApi {
  /**
   * Opens the journal in a folder below the home, or creates it. On a full disk its writes use the reserve.
   * @throws StoreError `journal_damaged` unless `intact`, `disk_full`, `journal_failed`
   */
  open(path: readonly string[], options?: OpenOptions): Promise<Journal>
}

export const Journals = token<JournalsApi>('journals@1')

/** A checked part of a home, with its problems. */
export interface Checked {
  readonly kind: 'database' | 'table' | 'journal'
  /** File, table or folder. */
  readonly name: string
  /** Readable rows or records. */
  readonly entries: number
  readonly problems: readonly string[]
}

/** Reads every record of every journal in a home without a running daemon; changes nothing. */
export async function verifyJournals(root: string): Promise<Checked[]> {
  return (await import('./verify.js')).verifyJournals(root)
}
