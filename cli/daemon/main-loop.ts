import { systemCall } from '../../kernel/kit/system-calls.js'
import { monotonicMs } from './watchdog-data.js'

/** The event loop of the main thread, as another thread sees it without waking it. */
export interface MainLoop {
  /** Milliseconds for which its current turn has lasted; 0 while it waits for events. */
  turnMs(): number
  /** Milliseconds for which it has waited for events since the process started. */
  idleMs(): number
}

/**
 * Reads the event loop through libuv, whose functions Node exports. A child process that is run synchronously has a loop of its own: its
 * time belongs to the turn. A timer that is set in a turn may make the turn look younger.
 * @returns undefined where koffi or these functions are missing
 */
export function mainLoop(): MainLoop | undefined {
  try {
    const loop = systemCall('uintptr_t uv_default_loop()')()
    const idleNs = systemCall('uint64_t uv_metrics_idle_time(uintptr_t loop)')
    const now = systemCall('uint64_t uv_now(uintptr_t loop)')
    return {
      turnMs: () => {
        const idle = idleNs(loop)
        // It grows only while the loop waits.
        const isWaiting = idleNs(loop) > idle
        return isWaiting ? 0 : Math.max(1, monotonicMs() - Number(now(loop)))
      },
      idleMs: () => Number(idleNs(loop)) / 1e6,
    }
  } catch {
    return undefined
  }
}
