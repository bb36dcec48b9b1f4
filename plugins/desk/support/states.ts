import type { SupportStatus } from '../../../schemas/daemon/support.js'

/** Where each status of an operation may go. Nothing leads out of `completed` and `failed`. */
export const transitions: Readonly<Record<SupportStatus, readonly SupportStatus[]>> = {
  pending: ['running', 'failed'],
  running: ['completed', 'failed'],
  completed: [],
  failed: [],
}

/** Whether an operation in this status has ended. */
export const hasEnded = (status: SupportStatus): boolean => transitions[status].length === 0
