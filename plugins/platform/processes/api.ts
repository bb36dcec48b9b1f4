import type { Readable, Writable } from 'node:stream'
import { token } from '../../../kernel/plugin.js'

export { inspectProcess, type ProcessInfo } from './inspect.js'
export { boundedStream } from './output/bounded-output.js'
export { keep, OutputEnd, OutputStart } from './output/kept-output.js'
export { type LineReader, readLines } from './output/lines.js'
export { isWithheld, WITHHELD, withoutWithheld } from './withheld.js'

/** How a process ended: one of the two is null. */
export interface ProcessExit {
  readonly code: number | null
  readonly signal: string | null
}

/** A process that the spawner started, and the group that it leads. */
export interface ProcessHandle {
  readonly pid: number
  /** `<boot id>:<ticks since boot>` on Linux, a date elsewhere: with the pid, this names one process for good. */
  readonly startTime: string
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  /** The leader's end. Others of its group may live on, and may hold its output open. */
  readonly exited: Promise<ProcessExit>
  /** The leader has not ended. */
  readonly alive: boolean
  /**
   * Ends the process group: closes stdin, waits `graceMs` (2000), sends SIGTERM, waits `termMs` (3000), sends
   * SIGKILL. Also when the leader has ended and others of its group have not. Then ends what they started in groups of
   * their own (Linux): SIGTERM, after half a second SIGKILL. Resolves when none is left; rejects with `process_not_ended`
   * when some resist for 5 s more, and can be called again then.
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
  /** For whom that plugin starts it, if not for itself: whose faults it makes, and whom work on its output is attributed to. */
  readonly onBehalfOf?: string
  /** What it is, for people. */
  readonly label: string
  /** Command and arguments; never goes through a shell. The command is looked up on the PATH of `env`. */
  readonly argv: readonly string[]
  /** An existing folder. */
  readonly cwd: string
  /** All of its environment, but `SVC_HOME_ID` and `SVC_PROCESS_ID`, and where only a shell can mark it also `PWD`. */
  readonly env: Readonly<Record<string, string>>
  readonly stdio: 'pipe'
}

/**
 * Who is at the other end of a local connection:
 * - `outside`: no process that this daemon started, nor one that descends from such a one
 * - `started`: one that was started by the plugin `owner`, or for such a one
 * - `left`: one of this home, of which nobody knows any more for whom it was started
 * - `gone`: the process that connected has ended, and handed its connection to another
 * - `untold`: this system, or this installation, does not tell
 */
export type Caller =
  | { readonly status: 'outside' | 'left' | 'gone' }
  | { readonly status: 'started'; readonly owner: string; readonly label: string }
  | { readonly status: 'untold'; readonly why: string }

/** Starts processes for one plugin. */
export interface ProcessesApi {
  /**
   * Starts a process that ends with the plugin that asked for it, and with the daemon: what is left after kill -9 is ended by
   * the next start. It leads a group of its own.
   * @throws SpawnError `command_not_found`, `spawn_failed`
   */
  spawn(request: SpawnRequest): Promise<ProcessHandle>
  /**
   * Whose process made a connection, whatever it has done to its environment, its group and its parents. Known is a descendant by
   * the mark that each inherits, by the cgroup of the home, by its environment and by its parents; only what gives all four up is
   * not. Asked once a connection.
   * @param connection the `net.Socket` of this side
   */
  callerOf(connection: object): Promise<Caller>
}

export const Processes = token<ProcessesApi>('processes@1')
