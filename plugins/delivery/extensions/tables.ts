import * as v from 'valibot'
import { column, table } from '../../../kernel/kit/table.js'
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

export const flags = table('extensions_flag', { name: text(), enabled: flag(), updated_at: time() })
export const started = table('extensions_started', { name: text(), hash: text(), kinds: json(v.array(v.string())) })
export const startedVersions = table('extensions_started_version', { name: text(), version: text() })
export const bindings = table('extensions_binding', {
  name: text(),
  workspace: text(),
  env_name: text(),
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

export class StartedTable {
  constructor(private readonly db: Db) {}

  get(name: string): Started | undefined {
    const row = started.get(this.db, { name })
    const version = startedVersions.get(this.db, { name })?.version
    return row && { ...row, ...(version !== undefined && { version }) }
  }

  /** Hashes of the kept copies. */
  hashes(): string[] {
    return started.query(this.db, "WHERE hash <> ''").map(({ hash }) => hash)
  }

  put(t: Tx, name: string, { hash, kinds, version }: Started): void {
    started.replace(t, { name, hash, kinds: [...kinds] })
    if (version !== undefined) startedVersions.replace(t, { name, version })
  }

  delete(t: Tx, name: string): void {
    started.delete(t, { name })
    startedVersions.delete(t, { name })
  }
}

/** Enabled flags of extensions. Without a stored flag, an extension is enabled. */
export class FlagTable {
  constructor(private readonly db: Db) {}

  enabled(key: string): boolean {
    return flags.get(this.db, { name: key })?.enabled ?? true
  }

  set(t: Tx, key: string, enabled: boolean, at: number): void {
    flags.replace(t, { name: key, enabled, updated_at: at })
  }

  delete(t: Tx, key: string): void {
    flags.delete(t, { name: key })
  }
}

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

/** Source of a declared variable's value, for an installed extension or a link; never the value itself. */
export interface Binding {
  readonly env_name: string
  /** `vault:…` or `env:NAME`. */
  readonly reference: string
  readonly mcp_server: string
  readonly header_name: string
}

export class BindingTable {
  constructor(private readonly db: Db) {}

  /** @param workspace of a link, `*` for a link to all; empty for the installed extension */
  list(name: string, workspace: string): Binding[] {
    return bindings.all(this.db, { name, workspace }, 'ORDER BY env_name')
  }

  put(t: Tx, name: string, workspace: string, binding: Binding): void {
    bindings.replace(t, { name, workspace, ...binding })
  }

  /** Deletes all bindings of an extension. */
  clear(t: Tx, name: string): void {
    bindings.delete(t, { name })
  }

  /** Returns whether the binding existed. */
  delete(t: Tx, name: string, workspace: string, envName: string): boolean {
    return bindings.delete(t, { name, workspace, env_name: envName }) > 0
  }
}
