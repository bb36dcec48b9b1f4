import type { Plugin, PluginKernel, RegistryToken, Scope } from '../../kernel/plugin.js'
import type { TestKernel } from '../harness/kernel.js'

/** A plugin that lets the test look at the kernel from a plugin's side. */
export function probe(): { readonly plugin: Plugin; readonly kernel: () => PluginKernel } {
  let seen: PluginKernel | undefined
  const plugin: Plugin = {
    name: 'probe',
    version: '1',
    requires: {},
    surface: {},
    apply: kernel => {
      seen = kernel
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

/** Taps on stubbed services, by owner. */
export const stubTaps: string[] = []

/** Provides a token with something that can be called, read, iterated and tapped, and does nothing. */
export function stubOf(id: string): Plugin {
  const tap = ({ owner, scope }: { owner: string; scope: Scope }) => {
    stubTaps.push(owner)
    scope.defer('tap stub', () => stubTaps.splice(stubTaps.indexOf(owner), 1))
  }
  const anything: unknown = new Proxy(() => {}, {
    get: (_, key) => {
      if (key === 'tap') return tap
      if (key === 'then') return undefined
      if (key === 'length') return 0
      if (key === Symbol.iterator) return [][Symbol.iterator]
      if (key === Symbol.toPrimitive) return () => ''
      return anything
    },
    apply: () => anything,
  })
  const name = `stub-${id.replace('@', '-')}`
  return { name, version: '1', requires: {}, provides: { id }, surface: {}, apply: () => anything }
}

/** Everything that the plugins of a daemon have registered and hold, in its order: equal when nothing was left behind. */
export async function everything(svc: TestKernel, kernel: PluginKernel, registries: readonly RegistryToken<unknown>[]) {
  const { host } = svc.kernel
  const document = (await host.document()) as { paths: Record<string, object> }
  return {
    plugins: host.plugins(),
    settings: host.settings().map(({ owner, entry }) => `${owner} ${entry.path}`),
    commands: host.commands().map(({ owner, entry }) => `${owner} ${entry.path}`),
    routes: Object.entries(document.paths).flatMap(([path, methods]) => Object.keys(methods).map(m => `${m} ${path}`)),
    kinds: kernel.records.kinds(),
    reconcilers: kernel.reconcile
      .health()
      .map(({ kind }) => kind)
      .sort(),
    contributions: Object.fromEntries(
      registries.map(token => [token.registry, kernel.collect(token).map(({ owner }) => owner)]),
    ),
    stubTaps: [...stubTaps],
    resources: resources(),
  }
}

/** What keeps the process busy, by kind: watchers, sockets, pipes; calls of the file system end by themselves. */
export function resources(): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of process.getActiveResourcesInfo()) {
    if (/^(FSReq|Immediate|Timeout|TickObject|WORKER|ELD)/.test(name)) continue
    counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
}

/** Resolves when what was begun in the background has had its turns; on a disk these take some. */
export async function idle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
}
