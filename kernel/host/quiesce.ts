import type { Plugin } from '../contract/plugin.js'
import type { HostOptions } from './options.js'

/** The phases that plugins name. */
export const phasesOf = (plugins: readonly Plugin[]): string[] =>
  plugins.flatMap(({ surface: { quiesce = [] } }) => quiesce.map(({ phase }) => phase))

/**
 * Ends what runs phase by phase, in `ms` altogether; a failure is reported, and the rest ends all the same.
 * @param owner the plugin that goes; without one all do
 */
export async function quiesce(
  phases: readonly string[],
  { clock, hooks }: Pick<HostOptions, 'clock' | 'hooks'>,
  ms: number,
  owner?: string,
): Promise<void> {
  const until = clock.monotonic() + ms
  for (const phase of new Set(phases)) {
    const over = new AbortController()
    const left = Math.max(0, until - clock.monotonic())
    await hooks.quiesce.for(phase).call(owner, over.signal, left)
    over.abort()
  }
}
