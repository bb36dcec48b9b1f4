import type { SqlValue } from '../contract/storage.js'
import { clip } from '../kit/text.js'
import { type SqliteDatabase, sqlError } from './engine.js'
import { StoreError } from './error.js'

/** The effect of a statement, as SQLite's EXPLAIN shows it. */
export interface Verdict {
  readonly writes: boolean
  /** Tables that it writes, lower case; without indexes, sequences and the effects of foreign keys. */
  readonly tables: readonly string[]
}

const KINDS: ReadonlySet<string> = new Set(['select', 'with', 'values', 'insert', 'replace', 'update', 'delete'])
/** Opcodes of the virtual machine that belong to schema changes, transactions and files. */
const REFUSED_OPCODES: ReadonlySet<string> = new Set(
  (
    'AutoCommit Savepoint Vacuum IncrVacuum JournalMode Checkpoint ParseSchema CreateBtree Destroy DropTable DropIndex ' +
    'DropTrigger SetCookie LoadAnalysis SqlExec VCreate VDestroy VRename VUpdate'
  ).split(' '),
)
const BLANK = /^(?:\s+|--[^\n]*(?:\n|$)|\/\*[\s\S]*?(?:\*\/|$))*/
const BLANK_OR_END = /^(?:[\s;]+|--[^\n]*(?:\n|$)|\/\*[\s\S]*?(?:\*\/|$))*/
/** ON CONFLICT ROLLBACK ends the transaction without the callback's knowledge. */
const ON_CONFLICT_ROLLBACK = 1

/** The prefix of an owner's tables; dots and hyphens of its name become underscores. */
export function tablePrefix(name: string): string {
  return `${name.replace(/[.-]/g, '_')}_`.toLowerCase()
}

/**
 * Checks a statement before it is prepared: it must be a single statement that reads or changes rows. The kind is checked first,
 * because a PRAGMA takes effect while it is compiled; the rest is read from EXPLAIN. A SELECT changes nothing, and one without a
 * semicolon is alone: EXPLAIN would compile it a second time, and a start prepares more than a hundred.
 * @throws StoreError `statement_refused`, or `sql_failed` when SQLite does not understand it
 */
export function explain(db: SqliteDatabase, sql: string): Verdict {
  const kind = firstWord(sql)
  if (!KINDS.has(kind)) throw refused(sql, `${kind === '' ? 'this' : kind.toUpperCase()} is not allowed here`)
  if (kind === 'select' && !sql.includes(';')) return { writes: false, tables: [] }
  const tables = new Set<string>()
  let names: Map<SqlValue, string> | undefined
  let writes = false
  for (const [opcode, p1, p2, p3] of program(db, sql)) {
    if (REFUSED_OPCODES.has(opcode)) throw refused(sql, `${opcode} is not allowed here`)
    if ((opcode === 'Halt' || opcode === 'HaltIfNull') && p1 !== 0 && p2 === ON_CONFLICT_ROLLBACK) {
      throw refused(sql, 'ON CONFLICT ROLLBACK is not allowed here')
    }
    if (opcode === 'FkCounter' && p1 !== 0) {
      throw refused(sql, 'it writes a foreign key that is checked at the commit, which several transactions share')
    }
    if (opcode === 'Transaction' && p2 !== 0) writes = true
    if (opcode !== 'OpenWrite' && opcode !== 'Clear') continue
    const [root, database] = opcode === 'Clear' ? [p1, p2] : [p2, p3]
    names ??= rootPages(db)
    const name = database === 0 ? names.get(root) : undefined
    if (name === undefined) throw refused(sql, 'it writes to an object that is not a table')
    tables.add(name)
  }
  // An insert also updates its table's sequence; a change of a sequence alone is refused as a foreign table.
  if (tables.size > 1) tables.delete('sqlite_sequence')
  return { writes, tables: [...tables] }
}

/** An owner of tables named `<prefix>…`. The first prefix is its own, the others are inherited. */
export interface Owner {
  readonly name: string
  readonly prefixes: readonly string[]
}

/** Whether a name belongs to that prefix: it belongs to the longest registered prefix that it starts with. */
export function owns(prefix: string, name: string, registered: ReadonlyMap<string, string>): boolean {
  const starts = (start: string): boolean => name.toLowerCase().startsWith(start)
  return starts(prefix) && ![...registered.keys()].some(other => other.length > prefix.length && starts(other))
}

/** Throws when the statement writes tables that do not belong to the owner. */
export function checkOwner(verdict: Verdict, sql: string, owner: Owner, registered: ReadonlyMap<string, string>): void {
  const { name, prefixes } = owner
  const foreign = verdict.tables.find(table => !prefixes.some(prefix => owns(prefix, table, registered)))
  if (foreign === undefined) return
  const own = prefixes.map(prefix => `${prefix}…`).join(' and ')
  const reason = `${name} may write only tables named ${own}, not ${foreign}`
  throw refused(sql, reason, 'ask the service that owns it')
}

/** @returns the error for a refused statement */
export function refused(sql: string, reason: string, hint = 'see the rules for statements of a plugin'): StoreError {
  return new StoreError('statement_refused', `statement refused: ${reason}: ${clip(sql.trim(), 200)}`, hint)
}

/** First keyword, lower case, after comments and, if `semicolons`, after semicolons. */
export function firstWord(sql: string, semicolons = false): string {
  return /^[a-z]+/i.exec(sql.slice(blankLength(sql, semicolons)))?.[0].toLowerCase() ?? ''
}

/** The program of the first statement: opcode and its first three operands. */
function program(db: SqliteDatabase, sql: string): [string, SqlValue, SqlValue, SqlValue][] {
  const steps: [string, SqlValue, SqlValue, SqlValue][] = []
  const iterator = db.iterateStatements(`EXPLAIN ${sql}`)
  try {
    const first = iterator.next()
    if (!first.done) {
      while (first.value.step()) {
        const [, opcode, p1 = null, p2 = null, p3 = null] = first.value.get(null)
        steps.push([String(opcode), p1, p2, p3])
      }
      const rest = iterator.getRemainingSQL()
      if (blankLength(rest, true) < rest.length) throw refused(sql, 'it is more than one statement')
    }
  } catch (error) {
    throw sqlError(error, sql)
  } finally {
    iterator.return?.()
  }
  return steps
}

function rootPages(db: SqliteDatabase): Map<SqlValue, string> {
  const tables =
    "SELECT 1, 'sqlite_schema' UNION ALL SELECT rootpage, lower(tbl_name) FROM sqlite_schema WHERE rootpage > 0"
  return new Map(db.exec(tables)[0]?.values as [SqlValue, string][])
}

/** Length of the white space and comments (and semicolons) at the start of a text. */
function blankLength(sql: string, semicolons: boolean): number {
  return (semicolons ? BLANK_OR_END : BLANK).exec(sql)?.[0].length ?? 0
}
