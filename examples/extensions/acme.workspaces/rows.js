/** What is read of a row of `workspaces_workspace`. */
export const COLUMNS = 'id, name, root_dir, add_dirs, default_agent, sandbox_ref, identity, created_at, updated_at'

/** A row as the workspace that others see. */
export const fromRow = row => ({
  id: row.id,
  name: row.name,
  rootDir: row.root_dir,
  addDirs: JSON.parse(row.add_dirs),
  defaultAgent: row.default_agent,
  sandboxRef: row.sandbox_ref,
  identity: row.identity,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
})
