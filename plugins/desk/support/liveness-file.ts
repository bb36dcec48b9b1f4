import path from 'node:path'

/** Most bytes of the file of samples. A full file replaces {@link olderFile}. */
export const MOST_LIVENESS_BYTES = 256 * 1024

/** A measurement of the process, without any content of its work. */
export interface LivenessSample {
  readonly t: string
  /** Longest block of the event loop since the last sample, in milliseconds. */
  readonly delay_ms: number
  readonly rss_mb: number
  readonly heap_mb: number
  /** Open files, sockets and timers of the event loop. */
  readonly handles: number
  /** Open file descriptors of the process; absent if the system does not report them. */
  readonly descriptors?: number
  /** Messages and bodies refused as too large since the start. */
  readonly oversize?: number
}

export const livenessFile = (home: string): string => path.join(home, 'logs', 'liveness.jsonl')
export const olderFile = (file: string): string => `${file}.1`
