import type { FailureKind, SessionState, StopReason } from './api.js'

/**
 * All transitions of a session. Only a restart leaves `stopped`, and only after a
 * {@link RESTARTABLE} stop. An active session may have no process: none is started before the first prompt.
 */
export const TRANSITIONS: { readonly [S in SessionState]: readonly SessionState[] } = {
  starting: ['active', 'stopped'],
  active: ['stopping'],
  stopping: ['stopped'],
  stopped: ['starting'],
}

/** Stops that were nobody's wish: a prompt starts such a session again. */
export const RESTARTABLE: ReadonlySet<StopReason> = new Set<StopReason>(['shutdown', 'agent_crashed'])

/** Failures of a process that never became an agent: nothing is lost, and a person can mend what kept it from starting. */
const NOT_STARTED: ReadonlySet<unknown> = new Set<FailureKind>(['startup_failure', 'handshake_failure'])

/** The state at the end of `path`; throws when a step of it is not in the table. */
export function walk(from: SessionState, ...path: readonly SessionState[]): SessionState {
  let state = from
  for (const next of path) {
    if (!TRANSITIONS[state].includes(next)) throw new Error(`a session does not go from ${state} to ${next}`)
    state = next
  }
  return state
}

/** The way from a state to `stopped`; empty when it is there. */
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

/** Starts a stopped session by itself whoever has work for it. */
export function isRestartable(state: SessionState, reason: StopReason | undefined): boolean {
  return state === 'stopped' && reason !== undefined && RESTARTABLE.has(reason)
}

/** May a prompt of a person start this session again: also one whose agent could not be started. */
export function mayRetry({ state, stop_reason, failure_kind }: Stopped): boolean {
  if (isRestartable(state, stop_reason ?? undefined)) return true
  return state === 'stopped' && stop_reason === 'error' && NOT_STARTED.has(failure_kind)
}

/** May a turn begin: in a session that is active, or that a prompt starts again. */
export const canBegin = (row: Stopped) => row.state === 'active' || mayRetry(row)

/** What a session is, for people. */
export const stateText = ({ state, stop_reason }: Pick<Stopped, 'state' | 'stop_reason'>) =>
  `this session is ${state}${stop_reason ? ` (${stop_reason})` : ''}`

interface Stopped {
  readonly state: SessionState
  readonly stop_reason: StopReason | null
  readonly failure_kind: string | null
}
