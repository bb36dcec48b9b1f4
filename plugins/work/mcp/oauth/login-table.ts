import type { Db, Tx } from '../../../../kernel/plugin.js'

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

/** A login to a server; its secrets are in the vault. Times in epoch milliseconds. */
export interface LoginRow {
  /** Of the server's declaration and the place that has it: another one is not logged in. */
  readonly binding: string
  readonly server: string
  readonly workspace_id: string | null
  /** Below which its secrets lie: `vault:mcp/…/oauth/<part of the binding>`. */
  readonly secrets: string
  readonly issuer: string
  /** Of the authorization server, as it was when somebody logged in. */
  readonly metadata: string
  /** Client id and how it proves itself, without its secret. */
  readonly client: string
  readonly resource: string | null
  readonly scopes: string
  readonly expires_at: number | null
  readonly refreshable: number
  /** Why the token counts no more, a reason code. */
  readonly problem: string | null
  readonly updated_at: number
}

/** Logins, one a server. */
export class LoginTable {
  constructor(private readonly db: Db) {}

  get(binding: string): LoginRow | undefined {
    return this.db.get<LoginRow>('SELECT * FROM mcp_login WHERE binding = ?', [binding])
  }

  put(t: Tx, row: LoginRow): void {
    const names = Object.keys(row)
    const values = Object.values(row) as (string | number | null)[]
    const places = names.map(() => '?').join(', ')
    t.run(`INSERT OR REPLACE INTO mcp_login (${names.join(', ')}) VALUES (${places})`, values)
  }

  delete(t: Tx, binding: string): void {
    t.run('DELETE FROM mcp_login WHERE binding = ?', [binding])
  }
}
