import type { Readable, Writable } from 'node:stream'
import { token } from '../../../kernel/plugin.js'

export { inspectProcess, type ProcessInfo } from './inspect.js'
export { boundedStream } from './output/bounded-output.js'
export { keep, OutputEnd, OutputStart } from './output/kept-output.js'
export { type LineReader, readLines } from './output/lines.js'
export { isWithheld, WITHHELD, withoutWithheld } from './withheld-variables.js'

/** How a process ended: one of the two is null. */
export interface ProcessExit {
  readonly code: number | null
  readonly signal: string | null
}

/** A started process, and the group that it leads. */
export interface ProcessHandle {
  readonly pid: number
  /** `<boot id>:<ticks since boot>` on Linux, a date elsewhere: together with the pid, a unique name of the process. */
  readonly startTime: string
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  /** Resolves when the leader has ended. Others of its group may live on, and may hold its output open. */
  readonly exited: Promise<ProcessExit>
  /** Whether the leader is running. */
  readonly alive: boolean
  /**
   * Ends the process group: closes stdin, waits `graceMs` (2000), sends SIGTERM, waits `termMs` (3000), sends SIGKILL; also when
   * only the leader has ended. Then ends descendants in groups of their own (Linux): SIGTERM, after half a second SIGKILL. Resolves
   * when none is left; rejects with `process_not_ended` when some resist for 5 s more, and can be called again then.
   */
  stop(options?: StopOptions): Promise<void>
  /** Sends SIGKILL to the group now. */
  kill(): void
}

export interface StopOptions {
  /** Milliseconds between the end of stdin and SIGTERM. */
  readonly graceMs?: number
  /** Milliseconds between SIGTERM and SIGKILL. */
  readonly termMs?: number
}

/** A process to start. */
export interface SpawnRequest {
  /**
   * The owner that the plugin starts it for, if not for itself: faults of the process, and work on its output, are attributed to
   * it.
   */
  readonly onBehalfOf?: string
  /** Description for people. */
  readonly label: string
  /** Command and arguments; never goes through a shell. The command is looked up on the PATH of `env`. */
  readonly argv: readonly string[]
  /** An existing folder. */
  readonly cwd: string
  /** Its whole environment, except for `SVC_HOME_ID` and `SVC_PROCESS_ID`, and `PWD` where only a shell can mark it. */
  readonly env: Readonly<Record<string, string>>
  readonly stdio: 'pipe'
}

/**
 * The process at the other end of a local connection:
 * - `outside`: not started by this daemon, nor descended from such a process
 * - `started`: started by the plugin `owner`, or a descendant of such a process
 * - `left`: started for this home, but its owner is no longer known
 * - `gone`: has ended, and passed its connection to another process
 * - `untold`: this system, or this installation, cannot tell
 */
export type Caller =
  | { readonly status: 'outside' | 'left' | 'gone' }
  | { readonly status: 'started'; readonly owner: string; readonly label: string }
  | { readonly status: 'untold'; readonly why: string }

/** Starts processes for one plugin. */
export interface ProcessesApi {
  /**
   * Starts a process that leads a group of its own, and ends with its plugin and with the daemon; after kill -9 the next start of
   * the daemon ends it.
   * @throws SpawnError `command_not_found`, `spawn_failed`
   */
  spawn(request: SpawnRequest): Promise<ProcessHandle>
  /**
   * Finds the process that made a connection, whatever it has done to its environment, its group and its parents. Descendants are
   * recognized by the inherited mark, the home's cgroup, their environment and their parents; only a process that drops all four is
   * not. Call it once per connection.
   * @param connection the `net.Socket` of this side
   */
  callerOf(connection: object): Promise<Caller>
}

export const Processes = token<ProcessesApi>('processes@1')
