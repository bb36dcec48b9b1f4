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

/** Logins, at most one per server; their secrets are in the vault. Times in epoch milliseconds. */
export const logins = table('mcp_login', {
  /** Hash of the declaration and its place: a changed declaration is not logged in. */
  binding: text(),
  server: text(),
  workspace_id: text().nullable(),
  /** Vault folder of its secrets: `vault:mcp/…/oauth/<part of the binding>`. */
  secrets: text(),
  issuer: text(),
  /** Metadata of the authorization server at the time of the login. */
  metadata: text(),
  /** Client id and authentication method, without the secret. */
  client: text(),
  resource: text().nullable(),
  scopes: text(),
  expires_at: time().nullable(),
  /** 0 or 1. */
  refreshable: integer(),
  /** Reason code of an invalid token. */
  problem: text().nullable(),
  updated_at: time(),
})
export type LoginRow = RowOf<typeof logins>
