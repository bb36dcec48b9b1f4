import type { BridgeStatus, StateReport } from '../api.js'

/** Status of an instance, with why it is so where something is wrong. */
export type Standing =
  | { readonly status: 'disabled' | 'starting' | 'ready' }
  | {
      readonly status: 'degraded' | 'auth_required' | 'error'
      readonly reason?: StateReport['reason'] | undefined
      readonly message?: string | undefined
    }

/**
 * Where a status leads. `disabled` means the same as not enabled: enabling leads to `starting`, disabling to `disabled`, and an adapter
 * reports the others. The same status again is no transition.
 */
export const TRANSITIONS: Readonly<Record<BridgeStatus, readonly BridgeStatus[]>> = {
  disabled: ['starting'],
  starting: ['ready', 'degraded', 'auth_required', 'error', 'disabled'],
  ready: ['starting', 'degraded', 'auth_required', 'error', 'disabled'],
  degraded: ['starting', 'ready', 'auth_required', 'error', 'disabled'],
  // A new secret begins a new start: only that shows whether the platform takes it.
  auth_required: ['starting', 'error', 'disabled'],
  error: ['starting', 'disabled'],
}

/** Whether an instance may get from one status to another, or stay where it is. */
export const leadsTo = (from: BridgeStatus, to: BridgeStatus): boolean => from === to || TRANSITIONS[from].includes(to)
