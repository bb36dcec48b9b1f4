import { backoff, type Clock, type Ids, type Report, type Scope } from '../../kernel/plugin.js'

/** Milliseconds after which a loop that fails counts as one that had worked. */
const STEADY_MS = 60_000

/** A background loop with its service bound. */
export interface BoundService {
  readonly scope: Scope
  readonly name: string
  readonly run: (signal: AbortSignal) => Promise<void>
}

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
