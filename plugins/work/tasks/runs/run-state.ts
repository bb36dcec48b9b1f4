import { command } from '../../../../kernel/kit/commands/command-line.js'
import { TaskErrors } from '../api.js'
import type { TaskCore } from '../core.js'
import type { RunRow } from './run-row.js'

const MINUTE = 60_000
/** Milliseconds in claimed or starting, and in running, after which a run is stuck. */
const STUCK_MS = { begun: 5 * MINUTE, running: 30 * MINUTE }

/** When the run entered its status, in epoch milliseconds. */
export const sinceOf = (run: RunRow): number =>
  (run.status === 'running' ? run.started_at : run.claimed_at) ?? run.queued_at

/** Whether the run has been active for unusually long. */
export function isStuck(run: RunRow, now: number): boolean {
  const isHeld = run.status === 'claimed' || run.status === 'starting' || run.status === 'running'
  return isHeld && now - sinceOf(run) >= (run.status === 'running' ? STUCK_MS.running : STUCK_MS.begun)
}

/** Whether the session is active or starting. */
export function isLive(core: TaskCore, session: string): boolean {
  const state = core.kernel.needs.sessions.get(session)?.state
  return state === 'active' || state === 'starting'
}

/** Throws `task_run_leased` for a run that a session holds. */
export function unleased(run: RunRow): RunRow {
  if (run.lease_until === null) return run
  const holder = run.session_id === null ? `${run.claimed_by_ref}` : `session ${run.session_id}`
  throw TaskErrors.task_run_leased(
    `run ${run.id} is leased to ${holder}; only the holder can start, complete or fail it`,
    {
      next: command('task run show', run.id),
    },
  )
}
