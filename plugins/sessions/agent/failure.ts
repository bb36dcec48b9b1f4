import type { FailureKind } from '../api.js'

/** The end of stderr, and the last lines on stdout that were no messages. */
export interface LastWords {
  readonly stderr: string
  readonly junk: readonly string[]
}

/** Why an agent process cannot be used, or no longer. */
export class AgentFailure extends Error {
  override readonly name = 'AgentFailure'
  /** What the process said last, when it is gone. */
  lastWords: LastWords = { stderr: '', junk: [] }

  constructor(
    readonly kind: FailureKind,
    message: string,
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause })
  }
}
