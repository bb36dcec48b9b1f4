import type { WorkState } from '../../../../schemas/network/messages.js'

/** Allowed transitions of work. States without any are final. */
export const WORK_TRANSITIONS: Readonly<Record<WorkState, readonly WorkState[]>> = {
  submitted: ['working', 'needs_input', 'completed', 'failed', 'canceled'],
  working: ['working', 'needs_input', 'completed', 'failed', 'canceled'],
  needs_input: ['working', 'needs_input', 'completed', 'failed', 'canceled'],
  completed: [],
  failed: [],
  canceled: [],
}

export const isClosed = (state: WorkState): boolean => WORK_TRANSITIONS[state].length === 0

/** The state that a receipt from the target leads to. Undefined: no change. */
export const BY_RECEIPT: Readonly<Partial<Record<string, WorkState>>> = { rejected: 'failed', canceled: 'canceled' }
