import * as v from 'valibot'
import type { Contribution } from './hook.js'
import { registry } from './token.js'

/** How a value is hidden. */
export interface SecretOptions {
  /** Name in its replacement, `[redacted:name]`; without it that is `[redacted]`. */
  readonly name?: string
  /** Hides a value of 4 to 7 bytes too, although it may occur in ordinary text. */
  readonly short?: boolean
}

/** Registers a value to be hidden; the returned function ends that when the value is no longer a secret. */
export type SecretSink = (value: string, options?: SecretOptions) => () => void

/** Secret values that come and go, such as a `SecretSet` of `svc/kit`. */
export interface SecretSource {
  /**
   * Passes every current value to the sink, and later ones before anything else learns them, until the returned function is called.
   */
  follow(sink: SecretSink): () => void
}

/** Replaces secrets for the whole daemon; a plugin contributes it to {@link Redactors}. */
export interface Redactor extends Redact {
  /** Receives all current sources, after each change of them. */
  follow(sources: readonly Contribution<SecretSource>[]): void
}

/** Registry of the redactor; the first entry counts. A throw is reported as the plugin's fault, and nothing is replaced. */
export const Redactors = registry<Redactor>(
  'redactors@1',
  v.looseObject({ text: v.function(), value: v.function(), stream: v.function(), follow: v.function() }),
)

/** Replaces registered values in the daemon's output. Without any, everything is returned unchanged. */
export interface Redact {
  /** At most `max` characters of a text. It is cut after the replacement, since half a value would not be found. */
  text(text: string, max?: number): string
  /**
   * Replaces values in strings and member names of plain data, at any depth; returns the same object if nothing changed. Ordinary
   * words that programs read stay: names of members, and the values of `id`, `*_id`, `kind`, `type`, `status`, `state`, `code`,
   * `level`, or of the members that `kept` chooses.
   */
  value<T>(value: T, kept?: (name: string) => boolean): T
  /** For a text that arrives in pieces: values that are split between pieces are found. */
  stream(): RedactedStream
}

/** One text that arrives in pieces. */
export interface RedactedStream {
  /** The text that is safe to show: all but the longest end that may be the beginning of a value. */
  push(piece: string): string
  /** Returns the held back text. The next piece begins another text. */
  end(): string
  /** Number of characters that are held back. */
  readonly held: number
}
