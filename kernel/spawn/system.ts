import type { ProcessInfo } from './inspect.js'

/** What the operating system does for the spawner; given to this folder's parts, which touch nothing themselves. */
export interface ProcessSystem {
  /** This process. */
  readonly self: number
  inspect(): Map<number, ProcessInfo>
  /** The process was started by a daemon of this home: its environment says so. */
  isMarked(pid: number): boolean
  /** Signals a process, or with a negative number a group; 0 only asks. False when there is none any more. */
  signal(target: number, signal: NodeJS.Signals | 0): boolean
}
