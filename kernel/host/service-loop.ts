import { type BoundService, Collected } from '../contract/bound.js'
import type { Clock } from '../contract/clock.js'
import type { Report } from '../contract/hook.js'
import type { Ids } from '../contract/ids.js'
import type { Scope } from '../contract/scope.js'
import { collected, type KernelHooks, kernelTapper } from '../hooks/kernel-hooks.js'
import { backoff } from '../kit/backoff.js'

/** Milliseconds after which a loop that fails counts as one that had worked. */
const STEADY_MS = 60_000

/** Runs a background loop until its plugin goes; when it ends or throws before, it is started again with backoff. */
export function keepRunning(
  owner: string,
  { name, run, scope }: BoundService,
  clock: Clock,
  ids: Ids,
  report: Report,
): void {
  const loop = async () => {
    let attempt = 0
    while (!scope.signal.aborted) {
      const began = clock.monotonic()
      try {
        await run(scope.signal)
        if (!scope.signal.aborted) throw new Error('it ended before it was told to')
      } catch (error) {
        if (scope.signal.aborted) return
        report({ owner, hook: `service ${name}`, error })
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
  scope.defer(`service ${name}`, () => running)
}

/** Starts the background loops of what a change brought. */
export function runServices(hooks: KernelHooks, scope: Scope, clock: Clock, ids: Ids, report: Report): void {
  hooks.running.tap(kernelTapper(scope), ({ started }) => {
    for (const { owner, entry } of collected(hooks, Collected.services))
      if (started.has(owner)) keepRunning(owner, entry, clock, ids, report)
  })
}
