import type { Mark } from '../../../kernel/store/mark.js'
import { readNote } from '../../../kernel/store/note.js'
import { type Chance, chance } from '../library/chance.js'
import { perform, prepare, recordOf, wrongWith, wrongWithJournal } from './model.js'
import { type Files, PowerDisk } from './power-disk.js'
import { open, openSmall } from './states.js'

/** Where a file was damaged and how. */
interface Damage {
  readonly what: string
  readonly files: Files
}

/** Bytes that were on the disk and acknowledged, and the end of the file. */
interface Acknowledged {
  readonly file: string
  readonly bytes: number
}

/** Damages the file within its acknowledged bytes (`inside`) or tears its tail behind them. */
function damage(files: Files, { file, bytes }: Acknowledged, inside: boolean, random: Chance): Damage {
  const content = Buffer.from(files.get(file) ?? Buffer.alloc(0))
  const at = inside ? random.int(bytes) : bytes + random.int(content.length - bytes + 1)
  const kind = random.of(inside ? ['cut', 'garbage', 'zeroed sector', 'bit flip'] : ['cut', 'garbage', 'zeroed'])
  const sector = Math.floor(at / 512) * 512
  let damaged = content
  if (kind === 'cut') damaged = content.subarray(0, at)
  else if (kind === 'bit flip') content.writeUInt8(content.readUInt8(at) ^ (1 << random.int(8)), at)
  else if (kind === 'zeroed sector') content.fill(0, sector, Math.min(sector + 512, content.length))
  else if (inside) {
    for (let i = at; i < Math.min(at + 1 + random.int(600), content.length); i++) content[i] = random.int(256)
  } else {
    const tail = Buffer.alloc(random.int(9000), kind === 'garbage' ? random.int(256) : 0)
    damaged = Buffer.concat([content.subarray(0, at), tail])
  }
  const what = `${inside ? 'inside' : 'behind'} the ${bytes} acknowledged bytes of ${content.length} of ${file}: ${kind} at ${at}`
  return { what, files: new Map(files).set(file, damaged) }
}

/** The database after a kill, with a damaged log or truncated: a torn tail is cut, damage to acknowledged data is an error. */
export async function damagedStore(seed: number, index: number): Promise<string | undefined> {
  const random = chance(seed, 'damaged store', index)
  const disk = new PowerDisk()
  const store = await open(disk, 5 + random.int(60))
  await prepare(store)
  const told = 3 + random.int(90)
  let n = 0
  const lane = async (): Promise<void> => {
    while (n < told) await perform(store, seed, ++n)
  }
  await Promise.all([lane(), lane(), lane()])
  const { files } = disk
  await store.close()
  const main = { file: '/home/svc.db', bytes: (files.get('/home/svc.db') as Buffer).length }
  // All that is in the log was acknowledged; a log that has begun again holds older frames behind that.
  const mark = readNote<Partial<Mark>>(files.get('/home/svc.db-mark')) ?? {}
  const wal = { file: '/home/svc.db-wal', bytes: 32 + (mark.frames ?? -1) * (24 + (mark.size ?? 8)) }
  const inside = index % 3 !== 2 && wal.bytes > 0
  const cutMain = index % 6 === 0
  const damaged = cutMain
    ? {
        what: 'the database cut',
        files: new Map(files).set(main.file, (files.get(main.file) as Buffer).subarray(0, random.int(main.bytes))),
      }
    : damage(files, wal, inside, random)
  const outcome = await judge(async () => {
    const again = await open(new PowerDisk(damaged.files))
    await prepare(again)
    const wrong = wrongWith(again, seed, told)
    await again.close()
    return wrong
  }, 'store_damaged')
  if (outcome === undefined || (outcome === 'loud' && (inside || cutMain))) return undefined
  return `${damaged.what}: ${outcome}`
}

/** The same for journals. */
export async function damagedJournal(seed: number, index: number): Promise<string | undefined> {
  const random = chance(seed, 'damaged journal', index)
  const disk = new PowerDisk()
  const journal = await openSmall(disk)
  const generations: number[] = []
  for (let left = 2 + random.int(30); left > 0; left--) {
    journal.append([recordOf(seed, 1, journal.last + 1)])
    generations.push(1)
    await journal.written()
    if (random() < 0.4) await journal.sync()
  }
  await journal.sync()
  const told = journal.last
  const before = disk.files
  for (let left = random.int(4); left > 0; left--) {
    journal.append([recordOf(seed, 1, journal.last + 1)])
    generations.push(1)
  }
  await journal.written()
  const { files } = disk
  await journal.close()
  const logs = [...files.keys()].filter(file => file.endsWith('.log')).sort((a, b) => number(b) - number(a))
  const newest = { file: logs[0] as string, bytes: before.get(logs[0] as string)?.length ?? 0 }
  const older = logs.slice(1).map(file => ({ file, bytes: files.get(file)?.length ?? 0 }))
  const inside = index % 3 !== 2 && (newest.bytes > 0 || older.length > 0)
  const target = inside && older.length > 0 && (newest.bytes === 0 || random() < 0.3) ? random.of(older) : newest
  const damaged = damage(files, target, inside, random)
  const outcome = await judge(async () => {
    const again = await openSmall(new PowerDisk(damaged.files))
    const wrong = await wrongWithJournal(again, seed, generations, told)
    await again.close()
    return wrong
  }, 'journal_damaged')
  if (outcome === undefined || (outcome === 'loud' && inside)) return undefined
  return `${damaged.what}: ${outcome}`
}

const number = (file: string): number => Number(/(\d+)\.log$/.exec(file)?.[1])

/** Undefined when all is well, `loud` for the error that damage must give, else what is wrong. */
async function judge(use: () => Promise<string | undefined>, loud: string): Promise<string | undefined> {
  try {
    return await use()
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    return code === loud ? 'loud' : String(error)
  }
}
