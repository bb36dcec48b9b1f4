import { SerialBy } from '../../../../kernel/kit/serial.js'
import { matching } from '../../../../kernel/kit/table.js'
import { type Db, type Fault, messageOf, type Reads, type SqlValue, type Tx, turn } from '../../../../kernel/plugin.js'
import type { DiagnosticItem } from '../../../../schemas/kernel/diagnostic.js'
import { ArchiveErrors, ArchiveReader, type ArchivesApi } from '../../../desk/archives/api.js'
import { SessionErrors } from '../api.js'
import type { K } from '../needs.js'
import { SESSION_TABLES, type SessionFilter, type SessionRow, type SessionTable, sessionsIn } from '../table.js'
import { archivedSessions, MOVED } from './table.js'

const DAY_MS = 24 * 60 * 60_000
/** Delay after a start, so that this work does not compete with it. */
const FIRST_MS = 3 * 60_000
const EVERY_MS = 60 * 60_000
/** Pause between two moves, so that requests are handled in between. */
const PAUSE_MS = 10
/** Sessions per move; a move blocks the event loop for a few milliseconds. */
const AT_ONCE = 64
/** Time for which a session that a request is about to change stays in the catalog. */
const WANTED_MS = 10 * 60_000
/** Number of such sessions that are remembered, the latest. */
const MOST_WANTED = 4096

type Row = Readonly<Record<string, SqlValue>>
/** Rows of one session, table by table as in {@link MOVED}. */
type Rows = readonly (readonly Row[])[]

/** The position of a session in the scan, the one that rested longest first. */
type Position = readonly [at: number, id: string]

/** Sums over sessions of the archive. */
export interface ArchivedSums {
  readonly sessions: number
  readonly failed: number
  readonly bytes: number
}

export interface SessionArchiveOptions {
  readonly archives: () => ArchivesApi | undefined
  /** Days without activity after which a stopped session is moved; 0: never. */
  readonly days: () => number
  /** Why a session that is old enough stays; undefined: nothing needs it in the catalog. */
  readonly isNeeded: (row: SessionRow) => Promise<boolean>
  /** Called in the transaction that moves a session: data read from its rows is outdated. */
  readonly moved: (id: string) => void
}

/**
 * Stopped sessions outside of the catalog. Requests that read one get its row from its segment; everything else first brings the
 * session back. Its journal and its prompts are files, which stay where they are.
 *
 * Moving: write the rows into a segment, durably; then delete them from the catalog and record the segment in one transaction. After
 * a kill in between the move is repeated, and the rows of the segment are ignored.
 */
export class SessionArchive {
  readonly #reader: ArchiveReader
  readonly #serial = new SerialBy()
  /** Sessions that requests are about to change, with the time until which they stay. */
  readonly #wanted = new Map<string, number>()

  constructor(
    private readonly kernel: K,
    private readonly table: SessionTable,
    private readonly options: SessionArchiveOptions,
  ) {
    this.#reader = new ArchiveReader({
      log: kernel.log,
      archives: options.archives,
      tables: SESSION_TABLES,
      off: SessionErrors.session_archive_off,
      unreadable: {
        id: 'sessions.archive',
        code: 'session_archive_unreadable',
        category: 'sessions',
        title: 'sessions of the archive cannot be read',
      },
    })
  }

  has(id: string): boolean {
    return !this.table.inCatalog(id) && this.#segmentOf(id) !== undefined
  }

  findings(): DiagnosticItem[] {
    return this.#reader.findings()
  }

  /** Sums over all sessions of the archive. */
  sums(): ArchivedSums {
    const sql = 'SELECT sum(sessions), sum(failed), sum(bytes) FROM sessions_archived_part'
    const [sessions, failed, bytes] = this.kernel.db.row(sql) ?? []
    return { sessions: Number(sessions ?? 0), failed: Number(failed ?? 0), bytes: Number(bytes ?? 0) }
  }

  /** Before a request for a session: reads its row from the archive, or brings it back when the request may change it. */
  prepare(id: string, isRead: boolean): Promise<void> | undefined {
    if (!isRead) this.#want(id)
    if (!this.has(id)) return undefined
    return isRead ? this.lend(id) : this.restore(id)
  }

  /** Makes the row of an archived session readable, for the requests of the next moments. @throws Fault `archive_damaged`, … */
  async lend(id: string): Promise<void> {
    const segment = this.table.get(id) ? undefined : this.#segmentOf(id)
    if (segment === undefined) return
    const [row] = await this.#reader.use(segment, db => rowsOf(db, id)[0] ?? [])
    if (!row) throw lost(segment, id)
    if (this.#segmentOf(id) === segment) this.table.lend(row as unknown as SessionRow)
  }

  /** Brings a session back into the catalog, if it is in the archive. @throws Fault `archive_missing`, `archive_damaged` */
  async restore(id: string): Promise<void> {
    this.#want(id)
    if (!this.has(id)) return
    await this.#serial.run(id, async () => {
      const segment = this.#segmentOf(id)
      if (segment === undefined) return
      await this.#reader.use(segment, async old => {
        const rows = rowsOf(old, id)
        const row = rows[0]?.[0] as SessionRow | undefined
        if (!row) throw lost(segment, id)
        await this.kernel.db.tx(t => {
          if (this.#segmentOf(id, t) !== segment) return
          insertRows(t, id, rows)
          archivedSessions.remove(t, [id])
          count(t, segment, row, -1)
          this.table.restored(id)
          this.options.moved(id)
        })
        await old.tx(t => deleteRows(t, id))
      })
    })
  }

  /**
   * The sessions of a list, from the catalog and the archive, newest first; an unreadable segment is skipped.
   * @param found the sessions of the catalog that match the filter
   */
  async list(filter: SessionFilter, limit: number, found: readonly SessionRow[]): Promise<readonly SessionRow[]> {
    if ((filter.state ?? 'stopped') !== 'stopped' || !this.options.archives()) return found
    const { sort } = filter
    let rows = found
    for (const { segment, newest } of this.#parts(filter)) {
      const last = rows.at(-1)
      if (rows.length >= limit && last && newest < last[sort]) continue
      const old = await this.#reader.tryUse(segment, db => this.#pageOf(db, segment, filter, limit))
      // A session that was moved during the query is in both.
      const byId = new Map([...rows, ...(old ?? [])].map(row => [row.id, row]))
      rows = [...byId.values()].toSorted((a, b) => b[sort] - a[sort] || (a.id < b.id ? 1 : -1)).slice(0, limit)
    }
    return rows
  }

  /** Brings back the sessions of a deleted workspace in one segment, so that they can be removed as others are. */
  async *ofWorkspace(workspaceId: string, segment: number): AsyncGenerator<string> {
    const sql = 'SELECT id FROM sessions_session WHERE workspace_id = ?'
    const ids = await this.#reader.use(segment, db => db.rows(sql, [workspaceId]).map(([id]) => String(id)))
    for (const id of ids) {
      if (this.#segmentOf(id) !== segment) continue
      await this.restore(id)
      yield id
    }
  }

  /** Moves old sessions every hour until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.kernel
    for (let wait = FIRST_MS; ; wait = EVERY_MS) {
      await clock.sleep(wait, signal).catch(() => {})
      if (signal.aborted) return
      await this.sweep(signal).catch(error => log.warn(`sessions are not archived: ${messageOf(error)}`))
    }
  }

  /** Moves every session that is old enough; resolves to their number. */
  async sweep(signal?: AbortSignal): Promise<number> {
    const { clock, db } = this.kernel
    const days = this.options.days()
    if (!this.options.archives()) return 0
    // A running backup may still need a segment, so it is removed an hour after it became empty.
    await this.#reader.removeEmpty(new Set(archivedSessions.segments(db)))
    if (days === 0) return 0
    const before = clock.now() - days * DAY_MS
    for (const [id, until] of this.#wanted) if (until < clock.now()) this.#wanted.delete(id)
    let moved = 0
    for (let after: Position | undefined = [0, '']; after && !signal?.aborted; ) {
      const rows = this.#candidates(after, before)
      const last = rows.at(-1)
      after = rows.length === AT_ONCE && last ? [last.last_activity_at, last.id] : undefined
      const free: string[] = []
      for (const row of rows) if (!(await this.options.isNeeded(row))) free.push(row.id)
      if (free.length > 0) moved += await this.#move(free, before)
      await turn()
      if (free.length > 0 && signal && !signal.aborted) await clock.sleep(PAUSE_MS, signal).catch(() => {})
    }
    return moved
  }

  #candidates([at, id]: Position, before: number): SessionRow[] {
    // The plus disables the index by state, with which each move would read all stopped sessions.
    return this.kernel.db.all<SessionRow>(
      `SELECT * FROM sessions_session s WHERE (last_activity_at, id) > (?, ?) AND last_activity_at < ? AND +state = 'stopped'
         AND NOT EXISTS (SELECT 1 FROM sessions_prompt WHERE session_id = s.id)
       ORDER BY last_activity_at, id LIMIT ${AT_ONCE}`,
      [at, id, before],
    )
  }

  /** Moves those of these sessions that do not change meanwhile; resolves to their number. */
  async #move(ids: readonly string[], before: number): Promise<number> {
    const { db } = this.kernel
    const written = ids.map(id => [id, rowsOf(db, id)] as const)
    const segment = await this.#reader.add(t => {
      for (const [id, rows] of written) insertRows(t, id, rows)
    })
    return db.tx(t => {
      const moved = written.filter(([id, rows]) => this.#mayGo(t, id, before) && sameRows(rows, rowsOf(t, id)))
      for (const [id, rows] of moved) {
        const row = rows[0]?.[0] as unknown as SessionRow
        deleteRows(t, id)
        count(t, segment, row, 1)
        this.table.movedOut(row)
        this.options.moved(id)
      }
      archivedSessions.put(
        t,
        moved.map(([id]) => id),
        segment,
      )
      return moved.length
    })
  }

  #mayGo(t: Tx, id: string, before: number): boolean {
    if ((this.#wanted.get(id) ?? 0) > this.kernel.clock.now()) return false
    const sql = `SELECT 1 FROM sessions_session s WHERE id = ? AND last_activity_at < ? AND state = 'stopped'
      AND NOT EXISTS (SELECT 1 FROM sessions_prompt WHERE session_id = s.id)`
    return t.row(sql, [id, before]) !== undefined
  }

  /** One page of a segment, of the sessions that the catalog counts to it. */
  #pageOf(db: Db, segment: number, filter: SessionFilter, limit: number): SessionRow[] {
    const there: SessionRow[] = []
    for (let after = filter.after; ; ) {
      const page = sessionsIn(db, { ...filter, after }, limit)
      there.push(...page.filter(({ id }) => this.#segmentOf(id) === segment))
      const last = page.at(-1)
      if (page.length < limit || !last || there.length >= limit) return there
      after = [last[filter.sort], last.id]
    }
  }

  /** The segments that may have sessions of a filter, newest first, each with the newest time by which it is sorted. */
  #parts({ workspaceId, agent, sort }: SessionFilter): { readonly segment: number; readonly newest: number }[] {
    const newest = `max(${sort === 'created_at' ? 'newest_created_at' : 'newest_activity_at'})`
    const { sql, params } = matching(['workspace_id = ?', workspaceId], ['agent_name = ?', agent])
    return this.kernel.db.all(
      `SELECT segment, ${newest} AS newest FROM sessions_archived_part WHERE ${sql}
       GROUP BY segment ORDER BY segment DESC`,
      params,
    )
  }

  #segmentOf(id: string, reads: Reads = this.kernel.db): number | undefined {
    return archivedSessions.segmentOf(reads, id)
  }

  #want(id: string): void {
    this.#wanted.delete(id)
    this.#wanted.set(id, this.kernel.clock.now() + WANTED_MS)
    if (this.#wanted.size <= MOST_WANTED) return
    const [oldest] = this.#wanted.keys()
    if (oldest !== undefined) this.#wanted.delete(oldest)
  }
}

const lost = (segment: number, id: string): Fault =>
  ArchiveErrors.archive_damaged(`archives/sessions/${segment}.db has no session ${id}`)

const rowsOf = (reads: Reads, id: string): Rows =>
  MOVED.map(([table, column]) => reads.all<Row>(`SELECT * FROM ${table} WHERE ${column} = ?`, [id]))

const sameRows = (a: Rows, b: Rows): boolean => JSON.stringify(a) === JSON.stringify(b)

/** Inserts the rows of a session, also after an interrupted move that left some of them. */
function insertRows(t: Tx, id: string, rows: Rows): void {
  deleteRows(t, id)
  for (const [at, [table]] of MOVED.entries())
    for (const row of rows[at] ?? []) {
      const names = Object.keys(row)
      const marks = names.map(() => '?').join(', ')
      t.run(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${marks})`, Object.values(row))
    }
}

function deleteRows(t: Tx, id: string): void {
  for (const [table, column] of MOVED) t.run(`DELETE FROM ${table} WHERE ${column} = ?`, [id])
}

/** Adds a session to (1) or removes it from (-1) the totals of its segment. */
function count(t: Tx, segment: number, row: SessionRow, by: 1 | -1): void {
  const { workspace_id: workspaceId, agent_name: agent, created_at: created, last_activity_at: active } = row
  const failed = row.failure_kind === null ? 0 : by
  const sums = [by, failed, by * row.journal_bytes, by * (row.updated_at - created)]
  t.run(
    `INSERT INTO sessions_archived_part (workspace_id, agent_name, segment, sessions, failed, bytes, runtime_ms,
       newest_created_at, newest_activity_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (workspace_id, agent_name, segment) DO UPDATE SET sessions = sessions + excluded.sessions,
       failed = failed + excluded.failed, bytes = bytes + excluded.bytes, runtime_ms = runtime_ms + excluded.runtime_ms,
       newest_created_at = max(newest_created_at, excluded.newest_created_at),
       newest_activity_at = max(newest_activity_at, excluded.newest_activity_at)`,
    [workspaceId, agent, segment, ...sums, created, active],
  )
  t.run('DELETE FROM sessions_archived_part WHERE segment = ? AND sessions <= 0', [segment])
}
