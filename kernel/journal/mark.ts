import path from 'node:path'
import { type Disk, readWhole, replaceFile } from '../store/disk.js'
import { journalDamaged } from './segment.js'

/** What a journal says of itself in `journal.json`, written durably before what it announces. */
export interface Mark {
  /** Raised by every open after an unclean end, before anything is appended. */
  readonly generation: number
  /** False from before the first append until the close. */
  readonly clean: boolean
  /** A sequence that was on the disk when this was written. */
  readonly last: number
}

const FILE = 'journal.json'

/** The mark, or undefined when there is none. @throws StoreError `journal_damaged` */
export async function readMark(disk: Disk, folder: string): Promise<Mark | undefined> {
  const file = path.join(folder, FILE)
  const bytes = await readWhole(disk, file)
  if (bytes === undefined) return undefined
  const mark = parse(Buffer.from(bytes).toString())
  if (mark === undefined) throw journalDamaged(`${file} at offset 0: it does not say generation, clean and last`)
  return mark
}

/** Resolves when the mark is on the disk. */
export function writeMark(disk: Disk, folder: string, mark: Mark): Promise<void> {
  return replaceFile(disk, path.join(folder, FILE), Buffer.from(`${JSON.stringify(mark)}\n`))
}

function parse(text: string): Mark | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  const { generation, clean, last } = value as Record<string, unknown>
  if (!Number.isSafeInteger(generation) || typeof clean !== 'boolean' || !Number.isSafeInteger(last)) return undefined
  return { generation: generation as number, clean, last: last as number }
}
