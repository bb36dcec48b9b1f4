import type { FailureKind } from '../acp/api.js'
import type { SessionState, StopReason } from './api.js'

/**
 * All transitions of a session. Only a restart leaves `stopped`, and only after a {@link RESTARTABLE} stop. An active session may
 * have no process: none is started before the first prompt.
 */
export const TRANSITIONS: { readonly [S in SessionState]: readonly SessionState[] } = {
  starting: ['active', 'stopped'],
  active: ['stopping'],
  stopping: ['stopped'],
  stopped: ['starting'],
}

/** Stops without a request: a prompt restarts such a session. */
export const RESTARTABLE: ReadonlySet<StopReason> = new Set<StopReason>(['shutdown', 'agent_crashed'])

/** Failures before the process became an agent: nothing is lost, and a person can fix the cause. */
const NOT_STARTED: ReadonlySet<unknown> = new Set<FailureKind>(['startup_failure', 'handshake_failure'])

/** The state at the end of `path`; throws when a step is not in the table. */
export function walk(from: SessionState, ...path: readonly SessionState[]): SessionState {
  let state = from
  for (const next of path) {
    if (!TRANSITIONS[state].includes(next)) throw new Error(`a session cannot change from ${state} to ${next}`)
    state = next
  }
  return state
}

/** The path from a state to `stopped`; empty when it is already there. */
export function wayToStopped(from: SessionState): readonly SessionState[] {
  switch (from) {
    case 'active':
      return ['stopping', 'stopped']
    case 'starting':
    case 'stopping':
      return ['stopped']
    case 'stopped':
      return []
  }
}

/** Whether the daemon may restart a stopped session by itself when there is work for it. */
export function isRestartable(state: SessionState, reason: StopReason | undefined): boolean {
  return state === 'stopped' && reason !== undefined && RESTARTABLE.has(reason)
}

/** Whether a person's prompt may restart the session; this includes a session whose agent could not be started. */
export function mayRetry({ state, stop_reason, failure_kind }: Stopped): boolean {
  if (isRestartable(state, stop_reason ?? undefined)) return true
  return state === 'stopped' && stop_reason === 'error' && NOT_STARTED.has(failure_kind)
}

/** Whether a turn may begin: the session is active, or a prompt restarts it. */
export const canBegin = (row: Stopped) => row.state === 'active' || mayRetry(row)

/** The state of a session for people. */
export const stateText = ({ state, stop_reason }: Pick<Stopped, 'state' | 'stop_reason'>) =>
  `this session is ${state}${stop_reason ? ` (${stop_reason})` : ''}`

interface Stopped {
  readonly state: SessionState
  readonly stop_reason: StopReason | null
  readonly failure_kind: string | null
}
