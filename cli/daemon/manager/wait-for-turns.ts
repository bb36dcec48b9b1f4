import { setTimeout as sleep } from 'node:timers/promises'
import type { Kernel } from '../../../kernel/index.js'
import { pick } from '../../show/cells.js'
import type { DaemonLog } from '../daemon-log.js'
import type { ServiceManager } from './manager.js'

const LOOK_MS = 500
/** By how much each look extends the time that the manager gives the stop: many times the pause between two. */
const EXTEND_MS = 30_000

/**
 * Before a stop that the service manager asked for, such as a reboot: admits no new work and waits until no turn of a session runs, at
 * most so many milliseconds, or until it is told to stop once more.
 */
export async function waitForTurns(
  kernel: Kernel,
  manager: ServiceManager,
  ms: number,
  again: AbortSignal,
  log: DaemonLog,
): Promise<void> {
  if (ms === 0) return
  await kernel.inject({ method: 'POST', url: '/api/drain' })
  const until = performance.now() + ms
  let told = -1
  for (;;) {
    const turns = await turnsOf(kernel)
    if (turns === 0 || again.aborted || performance.now() >= until) {
      if (turns > 0) log({ level: 'warn', msg: `${turns} sessions are stopped in the middle of a turn` })
      return
    }
    if (turns !== told) log({ level: 'info', msg: `the stop waits for ${turns} sessions, at most ${ms / 1000} s` })
    told = turns
    manager.extend(EXTEND_MS, `stops: waits for the turns of ${turns} sessions`)
    await sleep(LOOK_MS, undefined, { signal: again }).catch(() => {})
  }
}

/** Sessions in a turn that does something; those that wait for an answer could wait for days. */
async function turnsOf(kernel: Kernel): Promise<number> {
  const { status, body } = await kernel.inject({ method: 'GET', url: '/api/status' })
  const running = status === 200 ? pick(JSON.parse(body), 'sessions.by_badge.running') : undefined
  return typeof running === 'number' ? running : 0
}
