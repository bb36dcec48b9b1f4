import { setTimeout as sleep } from 'node:timers/promises'
import type { Kernel } from '../../../kernel/index.js'
import { pick } from '../../show/cells.js'
import type { DaemonLog } from '../daemon-log.js'
import type { ServiceManager } from './manager.js'

const LOOK_MS = 500
/** Extension of the stop timeout at each check: many times the pause between two checks. */
const EXTEND_MS = 30_000

/**
 * Before a stop by the service manager, such as a reboot: refuses new work and waits until no session has a running turn, up to a
 * time limit or a second stop request.
 */
export async function waitForTurns(
  kernel: Kernel,
  manager: ServiceManager,
  ms: number,
  again: AbortSignal,
  log: DaemonLog,
): Promise<void> {
  if (ms === 0) return
  const ending = new AbortController()
  // An unresponsive daemon also ends the wait.
  const over = sleep(ms, undefined, { signal: AbortSignal.any([again, ending.signal]) }).catch(() => {})
  let isOver = false
  void over.then(() => {
    isOver = true
  })
  try {
    await Promise.race([kernel.inject({ method: 'POST', url: '/api/drain' }), over])
    let lastCount = -1
    for (;;) {
      const turns = await Promise.race([turnsOf(kernel), over])
      if (turns === 0) return
      if (turns === undefined || isOver) {
        const newest = turns ?? lastCount
        const which = newest < 0 ? 'the daemon does not say whether turns run' : inTheMiddle(newest)
        log({ level: 'warn', msg: which })
        return
      }
      if (turns !== lastCount)
        log({ level: 'info', msg: `the stop waits for running turns (${turns}), at most ${ms / 1000} s` })
      lastCount = turns
      manager.extend(EXTEND_MS, `stops: waits for running turns (${turns})`)
      await Promise.race([sleep(LOOK_MS), over])
    }
  } finally {
    ending.abort()
  }
}

const inTheMiddle = (turns: number): string => `sessions stopped in the middle of a turn: ${turns}`

/** Sessions with a working turn, without those that wait for an answer, possibly for days. */
async function turnsOf(kernel: Kernel): Promise<number> {
  const { status, body } = await kernel.inject({ method: 'GET', url: '/api/status' })
  const running = status === 200 ? pick(JSON.parse(body), 'sessions.by_badge.running') : undefined
  return typeof running === 'number' ? running : 0
}
