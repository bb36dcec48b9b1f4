/** What the thread of the watchdog is given. */
export interface WatchdogData {
  /** {@link SLOTS} integers of 32 bits, at the places below. */
  readonly beats: SharedArrayBuffer
  readonly home: string
  /** Arguments of Node that start the daemon anew; absent in the foreground, where a person does it. */
  readonly successor?: readonly string[]
  /** The log, for what the successor prints. */
  readonly log: string
}

/** Counts while the main thread comes back to its loop. */
export const BEATS = 0
/** 1 once the daemon was told to stop. */
export const STOPPING = 1
/** Longest time in milliseconds in which the loop did not turn, since it was looked at last. */
export const DELAY = 2
/** Megabytes of the heap of the main thread. */
export const HEAP = 3
/** What keeps the loop of the main thread busy: files, sockets, timers. */
export const HANDLES = 4
/** Requests that were refused for their size. */
export const OVERSIZE = 5
export const SLOTS = 6
