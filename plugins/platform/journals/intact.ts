import { type Disk, readInto, type StoreError } from '../../../kernel/platform.js'
import { turn } from '../../../kernel/plugin.js'
import type { Journal, JournalRecord } from './api.js'
import { HEADER_BYTES, LARGEST_PAYLOAD, recordLength } from './record.js'
import { recordsIn, type Segment } from './segment.js'

/** Bytes that are searched for the next good record between two turns of the event loop. */
const SEARCHED_A_TURN = 256 * 1024
/** Bytes without a good record after which the search ends: the size of a few of the largest records. */
const SEARCHED_IN_VAIN = 4 * LARGEST_PAYLOAD
/** Bytes of a file in memory; the largest record fits twice. */
const WINDOW_BYTES = 2 * (HEADER_BYTES + LARGEST_PAYLOAD)
/** Maximum bytes of a run, and so of a read that looks for one record. */
const RUN_BYTES = 64 * 1024

/** Consecutive good records in one file. */
interface Run {
  readonly segment: Segment
  readonly first: number
  last: number
  readonly offset: number
  end: number
}

/** All good records of a file below a sequence, including those after damage. */
const intactRuns = (disk: Disk, segment: Segment, before: number): Promise<Run[]> =>
  segment.opened(disk, 'read', async handle => {
    let { size } = await disk.stat(handle)
    let window = Buffer.alloc(0)
    let base = 0
    const runs: Run[] = []
    let next = segment.first
    for (let at = 0, vain = 0; at + HEADER_BYTES <= size && vain < SEARCHED_IN_VAIN; ) {
      const held = base + window.length
      if (held < size && held - at < WINDOW_BYTES / 2) {
        const bytes = Buffer.alloc(Math.min(WINDOW_BYTES, size - at))
        window = bytes.subarray(0, await readInto(disk, handle, bytes, at))
        base = at
        if (window.length < bytes.length) size = base + window.length
      }
      // The cheap check first: at hardly any place do the bytes form a plausible sequence.
      const sequence = window.readUIntLE(at - base + 8, 6)
      const length = sequence >= next && sequence < before ? recordLength(window, at - base, sequence) : 0
      if (length <= 0) {
        at++
        if (++vain % SEARCHED_A_TURN === 0) await turn()
        continue
      }
      const run = runs.at(-1)
      if (run && run.end === at && run.last === sequence - 1 && at - run.offset < RUN_BYTES) {
        run.last = sequence
        run.end = at + length
      } else runs.push({ segment, first: sequence, last: sequence, offset: at, end: at + length })
      next = sequence + 1
      at += length
      vain = 0
    }
    return runs
  })

/**
 * A damaged journal, read-only: unreadable records are missing from the results.
 * @param before the sequence after all records; @param mark the journal's mark, as far as it can be read
 */
export async function intactJournal(
  disk: Disk,
  segments: readonly Segment[],
  damage: StoreError,
  mark: { readonly generation: number; readonly last: number } = { generation: 1, last: 0 },
  before = Number.MAX_SAFE_INTEGER,
): Promise<Journal> {
  const runs: Run[] = []
  for (const [at, segment] of segments.entries())
    runs.push(...(await intactRuns(disk, segment, segments[at + 1]?.first ?? before)))
  const refuse = (): never => {
    throw damage
  }
  return {
    damage,
    generation: mark.generation,
    first: segments[0]?.first ?? 1,
    files: segments.map(({ first }) => first),
    last: Math.max(mark.last, runs.at(-1)?.last ?? 0),
    append: refuse,
    sync: async () => refuse(),
    drop: async () => refuse(),
    written: async () => {},
    close: async () => {},
    async read(from, limit) {
      const to = from + limit - 1
      const found: JournalRecord[] = []
      for (const { segment, first, last, offset, end } of runs) {
        if (first > to || last < from) continue
        const place = { sequence: first, offset }
        const read = (handle: number) => recordsIn(disk, handle, place, end, from, to)
        for (const record of (await segment.opened(disk, 'read', read)).records) found.push(record)
      }
      return found
    },
  }
}
