import type { SupportStatus } from '../../../schemas/daemon/support.js'

/** Allowed transitions of an operation's status. `completed` and `failed` are final. */
export const transitions: Readonly<Record<SupportStatus, readonly SupportStatus[]>> = {
  pending: ['running', 'failed'],
  running: ['completed', 'failed'],
  completed: [],
  failed: [],
}

/** Whether an operation in this status has ended. */
export const hasEnded = (status: SupportStatus): boolean => transitions[status].length === 0
