import type { CallOptions, ControlLaunch, ControlProcess } from '../api.js'

/** One line for people, of an extension or about it; secrets are taken out. */
export interface LogEntry {
  /** From 1, without gaps within an epoch. */
  readonly sequence: number
  /** Epoch milliseconds. */
  readonly at: number
  readonly message: string
}

/** How the process of an extension is, as the last look at it found. */
export interface RuntimeHealth {
  readonly health: 'unknown' | 'healthy' | 'unhealthy'
  /** Why it is not healthy, for people. */
  readonly message?: string
  readonly pid?: number
  /** Epoch milliseconds of the start of the process that runs. */
  readonly startedAt?: number
  /** In a row; a health check that succeeds begins anew. */
  readonly consecutiveFailures: number
  /** Milliseconds until it is started again; 0 when nothing waits. */
  readonly restartBackoffMs: number
  /** It failed so often that it is not started again. */
  readonly disabled: boolean
  /** It does not run because nothing that it provides is needed now. */
  readonly deferred: boolean
}

/** The process beside the daemon that an extension asks for; the host has one for each loaded extension with `[subprocess]`. */
export interface ExtensionRuntime {
  /** Resolves when the process is ready; rejects when it does not get so far. What fails later is in {@link health}. */
  start(): Promise<void>
  /**
   * Ends the process and all it started; resolves when it is gone. Also before or during a start.
   * @param options `deadlineMs`: after so many milliseconds what is left is killed
   */
  stop(options?: { readonly deadlineMs?: number }): Promise<void>
  /** Calls a service method of the process. @throws Fault `extension_not_running`, `extension_method_missing`, `extension_call_failed` */
  call(method: string, params: unknown, options?: CallOptions): Promise<unknown>
  /** Whether the process runs and implements the method. */
  implements(method: string): boolean
  /** Starts or ends the process as it is needed now; rejects when it does not get ready, and is tried again. */
  reconsider(): Promise<void>
  /** Ends the process and starts another one, unless it is not needed or was stopped. */
  restart(): Promise<void>
  /** Starts a process for some work alone, see `ExtensionsApi.control`. */
  control<T>(launch: ControlLaunch, work: (process: ControlProcess) => Promise<T>, signal: AbortSignal): Promise<T>
  health(): RuntimeHealth
  /** Told of every later change of {@link health}; returns what ends it. */
  onChange(listener: () => void): () => void
}
