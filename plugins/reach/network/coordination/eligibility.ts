import type { EligibilityReason } from '../../../../schemas/network/coordination.js'

/** Facts that decide whether a person is invited to enable coordination. */
export interface Situation {
  readonly isEnabled: boolean
  readonly isDismissed: boolean
  readonly isAvailable: boolean
  readonly run?: { readonly isActive: boolean; readonly isCoordinator: boolean; readonly workers: number } | undefined
}

const FEWEST_WORKERS = 2

/** Reasons against it, in order of evaluation. */
const REASONS: readonly (readonly [EligibilityReason, (situation: Situation) => boolean])[] = [
  ['already_enabled', ({ isEnabled }) => isEnabled],
  ['invitation_dismissed', ({ isDismissed }) => isDismissed],
  ['network_unavailable', ({ isAvailable }) => !isAvailable],
  ['run_required', ({ run }) => run === undefined],
  ['run_inactive', ({ run }) => run?.isActive === false],
  ['coordinator_required', ({ run }) => run?.isCoordinator === false],
  ['workers_required', ({ run }) => (run?.workers ?? 0) < FEWEST_WORKERS],
]

/** The first matching reason; `eligible` if there is none. */
export const eligibilityOf = (situation: Situation): EligibilityReason =>
  REASONS.find(([, holds]) => holds(situation))?.[0] ?? 'eligible'
