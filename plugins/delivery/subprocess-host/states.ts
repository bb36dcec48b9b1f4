/** State of an extension's process. Times are milliseconds of the clock's `now`. */
export type SupervisionState =
  | { readonly status: 'stopped' }
  /** No plugin needs its provisions. */
  | { readonly status: 'deferred' }
  | { readonly status: 'starting' }
  /** The handshake is done; no health check has succeeded yet. */
  | { readonly status: 'ready' }
  | { readonly status: 'healthy' }
  | { readonly status: 'unhealthy'; readonly reason: string }
  /** It failed, and its remaining processes are being stopped. */
  | { readonly status: 'ending'; readonly reason: string }
  | { readonly status: 'waiting'; readonly reason: string; readonly until: number }
  /** It failed too often in a row and is not restarted automatically. */
  | { readonly status: 'given_up'; readonly reason: string }
  | { readonly status: 'stopping' }

export type SupervisionStatus = SupervisionState['status']
export type SupervisionEvent =
  | 'start'
  | 'defer'
  | 'shaken'
  | 'well'
  | 'unwell'
  | 'fail'
  | 'wait'
  | 'give_up'
  | 'stop'
  | 'ended'

const running = { well: 'healthy', unwell: 'unhealthy', fail: 'ending', stop: 'stopping' } as const

/** Transitions of each state; an event that is not listed is invalid there. */
export const transitions: {
  readonly [S in SupervisionStatus]: { readonly [E in SupervisionEvent]?: SupervisionStatus }
} = {
  stopped: { start: 'starting', defer: 'deferred' },
  deferred: { start: 'starting', stop: 'stopping' },
  starting: { shaken: 'ready', fail: 'ending', stop: 'stopping' },
  ready: running,
  healthy: running,
  unhealthy: running,
  ending: { wait: 'waiting', give_up: 'given_up', stop: 'stopping' },
  waiting: { start: 'starting', stop: 'stopping' },
  given_up: { stop: 'stopping' },
  stopping: { ended: 'stopped' },
}

/** The next state. @throws Error for an invalid transition */
export function after(status: SupervisionStatus, event: SupervisionEvent): SupervisionStatus {
  const next = transitions[status][event]
  if (next === undefined) throw new Error(`a process that is ${status} cannot ${event}`)
  return next
}

/** Failures in a row after which a process is given up. */
export const MAX_FAILURES = 5
const FIRST_BACKOFF_MS = 1000
const MAX_BACKOFF_MS = 60_000

/** Back-off in milliseconds after the n-th failure in a row, n from 1. */
export const backoffMs = (failures: number) => Math.min(FIRST_BACKOFF_MS * 2 ** (failures - 1), MAX_BACKOFF_MS)
