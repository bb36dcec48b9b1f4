import path from 'node:path'

/** Bytes of the file of samples; a full one becomes {@link olderFile}, in place of the one before. */
export const MOST_LIVENESS_BYTES = 256 * 1024

/** A look at the process, without anything of what it works on. */
export interface LivenessSample {
  readonly t: string
  /** The longest time since the last sample in which the event loop did not turn, in milliseconds. */
  readonly delay_ms: number
  readonly rss_mb: number
  readonly heap_mb: number
  /** Open files, sockets and timers of the event loop. */
  readonly handles: number
  /** Open descriptors of the process; absent where the system does not tell. */
  readonly descriptors?: number
  /** Messages and bodies that were refused for their size since the start. */
  readonly oversize?: number
}

export const livenessFile = (home: string): string => path.join(home, 'logs', 'liveness.jsonl')
export const olderFile = (file: string): string => `${file}.1`
