import type { Kernel } from '../kernel/index.js'
import { Collected } from '../kernel/platform.js'
import type { Needs, Plugin, PluginKernel, RegistryToken } from '../kernel/plugin.js'

/** A plugin that gives a test the kernel as plugins see it. */
export function probe<N extends Needs = Record<never, never>>(
  requires: N = {} as N,
): { readonly plugin: Plugin; readonly kernel: () => PluginKernel<N> } {
  let current: PluginKernel<N> | undefined
  const plugin: Plugin = {
    name: 'probe',
    version: '1',
    requires,
    surface: {},
    apply: kernel => {
      current = kernel as PluginKernel<N>
      return {}
    },
  }
  return {
    plugin,
    kernel: () => {
      if (!current) throw new Error('the probe did not start')
      return current
    },
  }
}

/** All registrations and resources of a kernel's plugins, in a fixed order: equal before and after if nothing was left behind. */
export type Traces = Awaited<ReturnType<typeof tracesOf>>

/**
 * The traces of a kernel, taken when background work has ended.
 * @param own the kernel as a plugin sees it, see {@link probe}
 */
export async function tracesOf(kernel: Kernel, own: PluginKernel, registries: readonly RegistryToken<unknown>[]) {
  const { host } = kernel
  await settled()
  return {
    // A restarted process has another pid.
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

/** Resources that end by themselves: file system calls, turns of the loop, and module loading. */
const PASSING = /^(FSReq|CloseReq|Immediate|TickObject|MessagePort|WORKER|ELD)/
/**
 * Consecutive checks without passing resources after which work counts as ended, the pause between them in milliseconds, and the
 * maximum number.
 */
const QUIET_LOOKS = 6
const APART_MS = 2
const MOST_LOOKS = 2000
/** Number of checks in which a timer of Node counts as passing: a file watcher has some for a second after each change. */
const TIMER_LOOKS = 700

/** Lasting resources of the process by kind, with their number: watchers, sockets, pipes, timers of Node. */
export function resources(): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of process.getActiveResourcesInfo().sort()) {
    if (!PASSING.test(name)) counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
}

/** Resolves when no passing resources remain, so that work which a plugin begins after its start has begun. */
export async function settled(): Promise<void> {
  let quiet = 0
  for (let pass = 0; quiet < QUIET_LOOKS && pass < MOST_LOOKS; pass++) {
    await new Promise(resolve => setTimeout(resolve, APART_MS))
    const isPassing = (name: string) => PASSING.test(name) || (name === 'Timeout' && pass < TIMER_LOOKS)
    quiet = process.getActiveResourcesInfo().some(isPassing) ? 0 : quiet + 1
  }
}
