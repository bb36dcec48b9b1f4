import type { Actor, Party } from '../contract/actor.js'
import type { Db, Migration, Tx } from '../contract/db.js'
import { KernelErrors } from '../contract/errors.js'

/** The state of the sources that publish snapshots: whose process speaks for one, and the version that it published last. */
export class Sources {
  static readonly migration: Migration = {
    id: '002-source',
    sql: `CREATE TABLE kernel_source (
      kind TEXT NOT NULL, id TEXT NOT NULL, nonce TEXT NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (kind, id)
    ) STRICT;`,
  }

  constructor(private readonly db: Db) {}

  /** A new nonce begins to count anew: its process knows nothing of what an earlier one published, which is fenced off. */
  activate(t: Tx, { kind, id }: Party, nonce: string): void {
    this.db.within(t).run(
      `INSERT INTO kernel_source (kind, id, nonce, version) VALUES (?, ?, ?, 0)
       ON CONFLICT (kind, id) DO UPDATE SET nonce = excluded.nonce, version = 0 WHERE nonce <> excluded.nonce`,
      [kind, id, nonce],
    )
  }

  forget(t: Tx, { kind, id }: Party): void {
    this.db.within(t).run('DELETE FROM kernel_source WHERE kind = ? AND id = ?', [kind, id])
  }

  /** Throws `source_inactive` for a process that does not speak for the source any more, `snapshot_stale` for an old version. */
  advance(t: Tx, { source: { kind, id }, nonce }: Actor, version: number): void {
    const state = this.db.get<{ nonce: string; version: number }>(
      'SELECT nonce, version FROM kernel_source WHERE kind = ? AND id = ?',
      [kind, id],
    )
    if (!state || state.nonce !== nonce) throw KernelErrors.source_inactive()
    if (version <= state.version)
      throw KernelErrors.snapshot_stale(
        `${kind}/${id} published version ${state.version}; the next snapshot needs a larger source version than that`,
      )
    this.db.within(t).run('UPDATE kernel_source SET version = ? WHERE kind = ? AND id = ?', [version, kind, id])
  }
}
