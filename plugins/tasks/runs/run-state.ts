import type { TaskCore } from '../core.js'
import type { RunRow } from './run-row.js'

const MINUTE = 60_000
/** A run that is claimed or starting for so long is stuck, and one that is running; in milliseconds. */
const STUCK_MS = { begun: 5 * MINUTE, running: 30 * MINUTE }

/** Since when a run is in its state, in epoch milliseconds. */
export const sinceOf = (run: RunRow): number =>
  (run.status === 'running' ? run.started_at : run.claimed_at) ?? run.queued_at

/** Somebody holds it, and for longer than work usually takes. */
export function isStuck(run: RunRow, now: number): boolean {
  const isHeld = run.status === 'claimed' || run.status === 'starting' || run.status === 'running'
  return isHeld && now - sinceOf(run) >= (run.status === 'running' ? STUCK_MS.running : STUCK_MS.begun)
}

/** Is there such a session, and does it work? */
export function isLive(core: TaskCore, session: string): boolean {
  const state = core.kernel.needs.sessions.get(session)?.state
  return state === 'active' || state === 'starting'
}
