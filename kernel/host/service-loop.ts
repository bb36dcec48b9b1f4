import { backoff } from '../backoff.js'
import type { Clock } from '../contract/clock.js'
import type { Report } from '../contract/hook.js'
import type { Ids } from '../contract/ids.js'
import type { Scope } from '../contract/scope.js'
import type { BoundService } from './registries.js'

/** Milliseconds after which a loop that fails counts as one that had worked. */
const STEADY_MS = 60_000

/** Runs a background loop until its plugin goes; when it ends or throws before, it is started again with backoff. */
export function keepRunning(
  owner: string,
  service: BoundService,
  scope: Scope,
  clock: Clock,
  ids: Ids,
  report: Report,
): void {
  const loop = async () => {
    let attempt = 0
    while (!scope.signal.aborted) {
      const began = clock.monotonic()
      try {
        await service.run(scope.signal)
        if (!scope.signal.aborted) throw new Error('it ended before it was told to')
      } catch (error) {
        if (scope.signal.aborted) return
        report({ owner, hook: `service ${service.name}`, error })
      }
      attempt = clock.monotonic() - began > STEADY_MS ? 1 : attempt + 1
      await clock
        .sleep(
          backoff(attempt, () => ids.random()),
          scope.signal,
        )
        .catch(() => {})
    }
  }
  const running = loop()
  scope.defer(`service ${service.name}`, () => running)
}
