import { type Clock, systemClock } from '../../../kernel/plugin.js'
import { inspectProcess, type Processes, type ProcessInfo, type ProcessSeen, walkProcesses } from './inspect.js'

/** What the operating system does for the spawner; given to this folder's parts, which touch nothing themselves. */
export interface ProcessSystem {
  /** This process. */
  readonly self: number
  /** One process as it is now. */
  inspect(pid: number): ProcessInfo | undefined
  /** All processes. One look is for all who ask within 10 ms, and leaves others their turns of the event loop. */
  look(): Promise<Processes>
  /** All processes at once, the newest first, each handed over at the moment it was read. */
  walk(visit: (seen: ProcessSeen) => void): Promise<Processes>
  /** Signals a process, or with a negative number a group; 0 only asks. False when there is none any more. */
  signal(target: number, signal: NodeJS.Signals | 0): boolean
}

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
