import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors, token } from '../../../kernel/plugin.js'
import type { WorkspaceTrust } from '../../../schemas/workspaces/trust.js'
import type { Workspace } from '../../desk/workspaces/api.js'

/** Whether files of a workspace may run code. They may be foreign: a cloned repository contains its own. */
export interface TrustApi {
  /** Trust in the current files. @throws Fault `trust_unreadable` */
  of(workspace: Workspace): Promise<WorkspaceTrust>
  /** Whether the current files are trusted or cannot run code. Never throws: unreadable files are not trusted. */
  allows(workspace: Workspace): Promise<boolean>
  /** Runs `work`, which writes files of the workspace on behalf of the operator, and preserves existing trust. */
  keeping<T>(workspace: Workspace, work: () => Promise<T>): Promise<T>
}

export const Trust = token<TrustApi>('trust@1')

export const TrustErrors = defineErrors({
  trust_changed: {
    status: 409,
    message: 'the files of this workspace have changed; review them again',
    next: command('workspace trust', placeholder('workspace')),
  },
  trust_unreadable: {
    status: 422,
    message: 'the files of this workspace cannot be read, so it cannot be trusted',
  },
})
