import { monitorEventLoopDelay } from 'node:perf_hooks'

/** Watches this process's event loop; the returned function gives the longest gap since the last call, in milliseconds. */
export function watchLoop(): () => number {
  const histogram = monitorEventLoopDelay({ resolution: 1 })
  histogram.enable()
  return () => {
    const longest = histogram.max / 1e6
    histogram.reset()
    return longest
  }
}
