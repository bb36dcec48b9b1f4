import { defineErrors } from '../contract/errors.js'
import type { SecretOptions, SecretSink, SecretSource } from '../contract/redact.js'

/** Minimum bytes of a hidden value, by default and with the option `short`. */
const SHORTEST = 8
const SHORTEST_OF_ALL = 4
/** Maximum bytes of a value. */
const LONGEST = 64 * 1024

/** Errors of values that cannot be hidden. */
export const RedactionErrors = defineErrors({
  secret_too_short: {
    status: 422,
    message: `a value of fewer than ${SHORTEST} bytes can occur in ordinary text; redacting it would make logs unreadable`,
    next: `use a longer value, or register it with { short: true }, from ${SHORTEST_OF_ALL} bytes on`,
  },
  secret_too_long: {
    status: 422,
    message: `a value has at most ${LONGEST / 1024} KiB`,
    next: 'register the part of it that is secret',
  },
})

/**
 * The value to hide: trimmed, because programs add and remove surrounding white space.
 * @throws Fault `secret_too_short`, `secret_too_long`; their texts do not contain the value
 */
export function checkedSecret(value: string, { short = false }: SecretOptions = {}): string {
  const bytes = Buffer.byteLength(value)
  if (bytes > LONGEST) throw RedactionErrors.secret_too_long()
  const trimmed = value.trim()
  const length = trimmed.length === value.length ? bytes : Buffer.byteLength(trimmed)
  if (length < (short ? SHORTEST_OF_ALL : SHORTEST)) throw RedactionErrors.secret_too_short()
  return trimmed
}

interface Held {
  readonly value: string
  readonly options: SecretOptions
}

/** Values that a plugin hides: the entry `secrets: [service => service.hidden]` of its surface has them replaced in output. */
export class SecretSet implements SecretSource {
  readonly #held = new Set<Held>()
  readonly #followers = new Map<SecretSink, Map<Held, () => void>>()

  get size(): number {
    return this.#held.size
  }

  /**
   * Hides a value until the returned function is called. The value is hidden when this returns: store it afterwards, and call the
   * function after it was deleted. The same value may be hidden several times.
   * @throws Fault `secret_too_short`, `secret_too_long`
   */
  hide(value: string, options: SecretOptions = {}): () => void {
    checkedSecret(value, options)
    const held = { value, options }
    this.#held.add(held)
    for (const [sink, stops] of this.#followers) stops.set(held, sink(value, options))
    return () => {
      this.#held.delete(held)
      for (const stops of this.#followers.values()) {
        stops.get(held)?.()
        stops.delete(held)
      }
    }
  }

  follow(sink: SecretSink): () => void {
    const stops = new Map([...this.#held].map(held => [held, sink(held.value, held.options)]))
    this.#followers.set(sink, stops)
    return () => {
      this.#followers.delete(sink)
      for (const stop of stops.values()) stop()
    }
  }
}
