import { type Disk, readInto, type StoreError } from '../../../kernel/platform.js'
import { turn } from '../../../kernel/plugin.js'
import type { Journal, JournalRecord } from './api.js'
import { HEADER_BYTES, LARGEST_PAYLOAD, recordLength } from './record.js'
import { eachRecord, type Segment } from './segment.js'

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
async function intactRuns(disk: Disk, segment: Segment, before: number): Promise<Run[]> {
  const handle = await disk.open(segment.file, 'read')
  try {
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
  } finally {
    await disk.close(handle)
  }
}

/** A damaged journal, read-only: unreadable records are missing from the results. */
export class IntactJournal implements Journal {
  private constructor(
    private readonly disk: Disk,
    private readonly runs: readonly Run[],
    readonly damage: StoreError,
    readonly generation: number,
    readonly files: readonly number[],
    readonly last: number,
  ) {}

  get first() {
    return this.files[0] ?? 1
  }

  /** @param before the sequence after all records; @param mark the journal's mark, as far as it can be read */
  static async open(
    disk: Disk,
    segments: readonly Segment[],
    damage: StoreError,
    mark: { readonly generation: number; readonly last: number } = { generation: 1, last: 0 },
    before = Number.MAX_SAFE_INTEGER,
  ): Promise<IntactJournal> {
    const runs: Run[] = []
    for (const [at, segment] of segments.entries())
      runs.push(...(await intactRuns(disk, segment, segments[at + 1]?.first ?? before)))
    const last = Math.max(mark.last, runs.at(-1)?.last ?? 0)
    return new IntactJournal(
      disk,
      runs,
      damage,
      mark.generation,
      segments.map(({ first }) => first),
      last,
    )
  }

  append(): number[] {
    throw this.damage
  }

  async sync(): Promise<void> {
    throw this.damage
  }

  async written(): Promise<void> {}

  async close(): Promise<void> {}

  async drop(): Promise<void> {
    throw this.damage
  }

  async read(from: number, limit: number): Promise<JournalRecord[]> {
    const to = from + limit - 1
    const records: JournalRecord[] = []
    for (const run of this.runs.filter(({ first, last }) => first <= to && last >= from)) {
      const handle = await this.disk.open(run.segment.file, 'read')
      try {
        await eachRecord(
          this.disk,
          handle,
          { sequence: run.first, offset: run.offset },
          run.end,
          (sequence, _, payload) => {
            if (sequence >= from && sequence <= to) records.push({ sequence, payload: new Uint8Array(payload) })
            return sequence < Math.min(to, run.last)
          },
        )
      } finally {
        await this.disk.close(handle)
      }
    }
    return records
  }
}
