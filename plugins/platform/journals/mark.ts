import path from 'node:path'
import { type Disk, noReserve, noteBytes, readIfThere, readNote, replaceFile } from '../../../kernel/platform.js'
import type { Room } from '../../../kernel/plugin.js'
import { journalDamaged } from './segment.js'

/** The state that a journal records in `journal.json`. */
export interface Mark {
  /** Incremented by every open after an unclean end, before anything is appended. */
  readonly generation: number
  /** False from before the first append until the close. */
  readonly clean: boolean
  /** A sequence that was on the disk when this was written. */
  readonly last: number
}

/** Larger files are refused; a mark has only two notes. */
const MAX_BYTES = 64 * 1024

export const markFile = (folder: string): string => path.join(folder, 'journal.json')

/** The mark, or undefined when there is none. @throws StoreError `journal_damaged` */
export async function readMark(disk: Disk, folder: string): Promise<Mark | undefined> {
  const bytes = await readIfThere(disk, markFile(folder), { maxBytes: MAX_BYTES })
  const mark = readNote<Mark>(bytes)
  if (bytes !== undefined && mark === undefined)
    throw journalDamaged(`${markFile(folder)} at offset 0: it is not readable`)
  return mark
}

/** Resolves when the mark is on the disk. */
export function writeMark(disk: Disk, folder: string, mark: Mark, room: Room = noReserve): Promise<void> {
  return replaceFile(disk, markFile(folder), noteBytes(mark), 0o600, room)
}
