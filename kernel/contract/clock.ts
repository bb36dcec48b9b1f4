/** A pending timer; cancelling one that has fired, or twice, does nothing. */
export interface Timer {
  cancel(): void
}

export interface TimerOptions {
  /** True: this timer does not keep the process alive. */
  readonly unref?: boolean
}

/** Time as the kernel and plugins see it: the system's, or in tests one that stands still until it is advanced. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** Milliseconds since some fixed point, never going back: for durations. */
  monotonic(): number
  /** Runs `fn` once, `ms` milliseconds from now or later, never earlier and never at once; any length, also Infinity. */
  timeout(ms: number, fn: () => void, options?: TimerOptions): Timer
  /** Resolves after `ms` milliseconds; rejects with the signal's reason when it aborts before. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** A time in milliseconds since 1970 as it goes over the wire: UTC, with milliseconds and `Z`. Throws RangeError. */
export function iso(ms: number): string {
  return new Date(ms).toISOString()
}
