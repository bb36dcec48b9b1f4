import { subscribe } from 'node:diagnostics_channel'
import type { ServerResponse } from 'node:http'
import { url as inspectorUrl } from 'node:inspector'
import { join } from 'node:path'
import { getHeapStatistics } from 'node:v8'
import { Worker } from 'node:worker_threads'
import type { Env } from '../address.js'
import type { Culprit } from '../watchdog-thread.js'
import { BEATS, DELAY, HANDLES, HEAP, OVERSIZE, SLOTS, STOPPING, type WatchdogData } from './watchdog-data.js'

const beatMs = 1000
/** Beats from one look at heap and handles to the next. */
const lookBeats = 10

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
  const beats = new SharedArrayBuffer(4 * SLOTS)
  const shared = new Int32Array(beats)
  const watchdog = { stopping: () => void Atomics.store(shared, STOPPING, 1) }
  if (inspectorUrl() !== undefined) return watchdog
  setInterval(beating(shared), beatMs).unref()
  countOversize(shared)
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

/** What the main thread does each second: it says that it is there, and how late it is. */
function beating(shared: Int32Array): () => void {
  let last = performance.now()
  let beats = 0
  return () => {
    const now = performance.now()
    const late = Math.round(now - last - beatMs)
    last = now
    Atomics.add(shared, BEATS, 1)
    if (late > Atomics.load(shared, DELAY)) Atomics.store(shared, DELAY, late)
    if (beats++ % lookBeats !== 0) return
    Atomics.store(shared, HEAP, Math.round(getHeapStatistics().used_heap_size / 1024 / 1024))
    Atomics.store(shared, HANDLES, process.getActiveResourcesInfo().length)
  }
}

/** Bodies that were refused because they are too large, of all listeners of this process. */
function countOversize(shared: Int32Array): void {
  subscribe('http.server.response.finish', message => {
    if ((message as { response: ServerResponse }).response.statusCode === 413) Atomics.add(shared, OVERSIZE, 1)
  })
}
