import type { Actor } from '../../../../kernel/plugin.js'
import type { Decision } from './permission-rules.js'

/** A question of a plugin to a person in a session. */
export interface SessionQuestion {
  /** Unique among all questions. */
  readonly id: string
  /** The kind of operation in one word: `call`. */
  readonly kind: string
  readonly title: string
  /** Epoch milliseconds at which the plugin ends the question. */
  readonly expiresAt: number
  /** Handles the answer of a person and ends the question. If it throws, the person gets the error and the question stays open. */
  readonly decide: (decision: Decision, actor: Actor) => Promise<void>
}

export type QuestionEnd = 'allowed' | 'rejected' | 'expired' | 'withdrawn'

/** A question that is shown in a session. */
export interface AskedQuestion {
  /** False once it was answered or ended, or when its turn is over. */
  isOpen(): boolean
  /** Removes the question and records the reason; does nothing when it is over. */
  end(how: QuestionEnd): void
}
