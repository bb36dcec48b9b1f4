/** A value or its promise. */
export type Awaitable<T> = T | Promise<T>

/** A pending timer; cancelling one that has fired, or twice, does nothing. */
export interface Timer {
  cancel(): void
}

/** Time as the kernel and plugins see it: the system's, or in tests one that stands still until it is advanced. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** Milliseconds since some fixed point, never going back: for durations. */
  monotonic(): number
  /**
   * Runs `fn` once, `ms` milliseconds from now or later, never earlier and never at once; any length, also Infinity.
   * @param options `unref`: this timer does not keep the process alive
   */
  timeout(ms: number, fn: () => void, options?: { readonly unref?: boolean }): Timer
  /** Resolves after `ms` milliseconds; rejects with the signal's reason when it aborts before. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** A time in milliseconds since 1970 as it goes over the wire: UTC, with milliseconds and `Z`. Throws RangeError. */
export function iso(ms: number): string {
  return new Date(ms).toISOString()
}

/** Chance as the kernel and plugins see it: the system's, or in tests a sequence that a seed decides. */
export interface Ids {
  /** `bytes` random bytes (1 to 1024) in lower case hexadecimal. */
  hex(bytes: number): string
  /** A new identifier: the prefix, `_` and 16 hexadecimal digits. */
  id(prefix: string): string
  /** A UUID of version 4. */
  uuid(): string
  /** A number from 0 up to but not 1, for jitter and sampling; never for secrets. */
  random(): number
}

/** What must be released when its plugin goes: an abort signal and a labelled stack, released in reverse. */
export interface Scope {
  readonly owner: string
  /** Aborted as the first step of the release. */
  readonly signal: AbortSignal
  /**
   * Hangs a release on the scope; returns a function that runs it early. Throws when the scope is released already.
   * @param deadlineMs how long the release may take until the next one begins; default 5 s
   */
  defer(label: string, release: () => unknown, deadlineMs?: number): () => Promise<void>
  /** Labels of what is held now, oldest first. */
  held(): string[]
}
