import { column, type RowOf, table } from '../../../../kernel/kit/table.js'
export const loginTable = `CREATE TABLE mcp_login (
  binding TEXT PRIMARY KEY,
  server TEXT NOT NULL,
  workspace_id TEXT,
  secrets TEXT NOT NULL,
  issuer TEXT NOT NULL,
  metadata TEXT NOT NULL,
  client TEXT NOT NULL,
  resource TEXT,
  scopes TEXT NOT NULL,
  expires_at INTEGER,
  refreshable INTEGER NOT NULL,
  problem TEXT,
  updated_at INTEGER NOT NULL
) STRICT`

const { text, integer, time } = column

/** A login to a server, one a server; its secrets are in the vault. Times in epoch milliseconds. */
export const logins = table('mcp_login', {
  /** Of the server's declaration and the place that has it: another one is not logged in. */
  binding: text(),
  server: text(),
  workspace_id: text().nullable(),
  /** Below which its secrets lie: `vault:mcp/…/oauth/<part of the binding>`. */
  secrets: text(),
  issuer: text(),
  /** Of the authorization server, as it was when somebody logged in. */
  metadata: text(),
  /** Client id and how it proves itself, without its secret. */
  client: text(),
  resource: text().nullable(),
  scopes: text(),
  expires_at: time().nullable(),
  /** 0 or 1. */
  refreshable: integer(),
  /** Why the token counts no more, a reason code. */
  problem: text().nullable(),
  updated_at: time(),
})
export type LoginRow = RowOf<typeof logins>
