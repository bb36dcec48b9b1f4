import { url as inspectorUrl } from 'node:inspector'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Culprit } from './watchdog-thread.js'

const beatMs = 1000

/** What the thread of the watchdog is given. */
export interface WatchdogData {
  readonly beats: SharedArrayBuffer
  readonly home: string
  /** Arguments of Node that start the daemon anew; absent in the foreground, where a person does it. */
  readonly successor?: readonly string[]
  /** The log, for what the successor prints. */
  readonly log: string
}

/** Told when the main thread goes on after it was held for seconds, and by whom it was. */
export type Blocked = (culprit: Culprit, seconds: number) => void

/**
 * A thread that ends the process when the main thread does not come back to its loop for five seconds, and leaves the name
 * of who holds it to the next start. Nothing is watched under a debugger, which stops the thread itself.
 */
export function startWatchdog(root: string, data: Omit<WatchdogData, 'beats'>, blocked: Blocked): void {
  if (inspectorUrl() !== undefined) return
  const beats = new SharedArrayBuffer(4)
  const count = new Int32Array(beats)
  setInterval(() => Atomics.add(count, 0, 1), beatMs).unref()
  const name = import.meta.url.endsWith('.ts') ? 'watchdog-thread.ts' : 'watchdog-thread.cjs'
  const thread = new Worker(join(root, name), {
    workerData: { ...data, beats } satisfies WatchdogData,
    resourceLimits: { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2 },
  })
  thread.on('message', ({ culprit, seconds }: { culprit: Culprit; seconds: number }) => blocked(culprit, seconds))
  // Without a watchdog the daemon is as good as before.
  thread.on('error', () => {})
  thread.unref()
}
