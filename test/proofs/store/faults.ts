import path from 'node:path'
import { openJournal } from '../../../plugins/platform/journals/open.js'
import { chance } from '../library/chance.js'
import { wrongWithFolder } from './kills.js'
import { recordOf } from './model.js'
import { inFolder, largest, runChild } from './processes.js'

/** What is made to fail, and how. */
interface Kind {
  readonly mode: 'store' | 'journal' | 'kernel'
  readonly call: string
  readonly error: 'EIO' | 'ENOSPC' | 'full' | 'short'
  /** One call in so many, of the whole trace. */
  readonly share: number
}

const WRITES = [
  ['pwrite', 'ENOSPC'],
  ['pwrite', 'full'],
  ['pwrite', 'short'],
  ['pwrite', 'EIO'],
  ['fsync', 'EIO'],
  ['fsync', 'ENOSPC'],
  ['truncate', 'EIO'],
] as const

/** A disk without room is no broken one: what a write finds full is refused, and heals. */
const heals = ({ call, error }: Kind): boolean => error === 'short' || (error !== 'EIO' && call !== 'fsync')

/** The store and journals at every call, the kernel around them at some. */
export const FAULTS: readonly Kind[] = [
  ...WRITES.map(([call, error]) => ({ mode: 'store' as const, call, error, share: 1 })),
  ...WRITES.slice(0, -1).map(([call, error]) => ({ mode: 'journal' as const, call, error, share: 1 })),
  { mode: 'journal', call: 'rename', error: 'EIO', share: 1 },
  { mode: 'journal', call: 'fsyncDir', error: 'EIO', share: 1 },
  { mode: 'journal', call: 'open', error: 'ENOSPC', share: 1 },
  ...WRITES.map(([call, error]) => ({ mode: 'kernel' as const, call, error, share: 3 })),
]

/** Transactions, or appends, of a run in which something fails. */
const LIMIT = 14

/** Rules 5 and 11 for one kind of fault, at the n-th call for every n (or one in `every`) until a run completes; tells how many. */
export async function provokeFaults(
  script: string,
  seed: number,
  kind: Kind,
  every: number,
): Promise<{ runs: number; wrong?: string }> {
  const few = kind.call !== 'pwrite' && kind.call !== 'fsync'
  // At every write there is room missing once: that is where nothing may end.
  const step = few || kind.error === 'ENOSPC' ? 1 : kind.share * every
  const first = 1 + chance(seed, 'fault', kind.mode, kind.call, kind.error).int(step)
  for (let n = first, runs = 0; ; n += step, runs++) {
    const fault = `${kind.call}:${kind.error}:${n}`
    const result = await inFolder(folder => provoke(script, seed, kind, folder, fault))
    if (result === 'complete') return { runs }
    if (result !== undefined) return { runs, wrong: `${kind.mode} with ${fault}: ${result}` }
  }
}

async function provoke(
  script: string,
  seed: number,
  kind: Kind,
  folder: string,
  fault: string,
): Promise<string | undefined> {
  const { mode } = kind
  const ended = await runChild(script, [mode, folder, seed, 0, LIMIT, fault])
  const after = ended.lines.find(line => line.startsWith('after '))
  if (after === undefined) return ended.lines.includes('complete') ? 'complete' : `it ended before: ${ended.errors}`
  if (heals(kind)) {
    // What cannot even be opened, or made, is refused with its code and starts later.
    const refused = !ended.lines.includes('open') && ended.code === 1 && ended.errors.startsWith('disk_full ')
    if (!refused && (ended.code !== 0 || !ended.lines.includes('complete')))
      return `exit code ${ended.code}: ${ended.errors}`
  } else {
    if (ended.lines.includes('complete')) return 'it went on as if nothing had happened'
    if (ended.code !== 1) return `exit code ${ended.code}, signal ${ended.signal}`
    if (!/_(failed|open_failed) /.test(ended.errors)) return `it does not say why: ${ended.errors}`
    if (after !== 'after 0') return `writes, truncations and syncs after the error: ${after.slice(6)}`
  }
  const told = largest(ended.lines)
  return mode === 'journal'
    ? wrongWithJournal(path.join(folder, 'journal'), seed, told)
    : wrongWithFolder(folder, seed, told)
}

async function wrongWithJournal(dir: string, seed: number, told: number): Promise<string | undefined> {
  const journal = await openJournal({ dir })
  const records = await journal.read(1, Infinity)
  await journal.close()
  if (records.length < told) return `${records.length} of ${told} records are there`
  const wrong = records.find(({ sequence, payload }) => !recordOf(seed, 1, sequence).equals(payload))
  return wrong && `record ${wrong.sequence} is not what was appended`
}
