import * as v from 'valibot'
import type { Contribution } from './hook.js'
import { registry } from './token.js'

/** How a value is hidden. */
export interface SecretOptions {
  /** Shown in its place, `[redacted:name]`; without one that is `[redacted]`. */
  readonly name?: string
  /** Also a value of 4 to 7 bytes, whatever ordinary text it occurs in. */
  readonly short?: boolean
}

/** Where the values of a {@link SecretSource} are hidden; to be called again when one is a secret no more. */
export type SecretSink = (value: string, options?: SecretOptions) => () => void

/** Values that come and go, `SecretSet` of `svc/kit` for one. */
export interface SecretSource {
  /**
   * Hands the sink every value there is now, and later ones before anything else learns them, until the returned function is
   * called.
   */
  follow(sink: SecretSink): () => void
}

/** Does the replacing for the whole daemon; a plugin contributes it to {@link Redactors}. */
export interface Redactor extends Redact {
  /** The sources that there are now, whenever others came or went. */
  follow(sources: readonly Contribution<SecretSource>[]): void
}

/**
 * What replaces registered values in all that leaves; the first entry counts. A throw is the plugin's fault: it replaces
 * nothing.
 */
export const Redactors = registry<Redactor>(
  'redactors@1',
  v.looseObject({ text: v.function(), value: v.function(), stream: v.function(), follow: v.function() }),
)

/** Replaces registered values in what leaves the daemon. While there are none, everything is handed back as it came. */
export interface Redact {
  /** At most `max` characters of a text. It is cut afterwards, for half a value is not found. */
  text(text: string, max?: number): string
  /**
   * The strings and names of members of plain data, at any depth; the same object where nothing changed. What programs read
   * stays as long as it is an ordinary word of letters: names of members, and the values of `id`, `*_id`, `kind`, `type`,
   * `status`, `state`, `code`, `level`, or of those that `kept` chooses.
   */
  value<T>(value: T, kept?: (name: string) => boolean): T
  /** For a text that comes in pieces: values that are split between them are found. */
  stream(): RedactedStream
}

/** One text that comes in pieces. */
export interface RedactedStream {
  /** What can be told by now: all but the longest end that a value may begin with. */
  push(piece: string): string
  /** What was held back. The next piece begins another text. */
  end(): string
  /** Characters that are held back. */
  readonly held: number
}
