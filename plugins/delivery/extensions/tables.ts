import type { Db, Migration, Tx } from '../../../kernel/plugin.js'

export const migrations: readonly Migration[] = [
  {
    id: '001-flag',
    sql: `CREATE TABLE extensions_flag (
      name TEXT NOT NULL PRIMARY KEY, enabled INTEGER NOT NULL, updated_at INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE extensions_dev (
      name TEXT NOT NULL, workspace TEXT NOT NULL, origin TEXT NOT NULL, generation TEXT NOT NULL, linked_at INTEGER NOT NULL,
      PRIMARY KEY (name, workspace)
    ) STRICT;
    CREATE TABLE extensions_binding (
      name TEXT NOT NULL, workspace TEXT NOT NULL, env_name TEXT NOT NULL, reference TEXT NOT NULL,
      mcp_server TEXT NOT NULL, header_name TEXT NOT NULL, PRIMARY KEY (name, workspace, env_name)
    ) STRICT;`,
  },
  {
    id: '002-dev-network',
    sql: `CREATE TABLE extensions_dev_network (
      name TEXT NOT NULL, workspace TEXT NOT NULL, agreed TEXT NOT NULL, PRIMARY KEY (name, workspace)
    ) STRICT;`,
  },
]

/** What started last of the code of each installed extension. */
export const startedMigration: Migration = {
  id: 'started',
  sql: `CREATE TABLE extensions_started (
    name TEXT NOT NULL PRIMARY KEY, hash TEXT NOT NULL, kinds TEXT NOT NULL
  ) STRICT;`,
}

/** Values that the processes of extensions keep. */
export const stateMigration: Migration = {
  id: 'state',
  sql: `CREATE TABLE extensions_state (
    extension TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, bytes INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    PRIMARY KEY (extension, key)
  ) STRICT;`,
}

/** Code of an installed extension that has started. */
export interface Started {
  /** Of its copy; empty once it was removed. */
  readonly hash: string
  /** Kinds that it, or a version before it, has brought. */
  readonly kinds: readonly string[]
}

export class StartedTable {
  constructor(private readonly db: Db) {}

  get(name: string): Started | undefined {
    const row = this.db.get<{ hash: string; kinds: string }>(
      'SELECT hash, kinds FROM extensions_started WHERE name = ?',
      [name],
    )
    return row && { hash: row.hash, kinds: JSON.parse(row.kinds) as string[] }
  }

  /** Of the copies that are kept. */
  hashes(): string[] {
    const rows = this.db.all<{ hash: string }>("SELECT hash FROM extensions_started WHERE hash <> ''")
    return rows.map(({ hash }) => hash)
  }

  put(t: Tx, name: string, { hash, kinds }: Started): void {
    t.run('INSERT OR REPLACE INTO extensions_started VALUES (?, ?, ?)', [name, hash, JSON.stringify(kinds)])
  }

  delete(t: Tx, name: string): void {
    t.run('DELETE FROM extensions_started WHERE name = ?', [name])
  }
}

/** Whether extensions are switched on. One that was never switched is on: it was dropped in to run. */
export class FlagTable {
  constructor(private readonly db: Db) {}

  enabled(key: string): boolean {
    const row = this.db.get<{ enabled: number }>('SELECT enabled FROM extensions_flag WHERE name = ?', [key])
    return row?.enabled !== 0
  }

  set(t: Tx, key: string, enabled: boolean, at: number): void {
    t.run('INSERT OR REPLACE INTO extensions_flag VALUES (?, ?, ?)', [key, enabled ? 1 : 0, at])
  }

  delete(t: Tx, key: string): void {
    t.run('DELETE FROM extensions_flag WHERE name = ?', [key])
  }
}

/** A build in somebody's working folder that runs for one workspace. */
export interface DevLink {
  readonly name: string
  /** Id; empty for all. */
  readonly workspace: string
  /** Absolute. */
  readonly origin: string
  /** SHA-256 that the builder gave. */
  readonly generation: string
  /** Digest of the network requirement that its developer has agreed to last; empty: to none. */
  readonly agreed: string
}

export class DevTable {
  constructor(private readonly db: Db) {}

  /** In the order in which they were made. */
  list(): DevLink[] {
    return this.db.all<DevLink & Record<string, string>>(
      `SELECT name, workspace, origin, generation, ifnull(agreed, '') AS agreed
       FROM extensions_dev LEFT JOIN extensions_dev_network USING (name, workspace) ORDER BY linked_at, name, workspace`,
    )
  }

  put(t: Tx, link: DevLink, at: number): void {
    t.run(
      `INSERT INTO extensions_dev VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (name, workspace) DO UPDATE SET origin = excluded.origin, generation = excluded.generation`,
      [link.name, link.workspace, link.origin, link.generation, at],
    )
    t.run('INSERT OR REPLACE INTO extensions_dev_network VALUES (?, ?, ?)', [link.name, link.workspace, link.agreed])
  }

  delete(t: Tx, { name, workspace }: Pick<DevLink, 'name' | 'workspace'>): void {
    for (const table of ['extensions_dev', 'extensions_dev_network'])
      t.run(`DELETE FROM ${table} WHERE name = ? AND workspace = ?`, [name, workspace])
  }
}

/** Where the value of a declared variable comes from, of what is installed or of a link; never the value itself. */
export interface Binding {
  readonly env_name: string
  /** `vault:…` or `env:NAME`. */
  readonly reference: string
  readonly mcp_server: string
  readonly header_name: string
}

export class BindingTable {
  constructor(private readonly db: Db) {}

  /** @param workspace of a link, `*` of one to all; empty of what is installed */
  list(name: string, workspace: string): Binding[] {
    return this.db.all<Binding & Record<string, string>>(
      `SELECT env_name, reference, mcp_server, header_name FROM extensions_binding
       WHERE name = ? AND workspace = ? ORDER BY env_name`,
      [name, workspace],
    )
  }

  put(t: Tx, name: string, workspace: string, binding: Binding): void {
    t.run('INSERT OR REPLACE INTO extensions_binding VALUES (?, ?, ?, ?, ?, ?)', [
      name,
      workspace,
      binding.env_name,
      binding.reference,
      binding.mcp_server,
      binding.header_name,
    ])
  }

  /** All of an extension. */
  clear(t: Tx, name: string): void {
    t.run('DELETE FROM extensions_binding WHERE name = ?', [name])
  }

  /** Whether there was one. */
  delete(t: Tx, name: string, workspace: string, envName: string): boolean {
    const key = [name, workspace, envName]
    const found = t.get('SELECT 1 FROM extensions_binding WHERE name = ? AND workspace = ? AND env_name = ?', key)
    t.run('DELETE FROM extensions_binding WHERE name = ? AND workspace = ? AND env_name = ?', key)
    return found !== undefined
  }
}
