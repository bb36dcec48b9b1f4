import { column, type RowOf, table } from '../../../kernel/kit/table.js'
import type { Db } from '../../../kernel/plugin.js'
import type { CuratedModel } from '../../../schemas/settings/entries.js'

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

const { json, text, time } = column

/** Results of the last read of each source. */
export const sourceRows = table('models_source', {
  id: text(),
  kind: text(),
  /** Empty for a source that names the provider of each model. */
  provider: text(),
  refreshed_at: time(),
  succeeded_at: time().nullable(),
  error: text().nullable(),
})
export type SourceRow = RowOf<typeof sourceRows>

/** Facts about one model from one source. */
export const modelRows = table('models_model', {
  source: text(),
  provider: text(),
  id: text(),
  facts: json<CuratedModel>(),
})
export type ModelRow = RowOf<typeof modelRows>

/** Last data of the sources; a failing source keeps its earlier data. */
export class ModelTable {
  constructor(private readonly db: Db) {}

  sources(): readonly SourceRow[] {
    return sourceRows.all(this.db, {}, 'ORDER BY id')
  }

  models(provider?: string): readonly ModelRow[] {
    return modelRows.all(this.db, provider === undefined ? {} : { provider }, 'ORDER BY provider, id')
  }

  succeeded(source: Pick<SourceRow, 'id' | 'kind' | 'provider'>, models: readonly Omit<ModelRow, 'id'>[], at: number) {
    return this.db.tx(t => {
      sourceRows.replace(t, { ...source, refreshed_at: at, succeeded_at: at, error: null })
      modelRows.delete(t, { source: source.id })
      for (const { provider, facts } of models)
        modelRows.replace(t, { source: source.id, provider, id: facts.id, facts })
    })
  }

  failed(source: Pick<SourceRow, 'id' | 'kind' | 'provider'>, error: string, at: number) {
    return this.db.tx(t => {
      const before = sourceRows.get(t, { id: source.id })
      sourceRows.replace(t, { ...source, refreshed_at: at, succeeded_at: before?.succeeded_at ?? null, error })
    })
  }

  /** Deletes a removed source with its data. */
  forget(id: string) {
    return this.db.tx(t => {
      sourceRows.delete(t, { id })
      modelRows.delete(t, { source: id })
    })
  }
}
