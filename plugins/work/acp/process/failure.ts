/** Reason of a failure of an agent. */
export type FailureKind =
  | 'startup_failure'
  | 'handshake_failure'
  | 'load_session_failure'
  | 'protocol_failure'
  | 'prompt_failure'
  | 'cancellation'
  | 'permission_failure'
  | 'process_exit'
  | 'transport_failure'
  | 'timeout'
  | 'unknown_failure'

/** The end of stderr, and the last lines on stdout that were not messages. */
export interface LastWords {
  readonly stderr: string
  readonly junk: readonly string[]
}

/** Command and environment of a process. */
export interface StartedWith {
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

/** Reason for which an agent process cannot be used, or can no longer be used. */
export class AgentFailure extends Error {
  override readonly name = 'AgentFailure'
  /** Last output of the process, once it is gone. */
  lastWords: LastWords = { stderr: '', junk: [] }

  /** Set when the process failed before the connection was established. */
  startedWith: StartedWith | undefined

  /** The agent reported that it needs a login. */
  wantsLogin = false

  constructor(
    readonly kind: FailureKind,
    message: string,
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause })
  }

  /** The failure with a hint for people at its end. */
  withHint(hint: string | undefined): AgentFailure {
    if (hint === undefined) return this
    const hinted = new AgentFailure(this.kind, `${this.message}; ${hint}`, this)
    hinted.lastWords = this.lastWords
    hinted.wantsLogin = this.wantsLogin
    return hinted
  }
}

/** Failures that end the process, as opposed to errors that a live process reports. */
const PROCESS_FAILURES: ReadonlySet<FailureKind> = new Set<FailureKind>([
  'process_exit',
  'protocol_failure',
  'transport_failure',
  'startup_failure',
  'handshake_failure',
])

/** Whether the process itself failed, so that no more output comes from it. */
export function isProcessFailure({ kind }: { readonly kind: FailureKind }): boolean {
  return PROCESS_FAILURES.has(kind)
}
