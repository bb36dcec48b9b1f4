/** Servers of files and of extensions that have a login or secrets of their own. */
export const seenTable = `CREATE TABLE mcp_seen (
  binding TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  workspace_id TEXT,
  agent TEXT,
  extension TEXT,
  secrets TEXT NOT NULL,
  missing_since INTEGER
) STRICT`
