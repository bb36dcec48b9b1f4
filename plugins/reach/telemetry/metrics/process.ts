import { readdir } from 'node:fs/promises'
import { type IntervalHistogram, monitorEventLoopDelay, performance } from 'node:perf_hooks'
import type { Clock, Timer } from '../../../../kernel/plugin.js'
import type { Sample } from '../api.js'

/** Milliseconds without a reader after which the event loop is not watched any more. */
const WATCHED_MS = 600_000
/** Milliseconds between two looks at the event loop. */
const RESOLUTION = 20

/** How late the event loop is. It is watched only while there is a reader, for that wakes the process 50 times a second. */
export class LoopDelay {
  #histogram: IntervalHistogram | undefined
  #timer: Timer | undefined

  constructor(private readonly clock: Pick<Clock, 'timeout'>) {}

  /** Nothing at the first time. */
  readonly read = (): Sample[] => {
    this.#timer?.cancel()
    this.#timer = this.clock.timeout(WATCHED_MS, () => this.end())
    const histogram = this.#histogram
    if (!histogram) {
      this.#histogram = monitorEventLoopDelay({ resolution: RESOLUTION })
      this.#histogram.enable()
      return []
    }
    if (histogram.count === 0) return []
    // What is measured is the time between two looks.
    const late = (nanoseconds: number) => Math.max(0, nanoseconds / 1e9 - RESOLUTION / 1000)
    const { mean, max } = histogram
    const [p50, p99] = [histogram.percentile(50), histogram.percentile(99)]
    histogram.reset()
    return Object.entries({ mean, p50, p99, max }).map(([stat, value]) => ({ labels: { stat }, value: late(value) }))
  }

  end(): void {
    this.#timer?.cancel()
    this.#histogram?.disable()
    this.#histogram = undefined
  }
}

/** What the process uses. */
export const used = {
  cpu: (): Sample[] => {
    const { user, system } = process.cpuUsage()
    return [{ value: (user + system) / 1e6 }]
  },
  resident: (): Sample[] => [{ value: process.memoryUsage.rss() }],
  heap: (): Sample[] => {
    const { heapUsed, heapTotal, external } = process.memoryUsage()
    return Object.entries({ used: heapUsed, total: heapTotal, external }).map(([part, value]) => ({
      labels: { part },
      value,
    }))
  },
  loopActive: (): Sample[] => [{ value: performance.eventLoopUtilization().active / 1000 }],
  /** Nothing where the system has no such folder. */
  descriptors: async (): Promise<Sample[]> => {
    const open = await readdir('/proc/self/fd').catch(() => undefined)
    return open ? [{ value: open.length }] : []
  },
}
