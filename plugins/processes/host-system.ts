import { type Clock, systemClock } from '../../kernel/plugin.js'
import { inspectProcess, type Processes, walkProcesses } from './inspect.js'
import type { ProcessSystem } from './system.js'

/** Milliseconds in which looks at all processes become one: hundreds may end at once. */
const lookMs = 10

/** The machine that this process runs on. */
export function hostSystem(): ProcessSystem {
  const { pid: self, platform } = process
  const walk: ProcessSystem['walk'] = visit => walkProcesses(platform, visit)
  return {
    self,
    inspect: pid => inspectProcess(pid, platform),
    look: shared(() => walk(() => {}), systemClock()),
    walk,
    signal(target, name) {
      // 0 is our own group, -1 everybody, 1 the system's first process.
      if (!Number.isInteger(target) || Math.abs(target) <= 1) throw new RangeError(`never signals ${target}`)
      try {
        return process.kill(target, name)
      } catch (error) {
        return (error as NodeJS.ErrnoException).code === 'EPERM'
      }
    },
  }
}

/** One look for all who ask until it begins. */
function shared(look: () => Promise<Processes>, clock: Clock): () => Promise<Processes> {
  let next: Promise<Processes> | undefined
  return () => {
    next ??= clock.sleep(lookMs).then(() => {
      next = undefined
      return look()
    })
    return next
  }
}
