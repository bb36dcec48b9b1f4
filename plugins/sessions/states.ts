import type { SessionState, StopReason } from './api.js'

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

/** May a prompt start this session again. */
export function isRestartable(state: SessionState, reason: StopReason | undefined): boolean {
  return state === 'stopped' && reason !== undefined && RESTARTABLE.has(reason)
}
