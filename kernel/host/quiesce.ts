import { within } from '../clock.js'
import type { Plugin } from '../contract/plugin.js'
import type { HostOptions } from './options.js'

export const phasesOf = (plugins: readonly Plugin[]): string[] =>
  plugins.flatMap(({ surface: { quiesce = [] } }) => quiesce.map(({ phase }) => phase))

/**
 * Ends running work phase by phase, in `ms` altogether; all taps of a phase run at once. A failure is reported and stops no other.
 * @param only the plugin that is released; absent for all
 */
export async function quiesce(
  phases: readonly string[],
  { clock, hooks, report }: Pick<HostOptions, 'clock' | 'hooks' | 'report'>,
  ms: number,
  only?: string,
): Promise<void> {
  const until = clock.monotonic() + ms
  for (const phase of new Set(phases)) {
    const over = new AbortController()
    const left = Math.max(0, until - clock.monotonic())
    const ends = hooks.quiesce.for(phase).collect()
    const end = async ({ owner, entry }: (typeof ends)[0]) => {
      if (only !== undefined && only !== owner) return
      try {
        await within(clock, left, Promise.resolve(entry(over.signal, left)))
      } catch (error) {
        report({ owner, hook: `quiesce ${phase}`, error })
      }
    }
    await Promise.all(ends.map(end))
    over.abort()
  }
}
