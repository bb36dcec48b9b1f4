import { Fault } from './contract/errors.js'
import type { Redact, RedactedStream, Redactor, SecretSource } from './contract/redact.js'
import type { Registry } from './hooks/index.js'
import { clip } from './kit/text.js'

interface Followed {
  readonly redactors: Registry<Redactor>
  readonly sources: Registry<SecretSource>
}

/** Has a plugin replace registered values in what leaves. Before there is one, and without one, texts leave as they are. */
export class Redaction implements Redact {
  /** The last one that there was: while its plugin is reloaded it goes on. */
  #redactor: Redactor | undefined
  #followed: Followed | undefined
  #seen = 0

  /** From now on values are registered. */
  attend(followed: Followed): void {
    this.#followed = followed
  }

  /** From now on nothing is forgotten: what fails in a shutdown is told when its plugin is gone. */
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

  /** A fault as its caller may see it: the same code and status. */
  fault(fault: Fault): Fault {
    const told = { message: fault.message, details: fault.details ?? {}, next: fault.next }
    const clean = this.value(told)
    if (clean === told) return fault
    const { message, details, next } = clean
    const { code, status, retryAfter, cause } = fault
    return new Fault(code, status, message, { details, next, retryAfter, cause })
  }

  /** Tells the redactor who came and who went since the last text: a registration holds for the next one. */
  #current(): Redactor | undefined {
    const { redactors, sources } = this.#followed ?? {}
    if (redactors && sources && redactors.changes + sources.changes !== this.#seen) {
      this.#seen = redactors.changes + sources.changes
      this.#redactor = redactors.collect()[0]?.entry ?? this.#redactor
      this.#redactor?.follow(sources.collect())
    }
    return this.#redactor
  }
}
