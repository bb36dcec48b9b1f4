/** What the thread of the watchdog is given. */
export interface WatchdogData {
  /** Two integers of 32 bits: {@link BEATS} and {@link STOPPING}. */
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
