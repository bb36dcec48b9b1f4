import { column, type RowOf, table } from '../../../kernel/kit/table.js'
import type { Migration } from '../../../kernel/plugin.js'

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

const { flag, json, text, time } = column

/** Registered workspaces. */
export const workspaces = table('workspaces_workspace', {
  id: text(),
  name: text(),
  root_dir: text().as('rootDir'),
  add_dirs: json<readonly string[]>().as('addDirs'),
  default_agent: text().as('defaultAgent'),
  sandbox_ref: text().as('sandboxRef'),
  /** ULID of the identity file; empty if the file could not be written. */
  identity: text(),
  /** Whether a person registered it. A folder that a command registered for itself does not enclose other folders. */
  chosen: flag().as('isChosen'),
  created_at: time().as('createdAt'),
  updated_at: time().as('updatedAt'),
})

/** A workspace as it is stored. */
export type StoredWorkspace = RowOf<typeof workspaces>
