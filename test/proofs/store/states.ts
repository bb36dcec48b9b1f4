import type { Disk } from '../../../kernel/store/disk.js'
import { openStore, type Store } from '../../../kernel/store/index.js'
import { textFile } from '../../../plugins/platform/files/text-file.js'
import type { Journal } from '../../../plugins/platform/journals/api.js'
import { openJournal } from '../../../plugins/platform/journals/open.js'
import { type Chance, chance } from '../library/chance.js'
import { lastOf, perform, prepare, recordOf, wrongWith, wrongWithJournal } from './model.js'
import { type Files, PowerDisk, withoutSyncs } from './power-disk.js'

const DATABASE = '/home/svc.db'
const JOURNAL = '/home/journal'
const FILE = '/home/config.json'

/** What was told to the outside when the trace had that many changes; numbers only grow. */
type Told = { readonly at: number; readonly number: number }[]

/** A run on a recording disk and what it told; `extra` is for the check. */
interface Run<Extra> {
  readonly disk: PowerDisk
  readonly told: Told
  readonly extra: Extra
}

/** One kind of file under test: a run that records, and what is wrong with what a disk holds afterwards. */
interface Subject<Extra> {
  record(seed: number, label: string, start: Files, mutate: (disk: Disk) => Disk): Promise<Run<Extra>>
  wrong(seed: number, disk: Disk, run: Run<Extra>, told: number, count: number): Promise<string | undefined>
}

/** A new disk, and the database on it, slow syncs at random. */
function diskFor(random: Chance, files: Files): PowerDisk {
  return new PowerDisk(files, () => random.int(4))
}

export function open(disk: Disk, autocheckpointPages = 10): Promise<Store> {
  return openStore({ path: DATABASE, disk, now: () => 0, autocheckpointPages })
}

const store: Subject<undefined> = {
  async record(seed, label, start, mutate) {
    const random = chance(seed, 'store run', label)
    const disk = diskFor(random, start)
    const notices: Told = []
    for (let life = 0; life < 2; life++) {
      const opened = await open(mutate(disk), 4 + random.int(20))
      await prepare(opened)
      let n = lastOf(opened)
      const end = n + 20 + random.int(60)
      const lane = async (): Promise<void> => {
        while (n < end) {
          const mine = ++n
          await perform(opened, seed, mine)
          notices.push({ at: disk.trace.length, number: mine })
        }
      }
      await Promise.all(Array.from({ length: 1 + random.int(6) }, lane))
      if (random() < 0.3) await opened.checkpoint()
      await opened.close()
    }
    return { disk, told: notices, extra: undefined }
  },
  async wrong(seed, disk, _run, told) {
    const opened = await open(disk)
    await prepare(opened)
    const wrong = wrongWith(opened, seed, told)
    await opened.close()
    return wrong
  },
}

interface Appended {
  /** The generation of each record, and what readers were told of. */
  readonly generations: number[]
  readonly written: Told
}

/** Timers in turns of the event loop. */
const clock = {
  timeout: (_ms: number, fn: () => void) => {
    let gone = false
    const wait = (turns: number): void => {
      setImmediate(() => (turns > 0 ? wait(turns - 1) : gone || fn()))
    }
    wait(5)
    return {
      cancel: () => {
        gone = true
      },
    }
  },
}

export function openSmall(disk: Disk): Promise<Journal> {
  return openJournal({ dir: JOURNAL, disk, clock, segmentBytes: 6000 })
}

const journal: Subject<Appended> = {
  async record(seed, label, start, mutate) {
    const random = chance(seed, 'journal run', label)
    const disk = diskFor(random, start)
    const notices: Told = []
    const extra: Appended = { generations: [], written: [] }
    for (let life = 0; life < 2; life++) {
      const opened = await openSmall(mutate(disk))
      if (life === 0) {
        const found = await opened.read(1, Infinity)
        for (const { payload } of found) extra.generations.push(Number(Buffer.from(payload).toString().split(' ')[0]))
      }
      for (let rounds = 10 + random.int(40); rounds > 0; rounds--) {
        const first = opened.last + 1
        const batch = Array.from({ length: 1 + random.int(5) }, (_, i) => recordOf(seed, opened.generation, first + i))
        for (const _ of batch) extra.generations.push(opened.generation)
        const wait = random()
        opened.append(batch, { sync: wait < 0.2 })
        const { last } = opened
        if (wait < 0.7) {
          void opened.written().then(() => extra.written.push({ at: disk.trace.length, number: last }))
        }
        if (wait < 0.5) {
          await opened.sync()
          notices.push({ at: disk.trace.length, number: last })
        } else if (wait < 0.8) await opened.written()
      }
      await opened.close()
      notices.push({ at: disk.trace.length, number: opened.last })
    }
    return { disk, told: notices, extra }
  },
  async wrong(seed, disk, { extra }, told, count) {
    const opened = await openSmall(disk)
    const written = Math.max(0, ...extra.written.filter(({ at }) => at <= count).map(({ number }) => number))
    const lost = extra.generations[opened.last] ?? 0
    let wrong = await wrongWithJournal(opened, seed, extra.generations, told)
    if (written > opened.last && opened.generation <= lost) {
      wrong ??= `record ${opened.last + 1} of generation ${lost} was told of, and would be written again in the same`
    }
    await opened.close()
    return wrong
  },
}

const text = (seed: number, n: number): string => `${n} ${'.'.repeat(chance(seed, 'text', n).int(5000))} end`

const file: Subject<undefined> = {
  async record(seed, label, start, mutate) {
    const random = chance(seed, 'file run', label)
    const disk = diskFor(random, start)
    const notices: Told = []
    const target = textFile(FILE, { disk: mutate(disk) })
    let n = Number((await target.read())?.split(' ')[0] ?? 0)
    for (let left = 12; left > 0; left--) {
      await target.write(text(seed, ++n))
      notices.push({ at: disk.trace.length, number: n })
    }
    return { disk, told: notices, extra: undefined }
  },
  async wrong(seed, disk, _run, told) {
    const found = (await textFile(FILE, { disk }).read()) ?? ''
    const n = Number(found.split(' ')[0])
    if (n < told) return `version ${told} was acknowledged, ${n} is there`
    return found === '' || found === text(seed, n) ? undefined : `version ${n} is not whole`
  },
}

const SUBJECTS = { store, journal, file } as const
export type SubjectName = keyof typeof SUBJECTS

/** A barrier that a mutant lacks. */
export const MUTANTS: readonly { readonly subject: SubjectName; readonly without: RegExp }[] = [
  { subject: 'store', without: /svc\.db$/ },
  { subject: 'store', without: /svc\.db-wal$/ },
  { subject: 'store', without: /svc\.db-mark$/ },
  { subject: 'journal', without: /\.log$/ },
  { subject: 'journal', without: /journal\.json/ },
  { subject: 'journal', without: /\/$/ },
  { subject: 'file', without: /config\.json/ },
  { subject: 'file', without: /\/$/ },
]

/** How many states are taken from one recorded run. */
const STATES_A_RUN = 8

/**
 * What is wrong with a state that power loss leaves; undefined when nothing. Every third one loses power once more while it
 * recovers and goes on. The runs of a seed are kept, for they are shared by its states.
 */
export class States {
  readonly #runs = new Map<string, Promise<Run<unknown>>>()

  constructor(readonly seed: number) {}

  check(name: SubjectName, index: number, without?: RegExp): Promise<string | undefined> {
    return this.#check(SUBJECTS[name] as Subject<unknown>, name, index, without)
  }

  async #check(subject: Subject<unknown>, name: string, index: number, without?: RegExp): Promise<string | undefined> {
    const { seed } = this
    const mutate = (disk: Disk): Disk => (without ? withoutSyncs(disk, file => without.test(file)) : disk)
    const label = `${name} ${Math.floor(index / STATES_A_RUN)}`
    const key = `${label} ${without}`
    let recording = this.#runs.get(key)
    if (recording === undefined) {
      this.#runs.clear()
      recording = subject.record(seed, label, new Map(), mutate)
      this.#runs.set(key, recording)
    }
    const random = chance(seed, name, 'state', index)
    const first = await recording
    let where = ''
    try {
      const [files, told, at] = lose(first, random)
      where = at
      const again = index % 3 === 2
      if (!again) return explain(await subject.wrong(seed, new PowerDisk(files), first, told, Number(at)), where)
      const second = await subject.record(seed, `${label} ${index}`, files, mutate)
      const [rest, toldAgain, then] = lose(second, random)
      where = `${at}, again after ${then}`
      return explain(
        await subject.wrong(seed, new PowerDisk(rest), second, Math.max(told, toldAgain), Number(then)),
        where,
      )
    } catch (error) {
      return explain(error instanceof Error ? `${error.message}` : String(error), where)
    }
  }
}

function explain(wrong: string | undefined, where: string): string | undefined {
  return wrong && `power lost after ${where} changes of the disk: ${wrong}`
}

function lose(run: Run<unknown>, random: Chance): [files: Files, told: number, at: string] {
  const count = random.int(run.disk.trace.length + 1)
  const told = Math.max(0, ...run.told.filter(({ at }) => at <= count).map(({ number }) => number))
  return [run.disk.afterLoss(count, random), told, String(count)]
}
