import { closeSync, constants, fstatSync, readdirSync, renameSync, writeSync } from 'node:fs'
import { openRegularFileSync } from '../../kernel/kit/read-file.js'
import {
  type LivenessSample,
  livenessFile,
  MOST_LIVENESS_BYTES,
  olderFile,
} from '../../plugins/desk/support/liveness-file.js'
import { DELAY, HANDLES, HEAP, OVERSIZE } from './watchdog-data.js'

/** Milliseconds between two samples, and samples per write: an idle daemon writes once a minute. */
const EVERY_MS = 10_000
const AT_ONCE = 6
/** A longer delay is written immediately, because the process may be ended soon. */
const LONG_MS = 1000
const MB = 1024 * 1024

/**
 * Samples of the process for `liveness.json` of support bundles, kept in two files of bounded size. The watchdog thread takes them
 * with its tick, so that a blocked main thread is recorded as well.
 */
export class Liveness {
  readonly #file: string
  #waiting: string[] = []
  #sinceMs = 0

  constructor(
    home: string,
    private readonly shared: Int32Array,
  ) {
    this.#file = livenessFile(home)
  }

  /** Takes a sample when one is due. @param ms time since the last call; @param heldMs time for which the main thread has been blocked */
  tick(ms: number, heldMs: number): void {
    this.#sinceMs += ms
    if (this.#sinceMs < EVERY_MS) return
    this.#sinceMs -= EVERY_MS
    this.sample(heldMs)
  }

  /** Takes a sample now. */
  sample(heldMs: number): void {
    const { shared } = this
    const delay = Math.max(Atomics.exchange(shared, DELAY, 0), Math.round(heldMs))
    const descriptors = descriptorsOf()
    const sample: LivenessSample = {
      t: new Date().toISOString(),
      delay_ms: delay,
      rss_mb: Math.round(process.memoryUsage.rss() / MB),
      heap_mb: Atomics.load(shared, HEAP),
      handles: Atomics.load(shared, HANDLES),
      ...(descriptors === undefined ? {} : { descriptors }),
      oversize: Atomics.load(shared, OVERSIZE),
    }
    this.#waiting.push(`${JSON.stringify(sample)}\n`)
    if (this.#waiting.length >= AT_ONCE || delay >= LONG_MS) this.flush()
  }

  /** Writes the pending samples. Without disk space or permission they are dropped, because the daemon must not fail for them. */
  flush(): void {
    const text = this.#waiting.join('')
    this.#waiting = []
    if (text === '') return
    try {
      const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT
      const handle = openRegularFileSync(this.#file, { flags, links: 'refuse' })
      let size: number
      try {
        writeSync(handle, text)
        size = fstatSync(handle).size
      } finally {
        closeSync(handle)
      }
      if (size >= MOST_LIVENESS_BYTES) renameSync(this.#file, olderFile(this.#file))
    } catch {}
  }
}

function descriptorsOf(): number | undefined {
  try {
    return readdirSync('/proc/self/fd').length
  } catch {
    return undefined
  }
}
