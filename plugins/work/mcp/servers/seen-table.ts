import { column, type RowOf, table } from '../../../../kernel/kit/table.js'
import type { SourceKind } from '../sources/declaration.js'

/** Servers of files and extensions with a login or secrets of their own. */
export const seenTable = `CREATE TABLE mcp_seen (
  binding TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  workspace_id TEXT,
  agent TEXT,
  extension TEXT,
  secrets TEXT NOT NULL,
  missing_since INTEGER
) STRICT`

const { text, time, json } = column

export const seenServers = table('mcp_seen', {
  binding: text(),
  kind: text<SourceKind>(),
  workspace_id: text().nullable(),
  agent: text().nullable(),
  /** Key of the extension that brings it. */
  extension: text().nullable(),
  /** References of its own secrets. */
  secrets: json<readonly string[]>(),
  missing_since: time().nullable(),
})
export type SeenServer = RowOf<typeof seenServers>
