import { messageOf, type Tx, turn } from '../../../../kernel/plugin.js'
import type { DiagnosticItem } from '../../../../schemas/kernel/diagnostic.js'
import { ArchiveReader, type ArchivesApi } from '../../../desk/archives/api.js'
import { AutomationErrors } from '../api.js'
import type { K } from '../needs.js'
import type { LeftSessions } from '../runs/left-sessions.js'
import { queryRuns, type RunFilter } from '../runs/run-query.js'
import { isFinal, isOf, OF_JOBS, type RunRow, runs } from '../runs/run-row.js'
import { KEPT_MS, KEPT_RUNS } from '../runs/runs.js'
import { archivedRuns, SEGMENT_TABLES } from './table.js'

const DAY_MS = 24 * 60 * 60_000
/** Delay after a start, so that this work does not compete with it. */
const FIRST_MS = 2 * 60_000
const EVERY_MS = 60 * 60_000
/** Pause between two moves, so that requests are handled in between. */
const PAUSE_MS = 10
/** Runs per move; a move blocks the event loop for a few milliseconds. */
const MOST_RUNS = 250
/** Jobs per query. */
const MOST_JOBS = 200
/** Newest runs of a job that stay in the catalog, not counting canceled ones: the scheduler and doctor read them. */
const LATEST = 50

/** Runs of a job in one segment. */
interface Part {
  readonly segment: number
  readonly runs: number
  readonly newest_seq: number
  readonly newest_at: number
}

export interface RunArchiveOptions {
  readonly archives: () => ArchivesApi | undefined
  /** Days after which an ended run is moved; 0: never. */
  readonly days: () => number
  /** Length of the fire limit window of a job in milliseconds; undefined without the job. */
  readonly window: (job: string) => number | undefined
}

/**
 * Ended runs of jobs, moved out of the in-memory catalog. Runs of triggers stay in the catalog: events that they cause inherit
 * their trigger depth, which is read inside transactions.
 */
export class RunArchive {
  readonly #reader: ArchiveReader

  constructor(
    private readonly kernel: K,
    private readonly left: Pick<LeftSessions, 'noteEach'>,
    private readonly options: RunArchiveOptions,
  ) {
    this.#reader = new ArchiveReader({
      log: kernel.log,
      archives: options.archives,
      tables: SEGMENT_TABLES,
      off: AutomationErrors.run_archive_off,
      unreadable: {
        id: 'automation.archive',
        code: 'run_archive_unreadable',
        category: 'automation',
        title: 'runs of the archive cannot be read',
      },
    })
  }

  /**
   * Returns an archived run.
   * @throws Fault `archive_missing`, `archive_damaged`, `run_archive_off`
   */
  async get(id: string): Promise<RunRow | undefined> {
    const segment = archivedRuns.segmentOf(this.kernel.db, id)
    if (segment === undefined) return undefined
    return this.#reader.use(segment, db => runs.get(db, { id }))
  }

  /**
   * The runs of a list, from the catalog and the archive; an unreadable segment is skipped.
   * @param found the runs of the catalog that match the filter
   */
  async list(filter: RunFilter, found: readonly RunRow[]): Promise<readonly RunRow[]> {
    const { db } = this.kernel
    const isOpen = filter.status !== undefined && !isFinal(filter.status)
    if (isOpen || filter.triggerId !== undefined || !this.options.archives()) return found
    let rows = found
    const isFull = () => rows.length >= filter.limit
    for (const { segment, newest_seq: newest, newest_at: at } of this.#parts(filter.jobId)) {
      if (isFull() && newest < (rows.at(-1)?.seq ?? 0)) continue
      if (filter.since !== undefined && at < filter.since) continue
      const old = await this.#reader.tryUse(segment, segmentDb => {
        const there: RunRow[] = []
        for (let beforeSeq: number | undefined; there.length < filter.limit; ) {
          const page = queryRuns(segmentDb, { ...filter, beforeSeq })
          there.push(...page.filter(({ id }) => archivedRuns.segmentOf(db, id) === segment))
          if (page.length < filter.limit) break
          beforeSeq = page.at(-1)?.seq
        }
        return there
      })
      // A run that was moved during the query is in both.
      const bySeq = new Map([...rows, ...(old ?? [])].map(row => [row.seq, row]))
      rows = [...bySeq.values()].toSorted((a, b) => b.seq - a.seq).slice(0, filter.limit)
    }
    return rows
  }

  findings(): DiagnosticItem[] {
    return this.#reader.findings()
  }

  /** Moves old runs every hour until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.kernel
    for (let wait = FIRST_MS; ; wait = EVERY_MS) {
      await clock.sleep(wait, signal).catch(() => {})
      if (signal.aborted) return
      await this.#sweep(signal).catch(error => log.warn(`runs are not archived: ${messageOf(error)}`))
    }
  }

  async #sweep(signal: AbortSignal): Promise<void> {
    const { clock } = this.kernel
    if (!this.options.archives()) return
    // A running backup may still need a segment, so it is removed an hour after it became empty.
    await this.#reader.removeEmpty(new Set(this.#parts().map(({ segment }) => segment)))
    const days = this.options.days()
    const pause = () => clock.sleep(PAUSE_MS, signal).catch(() => {})
    for (let jobs = days > 0 ? this.#jobs('') : []; jobs.length > 0; jobs = this.#jobs(jobs.at(-1) ?? '')) {
      for (const job of jobs) {
        const before = clock.now() - Math.max(days * DAY_MS, this.options.window(job) ?? 0)
        while (!signal.aborted && (await this.#move(job, before)) > 0) await pause()
        if (signal.aborted) return
      }
      await turn()
    }
    for (const [job] of this.kernel.db.rows('SELECT DISTINCT job_id FROM automation_archived_part'))
      while (!signal.aborted && (await this.#remove(String(job))) > 0) await pause()
  }

  /** Jobs with more runs than always stay, ordered by ID. */
  #jobs(after: string): string[] {
    const sql = `SELECT job_id FROM automation_run WHERE job_id > ? AND ${OF_JOBS} GROUP BY job_id HAVING count(*) > ${LATEST}
      ORDER BY job_id LIMIT ${MOST_JOBS}`
    return this.kernel.db.rows(sql, [after]).map(([id]) => String(id))
  }

  /** Segments with runs of a job, or of any job, newest first. */
  #parts(job?: string): Part[] {
    const sql = `SELECT segment, sum(runs) AS runs, max(newest_seq) AS newest_seq, max(newest_at) AS newest_at
      FROM automation_archived_part ${job === undefined ? '' : 'WHERE job_id = ?'} GROUP BY segment ORDER BY segment DESC`
    return this.kernel.db.all<Part>(sql, job === undefined ? [] : [job])
  }

  /** Moves a batch of runs of a job; resolves to their number. */
  async #move(job: string, before: number): Promise<number> {
    const { db } = this.kernel
    const latest = `SELECT seq FROM automation_run WHERE ${isOf('job_id', '?1')} AND status <> 'canceled'
      ORDER BY seq DESC LIMIT 1 OFFSET ${LATEST - 1}`
    const rows = runs.query(
      db,
      `WHERE ${isOf('job_id', '?1')} AND seq < (${latest}) AND started_at < ?2 AND trigger_id IS NULL
         AND status NOT IN ('scheduled', 'running') ORDER BY seq LIMIT ${MOST_RUNS}`,
      [job, before],
    )
    if (rows.length === 0) return 0
    const segment = await this.#reader.add(t => putRuns(t, rows))
    return db.tx(t => {
      // An ended run does not change; it may have been removed in the meantime.
      const there = `SELECT seq FROM automation_run WHERE seq IN (SELECT value FROM json_each(?))`
      const still = new Set(t.rows(there, [numbers(rows)]).map(([seq]) => seq))
      const moved = rows.filter(({ seq }) => still.has(seq))
      t.run('DELETE FROM automation_run WHERE seq IN (SELECT value FROM json_each(?))', [numbers(moved)])
      const ids = moved.map(({ id }) => id)
      archivedRuns.put(t, ids, segment)
      const [newest, at] = [Math.max(...moved.map(({ seq }) => seq)), Math.max(...moved.map(row => row.started_at))]
      if (moved.length > 0)
        t.run(
          `INSERT INTO automation_archived_part (job_id, segment, runs, newest_seq, newest_at) VALUES (?, ?, ?, ?, ?)
           ON CONFLICT (job_id, segment) DO UPDATE SET runs = runs + excluded.runs,
             newest_seq = max(newest_seq, excluded.newest_seq), newest_at = max(newest_at, excluded.newest_at)`,
          [job, segment, moved.length, newest, at],
        )
      return moved.length
    })
  }

  /** Removes a batch of expired runs of a job with their sessions; resolves to their number. */
  async #remove(job: string): Promise<number> {
    const { db, clock } = this.kernel
    const [inCatalog] = db.row(`SELECT count(*) FROM automation_run WHERE ${isOf('job_id')}`, [job]) ?? []
    const parts = this.#parts(job).toReversed()
    const archived = parts.reduce((sum, { runs }) => sum + runs, 0)
    const kept = this.options.window(job) === undefined ? 0 : KEPT_RUNS
    const most = Math.min(MOST_RUNS, archived + Number(inCatalog) - kept)
    if (most <= 0) return 0
    for (const { segment } of parts) {
      const rows = await this.#reader.tryUse(segment, old =>
        runs.query(old, 'WHERE job_id = ? AND started_at < ? ORDER BY seq LIMIT +?', [
          job,
          clock.now() - KEPT_MS,
          most,
        ]),
      )
      if (!rows || rows.length === 0) continue
      await db.tx(t => {
        const counted = rows.filter(({ id }) => archivedRuns.segmentOf(t, id) === segment)
        const ids = counted.map(({ id }) => id)
        archivedRuns.remove(t, ids)
        const part = 'job_id = ? AND segment = ?'
        t.run(`UPDATE automation_archived_part SET runs = runs - ? WHERE ${part}`, [ids.length, job, segment])
        t.run(`DELETE FROM automation_archived_part WHERE ${part} AND runs <= 0`, [job, segment])
        this.left.noteEach(
          t,
          counted.flatMap(({ session_id: session, ended_at: ended, started_at: started }) =>
            session === null ? [] : [[session, ended ?? started] as const],
          ),
        )
      })
      await this.#reader.use(segment, old =>
        old.tx(t => t.run('DELETE FROM automation_run WHERE seq IN (SELECT value FROM json_each(?))', [numbers(rows)])),
      )
      return rows.length
    }
    return 0
  }
}

const numbers = (rows: readonly Pick<RunRow, 'seq'>[]): string => JSON.stringify(rows.map(({ seq }) => seq))

/** Inserts runs into a segment, also after an interrupted move that left some of them. */
function putRuns(t: Tx, rows: readonly RunRow[]): void {
  for (const row of rows) runs.replace(t, row)
}
