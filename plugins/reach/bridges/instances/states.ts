import type { BridgeStatus, StateReport } from '../api.js'

/** Status of an instance, with the reason if something is wrong. */
export type Standing =
  | { readonly status: 'disabled' | 'starting' | 'ready' }
  | {
      readonly status: 'degraded' | 'auth_required' | 'error'
      readonly reason?: StateReport['reason'] | undefined
      readonly message?: string | undefined
    }

/**
 * Allowed status changes. `disabled` means not enabled: enabling leads to `starting`, disabling to `disabled`; an
 * adapter reports the others. Reporting the same status again is not a transition.
 */
export const TRANSITIONS: Readonly<Record<BridgeStatus, readonly BridgeStatus[]>> = {
  disabled: ['starting'],
  starting: ['ready', 'degraded', 'auth_required', 'error', 'disabled'],
  ready: ['starting', 'degraded', 'auth_required', 'error', 'disabled'],
  degraded: ['starting', 'ready', 'auth_required', 'error', 'disabled'],
  // A new secret causes a restart: only that shows whether the platform accepts it.
  auth_required: ['starting', 'error', 'disabled'],
  error: ['starting', 'disabled'],
}

/** Whether an instance may change from one status to another, or keep it. */
export const leadsTo = (from: BridgeStatus, to: BridgeStatus): boolean => from === to || TRANSITIONS[from].includes(to)
