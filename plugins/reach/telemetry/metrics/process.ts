import { readdir } from 'node:fs/promises'
import { type IntervalHistogram, monitorEventLoopDelay, performance } from 'node:perf_hooks'
import type { Clock, Timer } from '../../../../kernel/plugin.js'
import type { Sample } from '../api.js'

/** Milliseconds without a read after which measuring the event loop stops. */
const WATCHED_MS = 600_000
/** Milliseconds between two measurements of the event loop. */
const RESOLUTION = 20

/** Event loop delay. It is measured only while metrics are read, because measuring wakes the process 50 times a second. */
export class LoopDelay {
  #histogram: IntervalHistogram | undefined
  #timer: Timer | undefined

  constructor(private readonly clock: Pick<Clock, 'timeout'>) {}

  /** Returns no values on the first read. */
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
    // The histogram contains the time between two measurements, including the interval itself.
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

/** Resource usage of the process. */
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
  /** No values on systems without this folder. */
  descriptors: async (): Promise<Sample[]> => {
    const open = await readdir('/proc/self/fd').catch(() => undefined)
    return open ? [{ value: open.length }] : []
  },
}
