import * as v from 'valibot'
import { column, table } from '../../../kernel/kit/table.js'
import type { Db, Migration, Reads, Tx } from '../../../kernel/plugin.js'

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

/** Migration for the code that started last, per installed extension. */
export const startedMigration: Migration = {
  id: 'started',
  sql: `CREATE TABLE extensions_started (
    name TEXT NOT NULL PRIMARY KEY, hash TEXT NOT NULL, kinds TEXT NOT NULL
  ) STRICT;`,
}

/**
 * Version of that code. It has its own table because earlier versions of the daemon write rows of the other one without
 * it.
 */
export const startedVersionMigration: Migration = {
  id: 'started-version',
  sql: 'CREATE TABLE extensions_started_version (name TEXT NOT NULL PRIMARY KEY, version TEXT NOT NULL) STRICT',
}

/** Values stored by extensions. */
export const stateMigration: Migration = {
  id: 'state',
  sql: `CREATE TABLE extensions_state (
    extension TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, bytes INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    PRIMARY KEY (extension, key)
  ) STRICT;`,
}

const { flag, json, text, time } = column

/** Enabled flags of extensions and links, by key. */
export const flags = table('extensions_flag', { name: text(), enabled: flag(), updated_at: time() })
export const started = table('extensions_started', { name: text(), hash: text(), kinds: json(v.array(v.string())) })
export const startedVersions = table('extensions_started_version', { name: text(), version: text() })
/** Sources of variables; `workspace` is that of a link, `*` for a link to all, empty for the installed extension. */
export const bindings = table('extensions_binding', {
  name: text(),
  workspace: text(),
  env_name: text(),
  /** `vault:…` or `env:NAME`, never the value itself. */
  reference: text(),
  mcp_server: text(),
  header_name: text(),
})

/** Code of an installed extension that has started. */
export interface Started {
  /** Hash of its copy; empty once that was removed. */
  readonly hash: string
  /** Kinds declared by this or an earlier version of the code. */
  readonly kinds: readonly string[]
  /** Absent if noted by a daemon that did not store versions. */
  readonly version?: string
}

/** Whether an extension is on: without a stored flag it is. */
export const isEnabled = (db: Reads, key: string): boolean => flags.get(db, { name: key })?.enabled ?? true

/** A developer's working folder that runs as an extension in one workspace or all. */
export interface DevLink {
  readonly name: string
  /** Id; empty for all. */
  readonly workspace: string
  /** Absolute. */
  readonly origin: string
  /** SHA-256 given by the builder. */
  readonly generation: string
  /** Digest of the network requirement that its developer last agreed to; empty: none. */
  readonly agreed: string
}

export class DevTable {
  constructor(private readonly db: Db) {}

  /** Oldest first. */
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
