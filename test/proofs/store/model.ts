import type { Tx } from '../../../kernel/contract/storage.js'
import type { Store } from '../../../kernel/store/index.js'
import type { Journal } from '../../../plugins/platform/journals/api.js'
import { chance } from '../library/chance.js'

/**
 * The workload: transaction n is a function of the seed and n alone, so that the state after any number of them can be
 * computed. Each writes the three rows of one id (or removes them) and its own number.
 */
interface Change {
  readonly id: number
  /** Length of the text of each row; -1 removes the rows. */
  readonly length: number
  /** Further pages that it fills and empties again. */
  readonly bulk: number
}

const IDS = 60
const PARTS = [0, 1, 2]

function change(seed: number, n: number): Change {
  const random = chance(seed, 'change', n)
  const id = random.int(IDS)
  const length = random() < 0.06 ? -1 : random() < 0.1 ? random.int(9000) : random.int(700)
  return { id, length, bulk: random() < 0.03 ? random.int(60) : 0 }
}

const textOf = (n: number, part: number, length: number): string =>
  `${n}.${part}.`.repeat(length / 4 + 1).slice(0, length)

/** The tables of the workload. */
export const TABLES = [
  {
    id: '1',
    sql: `CREATE TABLE proof_row (id INTEGER NOT NULL, part INTEGER NOT NULL, version INTEGER NOT NULL, text TEXT NOT NULL,
      PRIMARY KEY (id, part));
      CREATE TABLE proof_change (n INTEGER PRIMARY KEY, bulk BLOB)`,
  },
]

/** Makes the tables; durable when it resolves. */
export async function prepare(store: Store): Promise<void> {
  store.migrate('proof', TABLES)
  await store.db.durable()
}

/** The number of the last transaction that the store holds. */
export function lastOf(store: Pick<Store, 'db'>): number {
  return Number(store.db.row('SELECT coalesce(max(n), 0) FROM proof_change')?.[0])
}

/** Runs transaction n; resolves when it is acknowledged. Some share their commit with one before or behind them that throws. */
export async function perform(store: Pick<Store, 'db'>, seed: number, n: number): Promise<void> {
  const rolledBack = (other: number): void => {
    const gone = store.db.tx(t => {
      write(t, seed, other)
      throw new Error('rolled back')
    })
    gone.catch(() => {})
  }
  if (n % 13 === 0) rolledBack(n + 1)
  const done = store.db.tx(t => write(t, seed, n))
  if (n % 13 === 6) rolledBack(n + 1)
  await done
}

function write(t: Tx, seed: number, n: number): void {
  const { id, length, bulk } = change(seed, n)
  // What a full disk refused is done again behind others; the state is that of all in their order.
  const later = t.all<{ n: number }>('SELECT n FROM proof_change WHERE n > ?', [n])
  const isOvertaken = later.some(other => change(seed, other.n).id === id)
  for (const part of isOvertaken ? [] : PARTS) {
    if (length < 0) t.run('DELETE FROM proof_row WHERE id = ? AND part = ?', [id, part])
    else t.run('REPLACE INTO proof_row VALUES (?, ?, ?, ?)', [id, part, n, textOf(n, part, length)])
  }
  t.run('INSERT INTO proof_change VALUES (?, ?)', [n, bulk > 0 ? new Uint8Array(bulk * 4096).fill(n) : null])
  if (bulk > 0) t.run('UPDATE proof_change SET bulk = NULL WHERE n < ?', [n])
}

/** What is wrong with a recovered store: it must hold exactly the first m transactions, m no less than acknowledged. */
export function wrongWith(store: Store, seed: number, acknowledged: number): string | undefined {
  const last = lastOf(store)
  if (last < acknowledged) return `${acknowledged} were acknowledged, ${last} are there`
  const numbers = store.db.rows('SELECT count(*), min(n) FROM proof_change')[0]
  if (last > 0 && (numbers?.[0] !== last || numbers[1] !== 1))
    return `of transactions 1 to ${last} there are ${numbers?.[0]}`
  const expected = new Map<number, string>()
  for (let n = 1; n <= last; n++) {
    const { id, length } = change(seed, n)
    if (length < 0) expected.delete(id)
    else expected.set(id, PARTS.map(part => `${part} ${n} ${textOf(n, part, length)}`).join('\n'))
  }
  const found = new Map<number, string>()
  for (const [id, part, version, text] of store.db.rows(
    'SELECT id, part, version, text FROM proof_row ORDER BY id, part',
  )) {
    const before = found.get(Number(id))
    found.set(Number(id), `${before === undefined ? '' : `${before}\n`}${part} ${version} ${text}`)
  }
  for (const id of new Set([...expected.keys(), ...found.keys()])) {
    if (expected.get(id) === found.get(id)) continue
    const short = (text = 'nothing'): string => text.replace(/[\d.]{40,}/g, '…')
    return `id ${id} of ${last} transactions: expected ${short(expected.get(id))}, found ${short(found.get(id))}`
  }
  const check = store.db.rows('SELECT * FROM pragma_integrity_check').join('; ')
  return check === 'ok' ? undefined : `integrity check: ${check}`
}

/** The payload of a record tells which generation wrote it under which sequence, and how long it is. */
export function recordOf(seed: number, generation: number, sequence: number): Buffer {
  const random = chance(seed, 'record', generation, sequence)
  const text = `${generation} ${sequence} `
  return Buffer.from(text.padEnd(text.length + (random() < 0.05 ? random.int(5000) : random.int(200)), '.'))
}

/** What was acknowledged of a journal: the generations of the records up to the last synced one. */
export type Records = readonly number[]

/** What is wrong with a recovered journal: a prefix of what was appended that holds all that was acknowledged. */
export async function wrongWithJournal(
  journal: Journal,
  seed: number,
  appended: Records,
  acknowledged: number,
): Promise<string | undefined> {
  const records = await journal.read(1, Infinity)
  if (records.length !== journal.last) return `last is ${journal.last}, readable are ${records.length}`
  if (journal.last < acknowledged) return `${acknowledged} records were synced, ${journal.last} are there`
  const wrong = records.find(({ sequence, payload }) => {
    const generation = appended[sequence - 1]
    return generation === undefined || !recordOf(seed, generation, sequence).equals(payload)
  })
  return wrong && `record ${wrong.sequence} is not what was appended`
}
