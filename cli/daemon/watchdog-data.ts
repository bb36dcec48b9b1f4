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

/** Incremented while the event loop of the main thread runs. */
export const BEATS = 0
/** 1 after a stop request. */
export const STOPPING = 1
/** Longest delay of the event loop since the last sample, in milliseconds. */
export const DELAY = 2
/** Megabytes of the heap of the main thread. */
export const HEAP = 3
/** Active handles of the main thread: files, sockets, timers. */
export const HANDLES = 4
/** Requests that were refused for their size. */
export const OVERSIZE = 5
export const SLOTS = 6
