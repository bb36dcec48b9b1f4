import type { StoredRecord } from '../../kernel/plugin.js'
import { type Workspace, WorkspaceErrors } from './api.js'

/** Members as a body gave them, checked; `null` asks for the default name. */
export interface Members {
  readonly name: string | null | undefined
  readonly addDirs: readonly string[] | undefined
  readonly defaultAgent: string | undefined
  readonly sandboxRef: string | undefined
}

/** Those that were given, but for the default name, which is not known yet. */
export const withoutAbsent = ({ name, addDirs, defaultAgent, sandboxRef }: Members): Partial<Workspace> => ({
  ...(name ? { name } : {}),
  ...(addDirs ? { addDirs } : {}),
  ...(defaultAgent === undefined ? {} : { defaultAgent }),
  ...(sandboxRef === undefined ? {} : { sandboxRef }),
})

/** What events tell of a workspace. */
export const payloadOf = ({ id, name, rootDir }: Workspace) => ({ id, name, root_dir: rootDir })

/** 409: an activation owns a record of the scope. */
export function inUse(workspace: Workspace, record: StoredRecord) {
  return WorkspaceErrors.workspace_in_use(
    `the workspace ${workspace.name} holds ${record.kind} ${record.id} of the activation ${record.owner.id}`,
    { next: `svc resource get ${record.owner.kind} ${record.owner.id}` },
  )
}
