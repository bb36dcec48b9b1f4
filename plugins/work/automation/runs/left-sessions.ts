import { type SqlValue, type Timer, type Tx, turn } from '../../../../kernel/plugin.js'
import type { K } from '../needs.js'

/** Sessions that remain to be removed after their runs. One row each; `due_at` is the time of the next attempt. */
export const leftTable = `CREATE TABLE automation_left_session (
    session_id TEXT NOT NULL PRIMARY KEY, ended_at INTEGER NOT NULL, due_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX automation_left_session_due ON automation_left_session (due_at);`

const DAY_MS = 24 * 60 * 60_000
/** Sessions removed per batch; each has a folder. */
const AT_ONCE = 20

/**
 * Removes the sessions of removed runs. The transaction that removes the runs records their sessions; these are removed afterwards,
 * if necessary by the next daemon. A session that is still referred to is retried a day later.
 */
export class LeftSessions {
  #timer: Timer | undefined
  #running: Promise<void> | undefined
  #closed = false

  constructor(private readonly kernel: K) {}

  /** Records the sessions of the runs that match `where`, which the caller removes in this transaction. */
  note(t: Tx, where: string, params: readonly SqlValue[]): void {
    t.run(
      `INSERT INTO automation_left_session (session_id, ended_at, due_at)
       SELECT session_id, coalesce(ended_at, started_at), 0 FROM automation_run WHERE session_id IS NOT NULL AND ${where}
       ON CONFLICT (session_id) DO UPDATE SET ended_at = max(ended_at, excluded.ended_at), due_at = 0`,
      params,
    )
    this.kernel.db.onDurable(t, () => this.start())
  }

  /** Records sessions with the end of their run, in epoch milliseconds. */
  noteEach(t: Tx, sessions: readonly (readonly [id: string, endedAt: number])[]): void {
    for (const [id, endedAt] of sessions)
      t.run(
        `INSERT INTO automation_left_session (session_id, ended_at, due_at) VALUES (?, ?, 0)
         ON CONFLICT (session_id) DO UPDATE SET ended_at = max(ended_at, excluded.ended_at), due_at = 0`,
        [id, endedAt],
      )
    this.kernel.db.onDurable(t, () => this.start())
  }

  /** Removes the due sessions, and sets a timer for the rest. */
  start(): void {
    if (this.#closed) return
    this.#running ??= this.#run()
      .catch(error => this.kernel.log.warn('sessions of removed runs stay for now', { error }))
      .finally(() => {
        this.#running = undefined
        this.#wait()
      })
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#timer?.cancel()
    await this.#running
  }

  async #run(): Promise<void> {
    const { db, clock } = this.kernel
    const sql = 'SELECT session_id, ended_at FROM automation_left_session WHERE due_at <= ? ORDER BY due_at LIMIT +?'
    while (!this.#closed) {
      const rows = db.rows(sql, [clock.now(), AT_ONCE])
      if (rows.length === 0) return
      for (const [id, endedAt] of rows) {
        if (this.#closed) return
        await this.#remove(String(id), Number(endedAt))
        await turn()
      }
    }
  }

  async #remove(id: string, endedAt: number): Promise<void> {
    const { db, clock, needs, log } = this.kernel
    const found = await needs.sessions.retire(id, endedAt).catch(error => {
      log.warn('the session of a removed run cannot be removed', { session: id, error })
      return 'referred' as const
    })
    await db.tx(t =>
      found === 'referred'
        ? t.run('UPDATE automation_left_session SET due_at = ? WHERE session_id = ?', [clock.now() + DAY_MS, id])
        : t.run('DELETE FROM automation_left_session WHERE session_id = ?', [id]),
    )
  }

  #wait(): void {
    const [due] = this.kernel.db.row('SELECT min(due_at) FROM automation_left_session') ?? []
    this.#timer?.cancel()
    if (this.#closed || typeof due !== 'number') return
    const ms = Math.max(1000, due - this.kernel.clock.now())
    this.#timer = this.kernel.clock.timeout(ms, () => this.start(), { unref: true })
  }
}
