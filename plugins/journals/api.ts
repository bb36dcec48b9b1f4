import { type Journal, token } from '../../kernel/plugin.js'

export type { Journal, JournalRecord } from '../../kernel/plugin.js'

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
