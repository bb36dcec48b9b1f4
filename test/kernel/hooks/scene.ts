import type { Report, Tapper } from '../../../kernel/contract/hook.js'
import { OwnedScope } from '../../../kernel/scope.js'
import { VirtualClock } from '../../../testing/virtual-clock.js'

/** A clock, what was reported, and tappers; a tapper of the same name has a scope of its own, as after a reload. */
export function scene() {
  const clock = new VirtualClock()
  const reports: string[] = []
  const report: Report = ({ owner, hook, error }) => reports.push(`${owner} ${hook}: ${(error as Error).message}`)
  const guarding = (deadlineMs = 5000) => ({ report, clock, deadlineMs })
  const tapper = (owner: string, depth = 0): Tapper & { scope: OwnedScope } => ({
    owner,
    depth,
    scope: new OwnedScope(owner, clock),
  })
  return { clock, reports, report, guarding, tapper }
}

export const forever = () => new Promise<never>(() => {})

/** Whether it has ended, once every promise that can has. */
export async function hasEnded(work: Promise<unknown>): Promise<boolean> {
  let over = false
  const end = () => {
    over = true
  }
  work.then(end, end)
  await new Promise(setImmediate)
  return over
}
