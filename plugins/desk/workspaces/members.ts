import { command } from '../../../kernel/kit/commands/command-line.js'
import type { StoredRecord } from '../../../kernel/plugin.js'
import type { PatchWorkspaceBody } from '../../../schemas/workspaces.js'
import { type Workspace, WorkspaceErrors } from './api.js'
import { checkLabel, checkName } from './names.js'
import { canonicalDirectories } from './paths.js'

/** Checked members of a body; `null` requests the default name. */
export interface Members {
  readonly name: string | null | undefined
  readonly addDirs: readonly string[] | undefined
  readonly defaultAgent: string | undefined
  readonly sandboxRef: string | undefined
}

/** Checks the members of a body; `rootDir` is canonical. */
export async function membersOf(body: PatchWorkspaceBody, rootDir: string): Promise<Members> {
  const { name, add_dirs, default_agent, sandbox_ref } = body
  return {
    name: typeof name === 'string' ? checkName(name) : name,
    addDirs: add_dirs === undefined ? undefined : await canonicalDirectories(add_dirs ?? [], rootDir),
    defaultAgent: default_agent === undefined ? undefined : checkLabel(default_agent ?? '', 'default_agent'),
    sandboxRef: sandbox_ref === undefined ? undefined : checkLabel(sandbox_ref ?? '', 'sandbox_ref'),
  }
}

/** The given members, except a default name, which is not known yet. */
export const withoutAbsent = ({ name, addDirs, defaultAgent, sandboxRef }: Members): Partial<Workspace> => ({
  ...(name ? { name } : {}),
  ...(addDirs ? { addDirs } : {}),
  ...(defaultAgent === undefined ? {} : { defaultAgent }),
  ...(sandboxRef === undefined ? {} : { sandboxRef }),
})

/** Payload of workspace events. */
export const payloadOf = ({ id, name, rootDir }: Workspace) => ({ id, name, root_dir: rootDir })

/** 409: an activation owns a record of the scope. */
export function inUse(workspace: Workspace, record: StoredRecord) {
  return WorkspaceErrors.workspace_in_use(
    `the workspace ${workspace.name} contains ${record.kind} ${record.id} of the activation ${record.owner.id}`,
    { next: command('resource get', record.owner.kind, record.owner.id) },
  )
}
