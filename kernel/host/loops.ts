import type { Clock, Ids, Scope } from '../contract/basics.js'
import { Collected } from '../contract/bound.js'
import type { Report } from '../contract/hook.js'
import { collected, type KernelHooks, kernelTapper } from '../hooks/kernel-hooks.js'
import { pause } from '../kit/backoff.js'

/** Milliseconds that a loop has to run for its back-off to begin anew. */
const STEADY_MS = 60_000

interface LoopOptions {
  readonly clock: Clock
  readonly ids: Ids
  readonly report: Report
}

/** Runs the background loops of plugins, the `services` of their surfaces. They start in the last stage of a change. */
export function runLoops(hooks: KernelHooks, scope: Scope, options: LoopOptions): void {
  hooks.running.tap(kernelTapper(scope), ({ started }) => {
    for (const { owner, entry: bound } of collected(hooks, Collected.services)) {
      const { scope, self: service, entry } = bound
      if (started.has(owner)) keepRunning(owner, entry.name, signal => entry.run(service, signal), scope, options)
    }
  })
}

/** Runs a background loop until its plugin is released. A loop that ends or throws earlier is restarted with back-off. */
export function keepRunning(
  owner: string,
  name: string,
  run: (signal: AbortSignal) => Promise<void>,
  scope: Scope,
  { clock, ids, report }: LoopOptions,
): void {
  const loop = async () => {
    let attempt = 0
    while (!scope.signal.aborted) {
      const began = clock.monotonic()
      try {
        await run(scope.signal)
        if (!scope.signal.aborted) throw new Error('it ended although it was not stopped')
      } catch (error) {
        if (scope.signal.aborted) return
        report({ owner, hook: `service ${name}`, error })
      }
      attempt = clock.monotonic() - began > STEADY_MS ? 1 : attempt + 1
      await pause({ clock, ids }, attempt, scope.signal)
    }
  }
  const running = loop()
  scope.defer(`service ${name}`, () => running)
}
