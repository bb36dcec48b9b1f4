import * as v from 'valibot'
import { type Actor, registry } from '../../../../kernel/plugin.js'
import type { InboxItem } from '../../../../schemas/sessions.js'
import type { Decision } from './permission-rules.js'

/** Something that a plugin asks a person for a session. */
export interface SessionQuestion {
  /** Its own among all questions. */
  readonly id: string
  /** What is to be done, in one word: `call`. */
  readonly kind: string
  readonly title: string
  /** Epoch milliseconds at which whoever asks ends it. */
  readonly expiresAt: number
  /** A person answered. It ends the question; what it throws is the reply to that person, and the question stays. */
  readonly decide: (decision: Decision, actor: Actor) => Promise<void>
}

export type QuestionEnd = 'allowed' | 'rejected' | 'expired' | 'withdrawn'

/** A question that is shown in a session. */
export interface AskedQuestion {
  /** False once it was answered or ended, or when its turn is over. */
  isOpen(): boolean
  /** Takes it away and writes down why; nothing where it is over. */
  end(how: QuestionEnd): void
}

/** Contributes what waits for a person and is in no session's stream. */
export interface InboxSource {
  /** @param most of each kind; undefined: as many as fit on a screen or two */
  readonly read: (most?: number) => readonly InboxItem[]
}

export const InboxSources = registry<InboxSource>('sessions.inbox@1', v.looseObject({ read: v.function() }))
