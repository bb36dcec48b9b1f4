import type { RestartStatus } from '../../../schemas/daemon/restart.js'

/** The transitions of each status. `ready` and `failed` are final. */
export const transitions: Readonly<Record<RestartStatus, readonly RestartStatus[]>> = {
  pending: ['stopping', 'failed'],
  stopping: ['waiting_release', 'failed'],
  waiting_release: ['starting', 'failed'],
  starting: ['ready', 'failed'],
  ready: [],
  failed: [],
}

/** Whether an operation with this status has not ended. */
export const isOpen = (status: RestartStatus): boolean => transitions[status].length > 0

/** The statuses on the path from one to another, including the last; undefined without a path. */
export function wayTo(from: RestartStatus, to: RestartStatus): readonly RestartStatus[] | undefined {
  if (transitions[from].includes(to)) return [to]
  for (const next of transitions[from]) {
    const rest = wayTo(next, to)
    if (rest) return [next, ...rest]
  }
  return undefined
}
