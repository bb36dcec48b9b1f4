import type { FailureKind } from '../api.js'

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
}
