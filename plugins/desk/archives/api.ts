/** `svc/plugins/archives`: storage for finished, rarely read rows. The catalog is held in memory, archives are not. */

import { readdir } from 'node:fs/promises'
import path from 'node:path'
import * as v from 'valibot'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { type Db, defineErrors, type Migration, registry, type Tx, token } from '../../../kernel/plugin.js'

export { type ArchiveOwner, ArchiveReader } from './reader.js'
export { SegmentIndex } from './segment-index.js'

/**
 * The archive of one plugin: a series of databases (segments) with the plugin's tables. A segment is loaded on use and closed soon
 * afterwards.
 * The plugin records the segment of each row in a table of the catalog. A row of a segment counts only if that table lists it, so
 * an interrupted move can be repeated without duplicates.
 *
 * To archive a row: write it with {@link add}, then delete it from the catalog and record its segment in one transaction. To bring
 * it back: read it, then insert it into the catalog and delete the record of its segment in one transaction.
 */
export interface Archive {
  /** Numbers of the segments, ascending; empty if nothing was archived yet. */
  segments(): Promise<readonly number[]>
  /** Writes into the newest segment, or a new one if that is full. Resolves with its number once the data is on disk. */
  add(work: (t: Tx) => void): Promise<number>
  /**
   * Reads a segment after its pending migrations are applied. `db` is valid until `use` resolves. The callback may also delete
   * rows that were brought back to the catalog.
   * @throws Fault `archive_missing`, `archive_damaged`
   */
  use<T>(segment: number, use: (db: Db) => T | Promise<T>): Promise<T>
  /** Removes the file of a segment unless the segment is in use. */
  remove(segment: number): Promise<void>
}

export interface ArchivesApi {
  /** Opens the archive of the calling plugin. @param tables its migrations, in the same form as for the catalog */
  open(tables: readonly Migration[]): Archive
}

/** Things that a request may name in its path although they are in an archive. */
export interface ArchivedThings {
  /** The parameter of the path that is their ID: `session_id`. */
  readonly parameter: string
  /**
   * Called before a request for one of them; the request waits for the promise, and a fault refuses it. Undefined: nothing has to be
   * done.
   * @param isRead the request only reads: the method is GET
   */
  prepare(id: string, isRead: boolean): Promise<void> | undefined
}

export const ArchivedThings = registry<ArchivedThings>(
  'archives.things@1',
  v.looseObject({ parameter: v.pipe(v.string(), v.minLength(1)), prepare: v.function() }),
)

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
    next: `stop the daemon and restore this file from a backup; then check all files: ${command('db verify')}`,
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
