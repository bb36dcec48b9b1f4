import { type Actor, type Party, type Tx, token } from '../../../kernel/plugin.js'
import type {
  CallOptions,
  Consent,
  ControlLaunch,
  ControlProcess,
  ExtensionStorage,
  InstalledExtension,
  LogRing,
} from '../extensions/api.js'

/** State of an extension's process at the last check. */
export interface RuntimeHealth {
  readonly health: 'unknown' | 'healthy' | 'unhealthy'
  /** Why it is not healthy, for people. */
  readonly message?: string
  readonly pid?: number
  /** Epoch milliseconds of the start of the running process. */
  readonly startedAt?: number
  /** Failures in a row; a successful health check resets it. */
  readonly consecutiveFailures: number
  /** Milliseconds until the restart; 0 if none is scheduled. */
  readonly restartBackoffMs: number
  /** Whether it failed too often and is not restarted. */
  readonly disabled: boolean
  /** Whether it is stopped because no plugin needs its provisions. */
  readonly deferred: boolean
}

/** The process of an extension, outside the daemon; each loaded extension with `[subprocess]` has one. */
export interface ExtensionRuntime {
  /** Resolves when the process is ready; rejects if it does not get ready. Later failures are in {@link health}. */
  start(): Promise<void>
  /**
   * Stops the process and its children; resolves when they are gone. Also valid before or during a start.
   * @param options `deadlineMs`: milliseconds until the rest is killed
   */
  stop(options?: { readonly deadlineMs?: number }): Promise<void>
  /** Calls a service method of the process. @throws Fault `extension_not_running`, `extension_method_missing`, `extension_call_failed` */
  call(method: string, params: unknown, options?: CallOptions): Promise<unknown>
  /** Whether the process runs and implements the method. */
  implements(method: string): boolean
  /**
   * Starts or stops the process according to its current need; rejects if it does not get ready, and the start is
   * retried.
   */
  reconsider(): Promise<void>
  /** Restarts the process, unless it is not needed or was stopped. */
  restart(): Promise<void>
  /** Starts a process for a single piece of work, see `ExtensionsApi.control`. */
  control<T>(launch: ControlLaunch, work: (process: ControlProcess) => Promise<T>, signal: AbortSignal): Promise<T>
  health(): RuntimeHealth
  /** Calls the listener on every later change of {@link health}; returns a function that unsubscribes. */
  onChange(listener: () => void): () => void
}

/** Properties of one instance of an extension. */
export interface RuntimeContext {
  /** Log for its output and events. */
  readonly logs: LogRing
  readonly storage: ExtensionStorage
  /** References that the operator bound to secret variables, which override the manifest. */
  readonly bound?: () => Readonly<Record<string, string>>
  /** The operator's consents to a marketplace extension. */
  readonly consents?: () => readonly Consent[]
  /** Whether its process runs in a sandbox. */
  readonly confined?: () => boolean
}

export interface SubprocessHostApi {
  /** Creates the process of an extension with `[subprocess]`; one that is linked to a workspace publishes only there. */
  runtimeOf(extension: InstalledExtension, context: RuntimeContext): ExtensionRuntime
  /** Whether the process has to run now: one of its provisions is needed, or it has none. */
  isNeeded(extension: InstalledExtension): boolean
  /** Deletes the records of a source, of kinds granted to the actor, and deactivates its publisher; guards may refuse. */
  reset(t: Tx, actor: Actor, source: Party): void
}

export const SubprocessHost = token<SubprocessHostApi>('subprocess-host@1')
