import { type Disk, systemDisk } from '../store/disk.js'
import { OpenJournal } from './journal.js'
import { readMark, writeMark } from './mark.js'
import { journalDamaged, Segment } from './segment.js'

export { LARGEST_PAYLOAD } from './record.js'

/** One record; sequences start at 1 and are contiguous. */
export interface JournalRecord {
  readonly sequence: number
  readonly payload: Uint8Array
}

/** An append-only journal (Storage, "The journal"). After a disk error everything throws or rejects with `journal_failed`. */
export interface Journal {
  /** Raised at an open after an unclean end: a sequence of an older generation may stand for something else now. */
  readonly generation: number
  /** First sequence that is kept. */
  readonly first: number
  /** Last sequence given out; 0 when there never was one. */
  readonly last: number
  /**
   * Gives out sequences at once; what is appended in one turn goes out as one write. With `sync` it is synced right after,
   * else at most `syncDelayMs` later.
   * @throws StoreError `journal_record_too_large` (nothing is appended), `journal_failed`, `journal_closed`
   */
  append(payloads: readonly Uint8Array[], options?: { sync?: boolean }): number[]
  /** Everything appended so far is on the disk. */
  sync(): Promise<void>
  /** Everything appended so far has reached the file: readers may be told. */
  written(): Promise<void>
  /** Records from a sequence on that have reached the file, at most `limit`. @throws StoreError `journal_damaged` */
  read(from: number, limit: number): Promise<JournalRecord[]>
  /** Syncs, marks a clean end. */
  close(): Promise<void>
}

/** Where the delay before a sync comes from; the system's timers when absent. */
export interface Timers {
  readonly setTimeout: (fn: () => void, ms: number) => unknown
  readonly clearTimeout: (handle: unknown) => void
}

export interface JournalOptions {
  /** The journal's own folder; made when missing. */
  readonly dir: string
  readonly disk?: Disk
  readonly timers?: Timers
  /** Milliseconds after which an append is synced at the latest; default 50. */
  readonly syncDelayMs?: number
  /** Size at which the next write begins another file; default 8 MiB. */
  readonly segmentBytes?: number
}

/**
 * Opens a journal, making it when there is none: cuts a torn tail, raises the generation after an unclean end.
 * @throws StoreError `journal_damaged` naming file and offset
 */
export async function openJournal(options: JournalOptions): Promise<Journal> {
  const disk = options.disk ?? systemDisk()
  const segments = (await disk.list(options.dir))
    .map(name => /^events-(\d{1,15})\.log$/.exec(name)?.[1])
    .filter(first => first !== undefined)
    .map(first => new Segment(options.dir, Number(first)))
    .sort((a, b) => a.first - b.first)
  const found = await readMark(disk, options.dir)
  if (found === undefined && segments.length > 0)
    throw journalDamaged(`${options.dir} at offset 0: journal.json is missing`)
  const mark = found ?? { generation: 1, clean: true, last: 0 }
  const active = segments.at(-1)
  const last = active === undefined ? 0 : await recoverTail(disk, active, mark.clean)
  if (last < mark.last || (mark.clean && last !== mark.last)) {
    const where = active === undefined ? `${options.dir} at offset 0` : `${active.file} at offset ${active.size}`
    throw journalDamaged(`${where}: it ends with sequence ${last}, but ${mark.last} was on the disk`)
  }
  const generation = mark.clean ? mark.generation : mark.generation + 1
  if (!mark.clean) await writeMark(disk, options.dir, { generation, clean: false, last })
  return new OpenJournal(options, disk, segments, { generation, last, marked: !mark.clean })
}

/** The last sequence of the newest segment; after an unclean end its torn tail is cut. */
async function recoverTail(disk: Disk, segment: Segment, clean: boolean): Promise<number> {
  const handle = await disk.open(segment.file, 'update')
  try {
    const { next, fileSize } = await segment.scan(disk, handle)
    if (segment.size < fileSize) {
      if (clean || (await segment.goodRecordAfter(disk, handle, next, fileSize))) {
        throw segment.damaged(segment.size, `record ${next} is not readable`)
      }
      await disk.truncate(handle, segment.size)
    }
    if (!clean) await disk.fsync(handle)
    return next - 1
  } finally {
    await disk.close(handle)
  }
}
