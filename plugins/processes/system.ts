import type { Processes, ProcessInfo, ProcessSeen } from './inspect.js'

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
