import type { Db, Tx } from '../../kernel/plugin.js'
import type { CuratedModel } from '../../schemas/settings/entries.js'

export const modelTables = `
CREATE TABLE models_source (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  provider TEXT NOT NULL,
  refreshed_at INTEGER NOT NULL,
  succeeded_at INTEGER,
  error TEXT
) STRICT;
CREATE TABLE models_model (
  source TEXT NOT NULL,
  provider TEXT NOT NULL,
  id TEXT NOT NULL,
  facts TEXT NOT NULL,
  PRIMARY KEY (source, provider, id)
) STRICT;`

/** How the last reading of a source went; times in epoch milliseconds. */
export interface SourceRow {
  readonly id: string
  readonly kind: string
  /** Empty for a source that names the provider of each model itself. */
  readonly provider: string
  readonly refreshed_at: number
  readonly succeeded_at: number | null
  readonly error: string | null
}

/** What one source says of one model. */
export interface ModelRow {
  readonly source: string
  readonly provider: string
  readonly facts: CuratedModel
}

/** What sources said last; a source that fails keeps what it said before. */
export class ModelTable {
  constructor(private readonly db: Db) {}

  sources(): readonly SourceRow[] {
    return this.db.all<SourceRow>('SELECT * FROM models_source ORDER BY id')
  }

  models(provider?: string): readonly ModelRow[] {
    const where = provider === undefined ? '' : 'WHERE provider = ?'
    const params = provider === undefined ? [] : [provider]
    const rows = this.db.all<{ source: string; provider: string; facts: string }>(
      `SELECT source, provider, facts FROM models_model ${where} ORDER BY provider, id`,
      params,
    )
    return rows.map(row => ({ ...row, facts: JSON.parse(row.facts) }))
  }

  succeeded(source: Pick<SourceRow, 'id' | 'kind' | 'provider'>, models: readonly ModelRow[], at: number) {
    return this.db.tx(t => {
      this.#write(t, { ...source, refreshed_at: at, succeeded_at: at, error: null })
      t.run('DELETE FROM models_model WHERE source = ?', [source.id])
      for (const { provider, facts } of models)
        t.run('INSERT OR REPLACE INTO models_model (source, provider, id, facts) VALUES (?, ?, ?, ?)', [
          source.id,
          provider,
          facts.id,
          JSON.stringify(facts),
        ])
    })
  }

  failed(source: Pick<SourceRow, 'id' | 'kind' | 'provider'>, error: string, at: number) {
    return this.db.tx(t => {
      const before = this.db.get<SourceRow>('SELECT * FROM models_source WHERE id = ?', [source.id])
      this.#write(t, { ...source, refreshed_at: at, succeeded_at: before?.succeeded_at ?? null, error })
    })
  }

  /** Forgets a source that there is no longer, with what it said. */
  forget(id: string) {
    return this.db.tx(t => {
      t.run('DELETE FROM models_source WHERE id = ?', [id])
      t.run('DELETE FROM models_model WHERE source = ?', [id])
    })
  }

  #write(t: Tx, { id, kind, provider, refreshed_at, succeeded_at, error }: SourceRow): void {
    t.run(
      `INSERT OR REPLACE INTO models_source (id, kind, provider, refreshed_at, succeeded_at, error)
         VALUES (?, ?, ?, ?, ?, ?)`,
      [id, kind, provider, refreshed_at, succeeded_at, error],
    )
  }
}
