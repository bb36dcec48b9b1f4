/** A value or its promise. */
export type Awaitable<T> = T | Promise<T>

/** A pending timer; cancelling one that has fired, or twice, does nothing. */
export interface Timer {
  cancel(): void
}

/** Time for the kernel and plugins: the system's, or in tests a clock that only moves when advanced. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** Milliseconds since some fixed point, never going back: for durations. */
  monotonic(): number
  /**
   * Runs `fn` once after at least `ms` milliseconds, never synchronously; any length, also Infinity.
   * @param options `unref`: this timer does not keep the process alive
   */
  timeout(ms: number, fn: () => void, options?: { readonly unref?: boolean }): Timer
  /** Resolves after `ms` milliseconds; rejects with the signal's reason when it aborts before. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** A time in milliseconds since 1970 in wire format: UTC, with milliseconds and `Z`. Throws RangeError. */
export function iso(ms: number): string {
  return new Date(ms).toISOString()
}

/** Randomness for the kernel and plugins: the system's, or in tests a seeded sequence. */
export interface Ids {
  /** `bytes` random bytes (1 to 1024) in lower case hexadecimal. */
  hex(bytes: number): string
  /** A new identifier: the prefix, `_` and 16 hexadecimal digits. */
  id(prefix: string): string
  /** A UUID of version 4. */
  uuid(): string
  /** A number from 0 (inclusive) to 1 (exclusive), for jitter and sampling; never for secrets. */
  random(): number
}

/** The resources of a plugin, released with it: an abort signal and a labelled stack, released in reverse. */
export interface Scope {
  readonly owner: string
  /** Aborted as the first step of the release. */
  readonly signal: AbortSignal
  /**
   * Adds a release to the scope; returns a function that runs it early. Throws when the scope has been released.
   * @param deadlineMs time for this release before the next one begins; default 5 s
   */
  defer(label: string, release: () => unknown, deadlineMs?: number): () => Promise<void>
  /** Labels of the unreleased resources, oldest first. */
  held(): string[]
}
