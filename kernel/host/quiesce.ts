import { within } from '../clock.js'
import type { Clock } from '../contract/basics.js'
import type { Report } from '../contract/hook.js'
import type { Plugin } from '../contract/plugin.js'
import type { Quiesce } from '../contract/surface.js'
import type { KernelHooks } from '../hooks/kernel-hooks.js'
import type { Slot } from './slots.js'

interface Quiescing {
  readonly clock: Clock
  readonly hooks: Pick<KernelHooks, 'quiesce'>
  readonly report: Report
}

/** Ends what runs phase by phase, in `ms` altogether: first those of `order`, then those that only a plugin names. */
export async function quiesceAll(
  plugins: readonly Plugin[],
  { clock, hooks }: Quiescing,
  order: readonly string[],
  ms: number,
): Promise<void> {
  const until = clock.monotonic() + ms
  const named = plugins.flatMap(({ surface: { quiesce = [] } }) => quiesce.map(({ phase }) => phase))
  for (const phase of new Set([...order, ...named])) {
    const over = new AbortController()
    const left = Math.max(0, until - clock.monotonic())
    await hooks.quiesce.for(phase).call(left, over.signal, left)
    over.abort()
  }
}

/** Ends what one plugin does in the background, in `ms`. A failure is reported, and the plugin goes all the same. */
export async function quiesceOne({ plugin, self }: Slot, { clock, report }: Quiescing, ms: number): Promise<void> {
  if (self === undefined) return
  const over = new AbortController()
  const end = async ({ phase, run }: Quiesce<unknown>) => {
    try {
      await within(clock, ms, Promise.resolve(run(self, over.signal)))
    } catch (error) {
      report({ owner: plugin.name, hook: `quiesce ${phase}`, error })
    }
  }
  await Promise.all((plugin.surface.quiesce ?? []).map(end))
  over.abort()
}
