/** `svc/plugins/archives`: what is finished and rarely read, outside of the catalog, which is held in memory. */

import { readdir } from 'node:fs/promises'
import path from 'node:path'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { type Db, defineErrors, type Migration, type Tx, token } from '../../../kernel/plugin.js'

export { type ArchiveOwner, ArchiveReader } from './reader.js'
export { SegmentIndex } from './segment-index.js'

/**
 * The archive of one plugin: a series of databases, the segments, with the tables of the plugin. Each is loaded when it is used
 * and leaves memory soon afterwards. What is where stands in a table of the plugin, in the catalog: rows of a segment count only
 * where that table says so, so that a move which was interrupted is repeated and nothing is twice.
 *
 * To move something there: write it with {@link add}, then delete it from the catalog and note its segment in one transaction. To
 * bring it back: read it, then insert it into the catalog and delete the note in one transaction.
 */
export interface Archive {
  /** Numbers of the segments, ascending; empty where nothing was archived yet. */
  segments(): Promise<readonly number[]>
  /** Writes into the newest segment, or into a new one where that is full; resolves with its number once it is on the disk. */
  add(work: (t: Tx) => void): Promise<number>
  /**
   * Reads a segment, whose tables are up to date; `db` is good until `use` has resolved. It may also delete rows there that were
   * brought back.
   * @throws Fault `archive_missing`, `archive_damaged`
   */
  use<T>(segment: number, use: (db: Db) => T | Promise<T>): Promise<T>
  /** Removes the file of a segment, unless somebody reads it. */
  remove(segment: number): Promise<void>
}

export interface ArchivesApi {
  /** The archive of the consumer. @param tables the migrations of the consumer, as in the catalog */
  open(tables: readonly Migration[]): Archive
}

export const Archives = token<ArchivesApi>('archives@1')

export const ArchiveErrors = defineErrors({
  archive_missing: {
    status: 503,
    message: 'a segment of the archive is missing',
    next: 'restore the folder archives of the home from a backup',
  },
  archive_damaged: {
    status: 503,
    message: 'a segment of the archive is damaged; others are not affected',
    next: `restore this file from a backup while no daemon runs; ${command('db verify')} checks all of them then`,
  },
})

/** The segments of all archives below a home, as paths relative to it. */
export async function segmentsIn(root: string): Promise<string[]> {
  const found: string[] = []
  for (const owner of await namesIn(path.join(root, 'archives')))
    for (const name of await namesIn(path.join(root, 'archives', owner)))
      if (SEGMENT.test(name)) found.push(`archives/${owner}/${name}`)
  return found.sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
}

/** The name of a segment, with its number. */
export const SEGMENT = /^([1-9]\d{0,8})\.db$/

const namesIn = (folder: string): Promise<string[]> => readdir(folder).catch(() => [])
