import * as v from 'valibot'
import type { Setting } from '../../../kernel/plugin.js'

/** How the daemon runs under a service manager. */
export const ServiceSettings = {
  /** Seconds that a stop by the service manager waits for running turns of sessions; 0 stops them at once. */
  stopWait: {
    path: 'daemon.service.stop_wait_seconds',
    section: 'general',
    schema: v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(3600)),
    default: 20,
    apply: 'live',
  } satisfies Setting<number>,
}
