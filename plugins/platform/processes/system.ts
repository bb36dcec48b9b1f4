import { type Clock, systemClock } from '../../../kernel/plugin.js'
import { inspectProcess, type ProcessDetails, type Processes, type ProcessInfo, walkProcesses } from './inspect.js'

/** The operating system for the spawner. Other parts of this folder receive it and make no system calls themselves. */
export interface ProcessSystem {
  /** Pid of this process. */
  readonly self: number
  /** The current state of one process. */
  inspect(pid: number): ProcessInfo | undefined
  /** All processes. Calls within 10 ms share one snapshot, which yields to the event loop. */
  snapshot(): Promise<Processes>
  /** All processes, the newest first, each passed on at the moment it was read. */
  walk(visit: (proc: ProcessDetails) => void): Promise<Processes>
  /** Signals a process, or with a negative number a group; 0 only tests. False when there is none any more. */
  signal(target: number, signal: NodeJS.Signals | 0): boolean
}

/** Milliseconds in which calls share one snapshot of all processes: hundreds may end at once. */
const lookMs = 10

/** The machine that this process runs on. */
export function hostSystem(): ProcessSystem {
  const { pid: self, platform } = process
  const walk: ProcessSystem['walk'] = visit => walkProcesses(platform, visit)
  return {
    self,
    inspect: pid => inspectProcess(pid, platform),
    snapshot: shared(() => walk(() => {}), systemClock()),
    walk,
    signal(target, name) {
      // 0 is our own group, -1 all processes, 1 the system's first process.
      if (!Number.isInteger(target) || Math.abs(target) <= 1) throw new RangeError(`never signals ${target}`)
      try {
        return process.kill(target, name)
      } catch (error) {
        return (error as NodeJS.ErrnoException).code === 'EPERM'
      }
    },
  }
}

/** Shares one snapshot among all calls until it begins. */
function shared(snapshot: () => Promise<Processes>, clock: Clock): () => Promise<Processes> {
  let next: Promise<Processes> | undefined
  return () => {
    next ??= clock.sleep(lookMs).then(() => {
      next = undefined
      return snapshot()
    })
    return next
  }
}
