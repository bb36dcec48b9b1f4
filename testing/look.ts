import type { Kernel } from '../kernel/index.js'
import { Collected } from '../kernel/platform.js'
import type { Needs, Plugin, PluginKernel, RegistryToken } from '../kernel/plugin.js'

/** A plugin that lets a test look at the kernel from a plugin's side. */
export function probe<N extends Needs = Record<never, never>>(
  requires: N = {} as N,
): { readonly plugin: Plugin; readonly kernel: () => PluginKernel<N> } {
  let seen: PluginKernel<N> | undefined
  const plugin: Plugin = {
    name: 'probe',
    version: '1',
    requires,
    surface: {},
    apply: kernel => {
      seen = kernel as PluginKernel<N>
      return {}
    },
  }
  return {
    plugin,
    kernel: () => {
      if (!seen) throw new Error('the probe did not start')
      return seen
    },
  }
}

/** Everything that the plugins of a kernel have registered and hold, in its order: equal when nothing was left behind. */
export type Traces = Awaited<ReturnType<typeof tracesOf>>

/**
 * Looks at a kernel when what was begun in the background has ended.
 * @param own the kernel as a plugin is handed it, see {@link probe}
 */
export async function tracesOf(kernel: Kernel, own: PluginKernel, registries: readonly RegistryToken<unknown>[]) {
  const { host } = kernel
  await settled()
  return {
    // A process that is started again is another one.
    plugins: host
      .plugins()
      .map(plugin => ({ ...plugin, holds: plugin.holds.map(label => label.replace(/^process \d+$/, 'process')) })),
    settings: host.settings().map(({ owner, entry }) => `${owner} ${entry.path}`),
    commands: host.commands().map(({ owner, entry }) => `${owner} ${entry.path}`),
    routes: own.collect(Collected.routes).map(({ entry: { route } }) => `${route.method} ${route.path}`),
    kinds: own.records.kinds(),
    reconcilers: own
      .collect(Collected.reconcilers)
      .map(({ entry }) => entry.entry.kind.name)
      .sort(),
    contributions: Object.fromEntries(
      registries.map(token => [token.registry, own.collect(token).map(({ owner }) => owner)]),
    ),
    resources: resources(),
  }
}

/** What ends by itself: calls of the file system, turns of the loop, and what loads a module. */
const PASSING = /^(FSReq|CloseReq|Immediate|TickObject|MessagePort|WORKER|ELD)/
/** Looks in a row, milliseconds apart, that find none of that, after which what was begun has ended; and the most that are waited. */
const QUIET_LOOKS = 6
const APART_MS = 2
const MOST_LOOKS = 2000
/** Looks for which a timer of Node may end by itself: a watcher of files has some for a second behind each change. */
const TIMER_LOOKS = 700

/** What keeps the process busy, by kind: watchers, sockets, pipes, timers of Node. */
export function resources(): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of process.getActiveResourcesInfo().sort()) {
    if (!PASSING.test(name)) counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
}

/** Resolves when nothing is under way any more that ends by itself: what a plugin begins behind its start has begun. */
export async function settled(): Promise<void> {
  let quiet = 0
  for (let look = 0; quiet < QUIET_LOOKS && look < MOST_LOOKS; look++) {
    await new Promise(resolve => setTimeout(resolve, APART_MS))
    const isPassing = (name: string) => PASSING.test(name) || (name === 'Timeout' && look < TIMER_LOOKS)
    quiet = process.getActiveResourcesInfo().some(isPassing) ? 0 : quiet + 1
  }
}
