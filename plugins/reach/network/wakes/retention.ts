import type { Tx } from '../../../../kernel/plugin.js'
import type { K } from '../needs.js'

/** How long messages are kept: the period covered by the overview. */
export const RETENTION_MS = 90 * 86_400_000
const SWEEP_MS = 3_600_000
/** Rows per transaction. */
const BATCH = 500

/** Deletes old messages with their deliveries, inactive conversations, and charges for old wakes. */
export class Sweep {
  constructor(private readonly kernel: K) {}

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.kernel.clock.sleep(SWEEP_MS, signal).catch(() => {})
      if (!signal.aborted) await this.sweep(signal)
    }
  }

  async sweep(signal: AbortSignal): Promise<void> {
    const since = this.kernel.clock.now() - RETENTION_MS
    for (const step of STEPS) {
      let more = true
      while (more && !signal.aborted) more = (await this.kernel.db.tx(t => step(t, since))) >= BATCH
    }
  }
}

/** Each returns the number of rows found. Messages in the prompt of an unfinished wake are kept. */
const STEPS: readonly ((t: Tx, since: number) => number)[] = [
  (t, since) => {
    const seqs = t.rows(
      `SELECT seq FROM network_message m WHERE at < ? AND NOT EXISTS (
         SELECT 1 FROM network_delivery d JOIN network_wake w ON w.id = d.wake_id
         WHERE d.seq = m.seq AND w.state IN ('reserved', 'queued')) ORDER BY at LIMIT +?`,
      [since, BATCH],
    )
    const list = JSON.stringify(seqs.map(([seq]) => seq))
    t.run('DELETE FROM network_delivery WHERE seq IN (SELECT value FROM json_each(?))', [list])
    return t.run('DELETE FROM network_message WHERE seq IN (SELECT value FROM json_each(?))', [list]).changes
  },
  (t, since) => {
    const rows = t.rows(
      `SELECT c.workspace_id, c.channel, c.id FROM network_container c WHERE c.last_at < ? AND NOT EXISTS (
         SELECT 1 FROM network_message m WHERE m.workspace_id = c.workspace_id AND m.channel = c.channel AND m.container_id = c.id
       ) AND NOT EXISTS (
         SELECT 1 FROM network_work w WHERE w.workspace_id = c.workspace_id AND w.channel = c.channel AND w.container_id = c.id
           AND w.ended_at IS NULL
       ) LIMIT +?`,
      [since, BATCH],
    )
    for (const row of rows) {
      t.run('DELETE FROM network_participant WHERE workspace_id = ? AND channel = ? AND container_id = ?', row)
      t.run('DELETE FROM network_work WHERE workspace_id = ? AND channel = ? AND container_id = ?', row)
      t.run('DELETE FROM network_subscription WHERE workspace_id = ? AND channel = ? AND thread_id = ?', row)
      t.run('DELETE FROM network_container WHERE workspace_id = ? AND channel = ? AND id = ?', row)
    }
    return rows.length
  },
  (t, since) =>
    t.run('DELETE FROM network_wake WHERE id IN (SELECT id FROM network_wake WHERE settled_at < ? LIMIT +?)', [
      since,
      BATCH,
    ]).changes,
]
