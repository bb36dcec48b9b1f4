import type { FailureKind } from '../api.js'

/** The end of stderr, and the last lines on stdout that were no messages. */
export interface LastWords {
  readonly stderr: string
  readonly junk: readonly string[]
}

/** What a process was started with. */
export interface StartedWith {
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

/** Why an agent process cannot be used, or no longer. */
export class AgentFailure extends Error {
  override readonly name = 'AgentFailure'
  /** What the process said last, when it is gone. */
  lastWords: LastWords = { stderr: '', junk: [] }

  /** Of a process that failed before it was connected. */
  startedWith: StartedWith | undefined

  /** The agent said that nobody is logged in. */
  wantsLogin = false

  constructor(
    readonly kind: FailureKind,
    message: string,
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause })
  }
}
