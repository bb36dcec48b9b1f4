import type { RestartStatus } from '../../../schemas/daemon/restart.js'

/** Where each status may go. Nothing leads out of `ready` and `failed`. */
export const transitions: Readonly<Record<RestartStatus, readonly RestartStatus[]>> = {
  pending: ['stopping', 'failed'],
  stopping: ['waiting_release', 'failed'],
  waiting_release: ['starting', 'failed'],
  starting: ['ready', 'failed'],
  ready: [],
  failed: [],
}

/** Whether an operation in this status is still under way. */
export const isOpen = (status: RestartStatus): boolean => transitions[status].length > 0

/** Every status on the way from one to another, the last one included; undefined where no way leads there. */
export function wayTo(from: RestartStatus, to: RestartStatus): readonly RestartStatus[] | undefined {
  if (transitions[from].includes(to)) return [to]
  for (const next of transitions[from]) {
    const rest = wayTo(next, to)
    if (rest) return [next, ...rest]
  }
  return undefined
}
