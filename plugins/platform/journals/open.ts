import {
  type Disk,
  diskFull,
  isFull,
  noReserve,
  StoreError,
  spending,
  syncing,
  systemDisk,
} from '../../../kernel/platform.js'
import type { Clock, Room } from '../../../kernel/plugin.js'
import type { Journal, OpenOptions } from './api.js'
import { intactJournal } from './intact.js'
import { OpenJournal } from './journal.js'
import { type Mark, readMark, writeMark } from './mark.js'
import { journalDamaged, journalFailed, Segment } from './segment.js'

export interface JournalOptions extends OpenOptions {
  /** The journal's own folder; created when missing. */
  readonly dir: string
  readonly disk?: Disk
  /** How writes behave on a full disk; without it there is no reserve. */
  readonly room?: Room
  /** For the delay of syncs; default: the system's. */
  readonly clock?: Pick<Clock, 'timeout'>
  /** Maximum milliseconds until an append is synced; default 50. */
  readonly syncDelayMs?: number
}

/** Space for a mark. */
const MARK_BYTES = 4096

/**
 * Opens or creates a journal: cuts a torn tail, and increments the generation after an unclean end.
 * @throws StoreError `journal_damaged` naming file and offset, `disk_full`, `journal_failed`
 */
export async function openJournal(options: JournalOptions): Promise<Journal> {
  try {
    // Opening can be repeated: each step is idempotent.
    return await spending(options.room ?? noReserve, MARK_BYTES, () => open(options))
  } catch (error) {
    if (isFull(error)) throw diskFull(`the journal ${options.dir} cannot be opened`, error)
    if (options.intact && error instanceof StoreError && error.code === 'journal_damaged')
      return openIntact(options, error)
    throw journalFailed(options.dir, 'opened', error)
  }
}

async function segmentsIn(disk: Disk, dir: string): Promise<Segment[]> {
  return (await disk.list(dir))
    .flatMap(name => /^events-(\d{1,15})\.log$/.exec(name)?.[1] ?? [])
    .map(first => new Segment(dir, Number(first)))
    .sort((a, b) => a.first - b.first)
}

/** The readable records of a journal that cannot be opened. */
async function openIntact({ dir, disk = systemDisk() }: JournalOptions, damage: StoreError): Promise<Journal> {
  const mark = await readMark(disk, dir).catch(() => undefined)
  return intactJournal(disk, await segmentsIn(disk, dir), damage, mark)
}

async function open(options: JournalOptions): Promise<Journal> {
  const { dir, disk = systemDisk() } = options
  const segments = await segmentsIn(disk, dir)
  const found = await readMark(disk, dir)
  if (found === undefined && segments.length > 0) throw journalDamaged(`${dir}: journal.json is missing`)
  const mark = found ?? { generation: 1, clean: true, last: 0 }
  const generation = mark.clean ? mark.generation : mark.generation + 1
  const last = await recoverTail(disk, dir, segments.at(-1), mark)
  if (!mark.clean) await writeMark(disk, dir, { generation, clean: false, last })
  return new OpenJournal(options, disk, segments, { generation, last, clean: mark.clean })
}

/**
 * The last sequence of the newest segment. After an unclean end its torn tail is cut at the first bad record, because writes
 * between two syncs may reach the disk in any order. Damage is a contradiction to the mark.
 */
async function recoverTail(disk: Disk, dir: string, segment: Segment | undefined, mark: Mark): Promise<number> {
  if (segment === undefined) {
    if (mark.last > 0) throw journalDamaged(`${dir} at offset 0: none of ${mark.last} records is left`)
    return 0
  }
  return segment.opened(disk, 'update', async handle => {
    const { next, fileSize } = await segment.scan(disk, handle)
    if (next <= mark.last || (mark.clean && (segment.size < fileSize || next > mark.last + 1))) {
      throw segment.damaged(segment.size, `record ${next} is not readable; ${mark.last} was on the disk`)
    }
    if (segment.size < fileSize) await disk.truncate(handle, segment.size)
    if (!mark.clean) await syncing(() => disk.fsync(handle))
    return next - 1
  })
}
