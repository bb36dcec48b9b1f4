import { type Db, turn } from '../../../kernel/plugin.js'
import type { StoredEvent } from './api.js'
import type { Archive } from './archive.js'
import type { EventLimits } from './log.js'
import { DAY_MS, type EventRow, fromRow } from './rows.js'

/** Bytes of payload that are moved in one transaction. */
const CHUNK_BYTES = 2 * 1024 * 1024
/** Days for which counts are kept, a year longer than events. */
const COUNTED_DAYS = 366

/**
 * Moves the oldest rows of the table into the journal, chunk by chunk: {@link pick}, append and sync, {@link forget}. A crash in
 * between leaves events in both; they are picked again, not appended again, then forgotten.
 */
export class Outbox {
  constructor(
    private readonly db: Db,
    private readonly archive: Archive,
    private readonly limits: EventLimits,
  ) {}

  /** Moves one chunk of durable rows up to `last`, or deletes a chunk of expired ones; false when there was neither. */
  async move(last: number, now: number): Promise<boolean> {
    const expired = this.expired(last, now)
    if (expired) {
      await turn()
      await this.forget(expired)
      return true
    }
    const events = this.pick(last, now)
    const newest = events.at(-1)
    if (!newest) return false
    await turn()
    await this.archive.append(events)
    await this.forget(newest.seq)
    return true
  }

  /**
   * Position up to which the oldest rows, a chunk at most, are older than retention and passed by the durable cursors; undefined
   * when the oldest row is not. The first younger row ends the chunk, even after a clock jump.
   */
  expired(last: number, now: number): number | undefined {
    const { chunkRows, retentionMs } = this.limits
    const [first, young, newest] =
      this.db.row(
        `SELECT min(seq), min(seq) FILTER (WHERE at >= ?), max(seq)
         FROM (SELECT seq, at FROM kernel_event WHERE seq <= ? ORDER BY seq LIMIT +?)`,
        [now - retentionMs, this.#passed(last, now), chunkRows],
      ) ?? []
    if (typeof first !== 'number' || young === first) return undefined
    return typeof young === 'number' ? young - 1 : Number(newest)
  }

  /** The position that every durable cursor within the limit has passed. */
  #passed(last: number, now: number): number {
    const slowest = this.db.row(
      'SELECT min(c.seq) FROM kernel_cursor c JOIN kernel_event e ON e.seq = c.seq + 1 WHERE e.at >= ?',
      [now - this.limits.behindMs],
    )?.[0]
    return Math.min(last, Number(slowest ?? last))
  }

  /** The oldest rows beyond the number that is kept, if the durable cursors have passed them. */
  pick(last: number, now: number): StoredEvent[] {
    const { keepRows, chunkRows } = this.limits
    const upTo = Math.min(last - keepRows, this.#passed(last, now))
    const fits = this.db.row(
      `SELECT count(*) FROM (SELECT sum(octet_length(payload)) OVER (ORDER BY seq) AS bytes
         FROM (SELECT seq, payload FROM kernel_event WHERE seq <= ? ORDER BY seq LIMIT +?)) WHERE bytes <= ${CHUNK_BYTES}`,
      [upTo, chunkRows],
    )?.[0]
    const sql = 'SELECT * FROM kernel_event WHERE seq <= ? ORDER BY seq LIMIT +?'
    return this.db.all<EventRow>(sql, [upTo, fits || 1]).map(fromRow)
  }

  /** Counts the rows up to a position into their days and deletes them, in one transaction. */
  forget(upTo: number): Promise<unknown> {
    return this.db.tx(t => {
      t.run(
        `INSERT INTO kernel_event_day (day, name, scope, subject, n)
         SELECT at / ${DAY_MS}, name, ifnull(scope, ''), ifnull(subject, ''), count(*) FROM kernel_event WHERE seq <= ?
         GROUP BY 1, 2, 3, 4 ON CONFLICT (day, name, scope, subject) DO UPDATE SET n = n + excluded.n`,
        [upTo],
      )
      t.run('DELETE FROM kernel_event WHERE seq <= ?', [upTo])
    })
  }

  /** Drops expired files of the journal and day counts. */
  async drop(now: number): Promise<void> {
    await this.archive.drop(now - this.limits.retentionMs, this.limits.maxBytes)
    const before = Math.floor(now / DAY_MS) - COUNTED_DAYS
    if (this.db.row('SELECT 1 FROM kernel_event_day WHERE day < ?', [before]))
      await this.db.tx(t => t.run('DELETE FROM kernel_event_day WHERE day < ?', [before]))
  }
}
