import { Fault } from './contract/errors.js'
import type { Redact, RedactedStream, Redactor, SecretSource } from './contract/redact.js'
import type { Registry } from './hooks/index.js'
import { clip } from './kit/text.js'

interface Followed {
  readonly redactors: Registry<Redactor>
  readonly sources: Registry<SecretSource>
}

/** Passes output to the redactor of a plugin. Before there is one, and without one, output is unchanged. */
export class Redaction implements Redact {
  /** The latest redactor, which stays in use while its plugin is reloaded. */
  #redactor: Redactor | undefined
  #followed: Followed | undefined
  #changes = 0

  /** Sets the registries of redactors and secrets. */
  attend(followed: Followed): void {
    this.#followed = followed
  }

  /** Keeps the current secrets for the rest of the shutdown: errors are still reported after their plugins are gone. */
  keep(): void {
    this.#current()
    this.#followed = undefined
  }

  text(text: string, max = Number.POSITIVE_INFINITY): string {
    return this.#current()?.text(text, max) ?? clip(text, max)
  }

  value<T>(value: T, kept?: (name: string) => boolean): T {
    const redactor = this.#current()
    return redactor ? redactor.value(value, kept) : value
  }

  stream(): RedactedStream {
    return this.#current()?.stream() ?? { push: piece => piece, end: () => '', held: 0 }
  }

  /** A fault without secrets, for its caller; code and status stay. */
  fault(fault: Fault): Fault {
    const texts = { message: fault.message, details: fault.details ?? {}, next: fault.next }
    const clean = this.value(texts)
    if (clean === texts) return fault
    const { message, details, next } = clean
    const { code, status, retryAfter, cause } = fault
    return new Fault(code, status, message, { details, next, retryAfter, cause })
  }

  /** The redactor, updated with the sources that came or went since the last text: a new registration holds for the next one. */
  #current(): Redactor | undefined {
    const { redactors, sources } = this.#followed ?? {}
    if (redactors && sources && redactors.changes + sources.changes !== this.#changes) {
      this.#changes = redactors.changes + sources.changes
      this.#redactor = redactors.collect()[0]?.entry ?? this.#redactor
      this.#redactor?.follow(sources.collect())
    }
    return this.#redactor
  }
}
