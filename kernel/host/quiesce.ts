import { within } from '../clock.js'
import { Collected } from '../contract/bound.js'
import { collected } from '../hooks/kernel-hooks.js'
import type { HostOptions } from './options.js'

/**
 * Ends running work phase by phase, in `ms` altogether; all work of a phase ends at the same time. A failure is reported and stops no
 * other.
 * @param order the first phases; those that only plugins name come after them
 * @param only the plugin that is released; absent for all
 */
export async function quiesce(
  order: readonly string[],
  { clock, hooks, report }: Pick<HostOptions, 'clock' | 'hooks' | 'report'>,
  ms: number,
  only?: string,
): Promise<void> {
  const until = clock.monotonic() + ms
  const all = collected(hooks, Collected.quiesce).filter(({ owner }) => owner === (only ?? owner))
  for (const phase of new Set([...order, ...all.map(({ entry }) => entry.entry.phase)])) {
    const over = new AbortController()
    const left = Math.max(0, until - clock.monotonic())
    const end = async ({ owner, entry: { self, entry } }: (typeof all)[0]) => {
      try {
        await within(clock, left, Promise.resolve(entry.run(self, over.signal, left)))
      } catch (error) {
        report({ owner, hook: `quiesce ${phase}`, error })
      }
    }
    await Promise.all(all.filter(({ entry }) => entry.entry.phase === phase).map(end))
    over.abort()
  }
}
