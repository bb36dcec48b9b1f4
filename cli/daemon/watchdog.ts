import { url as inspectorUrl } from 'node:inspector'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Env } from '../address.js'
import type { Culprit } from '../watchdog-thread.js'
import { BEATS, STOPPING, type WatchdogData } from './watchdog-data.js'

const beatMs = 1000

/** Told when the main thread goes on after it was held for seconds, and by whom it was. */
export type Blocked = (culprit: Culprit, seconds: number) => void

/** What the thread is told later. */
export interface Watchdog {
  /** The daemon was told to stop: should it be ended on the way, none follows it. */
  stopping(): void
}

/**
 * A thread that ends the process when the main thread does not come back to its loop for five seconds, those not counted in
 * which it waits for a processor, and leaves the name of who holds it to the next start. Nothing is watched under a debugger, which stops the thread itself.
 * @param env environment of the daemon that it starts in the place of one that it ended
 */
export function startWatchdog(
  root: string,
  data: Omit<WatchdogData, 'beats'>,
  blocked: Blocked,
  env: Env = process.env,
): Watchdog {
  const beats = new SharedArrayBuffer(8)
  const shared = new Int32Array(beats)
  const watchdog = { stopping: () => void Atomics.store(shared, STOPPING, 1) }
  if (inspectorUrl() !== undefined) return watchdog
  setInterval(() => Atomics.add(shared, BEATS, 1), beatMs).unref()
  const name = import.meta.url.endsWith('.ts') ? 'watchdog-thread.ts' : 'watchdog-thread.cjs'
  const thread = new Worker(join(root, name), {
    env: { ...env },
    workerData: { ...data, beats } satisfies WatchdogData,
    resourceLimits: { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2 },
  })
  thread.on('message', ({ culprit, seconds }: { culprit: Culprit; seconds: number }) => blocked(culprit, seconds))
  // Without a watchdog the daemon is as good as before.
  thread.on('error', () => {})
  thread.unref()
  return watchdog
}
