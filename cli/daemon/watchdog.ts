import { subscribe } from 'node:diagnostics_channel'
import type { ServerResponse } from 'node:http'
import { url as inspectorUrl } from 'node:inspector'
import { join } from 'node:path'
import { getHeapStatistics } from 'node:v8'
import { Worker } from 'node:worker_threads'
import type { Env } from '../address.js'
import type { Culprit } from '../watchdog-thread.js'
import {
  type Ask,
  BEATS,
  DELAY,
  HANDLES,
  HEAP,
  monotonicMs,
  OVERSIZE,
  SLOTS,
  STOPPING,
  type WatchdogData,
} from './watchdog-data.js'

/** Milliseconds between two measurements of heap and handles. */
const measureMs = 8000

/** Called when the main thread continues after seconds of blocking, with the owner of the blocking code. */
export type Blocked = (culprit: Culprit, seconds: number) => void

/** Notifications to the watchdog thread. */
export interface Watchdog {
  /** The daemon is stopping: if it has to be ended now, no successor is started. */
  stopping(): void
}

/**
 * Starts a thread that ends the process when the event loop of the main thread is blocked for five seconds, without time spent
 * waiting for a CPU, and leaves the owner of the blocking code to the next start. A process under a debugger, which stops threads
 * itself, is not watched.
 * @param env environment of the successor
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
  countOversize(shared)
  const name = import.meta.url.endsWith('.ts') ? 'watchdog-thread.ts' : 'watchdog-thread.cjs'
  const thread = new Worker(join(root, name), {
    env: { ...env },
    workerData: { ...data, beats } satisfies WatchdogData,
    resourceLimits: { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2 },
  })
  const answer = beating(shared)
  thread.on('message', (message: Ask | { culprit: Culprit; seconds: number }) => {
    if ('askedAt' in message) answer(message.askedAt)
    else blocked(message.culprit, message.seconds)
  })
  // The daemon works without a watchdog.
  thread.on('error', () => {})
  thread.unref()
  return watchdog
}

/** The answer of the main thread to the watchdog: a counter and its delay. A timer of its own would wake an idle daemon. */
function beating(shared: Int32Array): (askedAt: number) => void {
  let measuredAt = Number.NEGATIVE_INFINITY
  return askedAt => {
    const now = monotonicMs()
    Atomics.add(shared, BEATS, 1)
    if (now - askedAt > Atomics.load(shared, DELAY)) Atomics.store(shared, DELAY, now - askedAt)
    if (now - measuredAt < measureMs) return
    measuredAt = now
    Atomics.store(shared, HEAP, Math.round(getHeapStatistics().used_heap_size / 1024 / 1024))
    Atomics.store(shared, HANDLES, process.getActiveResourcesInfo().length)
  }
}

/** Counts refused oversized bodies on all listeners of this process. */
function countOversize(shared: Int32Array): void {
  subscribe('http.server.response.finish', message => {
    if ((message as { response: ServerResponse }).response.statusCode === 413) Atomics.add(shared, OVERSIZE, 1)
  })
}
