/** The data of the watchdog thread. */
export interface WatchdogData {
  /** {@link SLOTS} integers of 32 bits, at the indexes below. */
  readonly beats: SharedArrayBuffer
  readonly home: string
  /** Node arguments that start a successor; absent in the foreground, where a person starts it. */
  readonly successor?: readonly string[]
  /** The log file for the output of the successor. */
  readonly log: string
}

/** Asks the main thread for a beat, at this time of {@link monotonicMs}. */
export interface Ask {
  readonly askedAt: number
}

/** Milliseconds of the clock that all threads share; each thread counts `performance.now()` from its own start. */
export const monotonicMs = () => Number(process.hrtime.bigint() / 1_000_000n)

/** Incremented when the event loop of the main thread answers the watchdog. */
export const BEATS = 0
/** 1 after a stop request. */
export const STOPPING = 1
/** Longest delay of an answer since the last sample, in milliseconds. */
export const DELAY = 2
/** Megabytes of the heap of the main thread. */
export const HEAP = 3
/** Active handles of the main thread: files, sockets, timers. */
export const HANDLES = 4
/** Requests that were refused for their size. */
export const OVERSIZE = 5
export const SLOTS = 6
