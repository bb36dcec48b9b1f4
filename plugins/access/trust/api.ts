import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors, token } from '../../../kernel/plugin.js'
import type { WorkspaceTrust } from '../../../schemas/workspaces/trust.js'
import type { Workspace } from '../../desk/workspaces/api.js'

/** Whether files of workspaces may run code. Somebody else may have written them: a cloned repository brings its own. */
export interface TrustApi {
  /** Of the files as they are now. @throws Fault `trust_unreadable` */
  of(workspace: Workspace): Promise<WorkspaceTrust>
  /** Trusted as it is now, or without any file that could run code. Never throws: what cannot be read is not trusted. */
  allows(workspace: Workspace): Promise<boolean>
  /** Does work that writes files of the workspace on behalf of the operator: trust that there was before is kept. */
  keeping<T>(workspace: Workspace, work: () => Promise<T>): Promise<T>
}

export const Trust = token<TrustApi>('trust@1')

export const TrustErrors = defineErrors({
  trust_changed: {
    status: 409,
    message: 'the files of this workspace are others by now; look at them again',
    next: command('workspace trust', placeholder('workspace')),
  },
  trust_unreadable: {
    status: 422,
    message: 'the files of this workspace cannot be read, so it cannot be trusted',
  },
})
