import type { Db, Migration, Tx } from '../../kernel/plugin.js'
import type { Workspace } from './api.js'

export const migrations: readonly Migration[] = [
  {
    id: '001-workspace',
    sql: `CREATE TABLE workspaces_workspace (
      id TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL, root_dir TEXT NOT NULL, add_dirs TEXT NOT NULL,
      default_agent TEXT NOT NULL, sandbox_ref TEXT NOT NULL, identity TEXT NOT NULL,
      created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX workspaces_workspace_name ON workspaces_workspace (name);
    CREATE UNIQUE INDEX workspaces_workspace_root ON workspaces_workspace (root_dir);
    CREATE INDEX workspaces_workspace_identity ON workspaces_workspace (identity);
    CREATE TABLE workspaces_seed (name TEXT NOT NULL PRIMARY KEY, at INTEGER NOT NULL) STRICT;`,
  },
  { id: '002-chosen', sql: 'ALTER TABLE workspaces_workspace ADD COLUMN chosen INTEGER NOT NULL DEFAULT 1' },
]

/** A workspace as it is stored. */
export interface StoredWorkspace extends Workspace {
  /** ULID of its identity file; empty when the file could not be written. */
  readonly identity: string
  /** A person registered it. False: a command registered the folder that it ran in, which therefore encloses no other one. */
  readonly isChosen: boolean
}

type Row = {
  id: string
  name: string
  root_dir: string
  add_dirs: string
  default_agent: string
  sandbox_ref: string
  identity: string
  chosen: number
  created_at: number
  updated_at: number
}

/** The rows of registered workspaces. */
export class WorkspaceTable {
  constructor(private readonly db: Db) {}

  get(id: string): StoredWorkspace | undefined {
    return this.#one('id', id)
  }

  byName(name: string): StoredWorkspace | undefined {
    return this.#one('name', name)
  }

  byRoot(root: string): StoredWorkspace | undefined {
    return this.#one('root_dir', root)
  }

  /** The one whose root is the longest of these folders; with `chosen` only of those that a person registered. */
  nearest(folders: readonly string[], chosen = false): StoredWorkspace | undefined {
    const row = this.db.get<Row>(
      `SELECT * FROM workspaces_workspace WHERE root_dir IN (SELECT value FROM json_each(?)) AND chosen >= ?
       ORDER BY length(root_dir) DESC LIMIT 1`,
      [JSON.stringify(folders), chosen ? 1 : 0],
    )
    return row && fromRow(row)
  }

  byIdentity(identity: string): StoredWorkspace[] {
    return this.db.all<Row>('SELECT * FROM workspaces_workspace WHERE identity = ?', [identity]).map(fromRow)
  }

  /** In order of registration. */
  list(): StoredWorkspace[] {
    return this.db.all<Row>('SELECT * FROM workspaces_workspace ORDER BY created_at, rowid').map(fromRow)
  }

  insert(t: Tx, workspace: StoredWorkspace): void {
    t.run(
      `INSERT INTO workspaces_workspace (id, name, root_dir, add_dirs, default_agent, sandbox_ref, identity, chosen,
         created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      [
        workspace.id,
        workspace.name,
        workspace.rootDir,
        JSON.stringify(workspace.addDirs),
        workspace.defaultAgent,
        workspace.sandboxRef,
        workspace.identity,
        workspace.isChosen ? 1 : 0,
        workspace.createdAt,
        workspace.updatedAt,
      ],
    )
  }

  update(t: Tx, workspace: StoredWorkspace): void {
    t.run(
      `UPDATE workspaces_workspace SET name = ?, root_dir = ?, add_dirs = ?, default_agent = ?, sandbox_ref = ?,
         identity = ?, chosen = ?, updated_at = ? WHERE id = ?`,
      [
        workspace.name,
        workspace.rootDir,
        JSON.stringify(workspace.addDirs),
        workspace.defaultAgent,
        workspace.sandboxRef,
        workspace.identity,
        workspace.isChosen ? 1 : 0,
        workspace.updatedAt,
        workspace.id,
      ],
    )
  }

  delete(t: Tx, id: string): void {
    t.run('DELETE FROM workspaces_workspace WHERE id = ?', [id])
  }

  #one(column: 'id' | 'name' | 'root_dir', value: string): StoredWorkspace | undefined {
    const row = this.db.get<Row>(`SELECT * FROM workspaces_workspace WHERE ${column} = ?`, [value])
    return row && fromRow(row)
  }
}

function fromRow(row: Row): StoredWorkspace {
  return {
    id: row.id,
    name: row.name,
    rootDir: row.root_dir,
    addDirs: JSON.parse(row.add_dirs) as string[],
    defaultAgent: row.default_agent,
    sandboxRef: row.sandbox_ref,
    identity: row.identity,
    isChosen: row.chosen === 1,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}
