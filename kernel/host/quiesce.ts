import type { Clock } from '../contract/clock.js'
import type { Contribution, Report } from '../contract/hook.js'
import type { Transport } from '../http/transport.js'
import { within } from '../scope.js'
import type { BoundQuiesce, Registries } from './registries.js'

const DOOR_MS = 2000

interface Plugins {
  readonly registries: Registries
  readonly report: Report
}

/** Runs the quiesce entries that are wanted, all at once and at most `ms`; errors are reported, the rest runs. */
export async function quiesce(
  { registries, report }: Plugins,
  clock: Clock,
  wanted: (contribution: Contribution<BoundQuiesce>) => boolean,
  ms: number,
): Promise<void> {
  const late = new AbortController()
  const run = async ({ owner, entry }: Contribution<BoundQuiesce>) => {
    try {
      await within(clock, ms, Promise.resolve(entry.run(late.signal)))
    } catch (error) {
      report({ owner, hook: `quiesce ${entry.phase}`, error })
    }
  }
  await Promise.all(registries.quiesce.collect().filter(wanted).map(run))
  late.abort()
}

/** First pass of a shutdown: what runs is ended phase by phase, in `ms` altogether; phases not named come last. */
export async function quiesceAll(
  plugins: Plugins,
  transport: Transport,
  order: readonly string[],
  clock: Clock,
  ms: number,
): Promise<void> {
  const until = clock.monotonic() + ms
  const named = plugins.registries.quiesce.collect().map(({ entry }) => entry.phase)
  for (const phase of new Set([...order, ...named])) {
    const left = Math.max(0, until - clock.monotonic())
    if (phase === 'http') await transport.close('tcp', Math.min(left, DOOR_MS))
    else if (phase === 'socket') await transport.close('socket', Math.min(left, DOOR_MS))
    await quiesce(plugins, clock, ({ entry }) => entry.phase === phase, left)
  }
}
