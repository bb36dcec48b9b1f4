import { Collected } from '../contract/bound.js'
import type { Hook } from '../contract/hook.js'
import type { StoredRecord } from '../contract/record.js'
import type { Route } from '../contract/route.js'
import type { Surface } from '../contract/surface.js'
import type { RegistryToken } from '../contract/token.js'
import { type KernelHooks, tapKernel } from '../hooks/kernel-hooks.js'
import type { OwnedTapper } from './options.js'

/**
 * Taps the hooks of the kernel, and those of other plugins, with what stands on a surface, its functions bound to `self`.
 * @param serviceOf finds the service that a tap names, among what the plugin requires
 */
export function register<S>(
  hooks: KernelHooks,
  tapper: OwnedTapper,
  surface: Surface<S>,
  self: S,
  serviceOf: (tokenId: string) => unknown,
): void {
  const { owner, scope } = tapper
  const contribute = <T>(to: RegistryToken<T>, entries: readonly T[] | undefined) => {
    if (entries && entries.length > 0) hooks.collect.for(to.registry).tap(tapper, () => entries)
  }
  contribute(Collected.kinds, surface.kinds)
  contribute(Collected.commands, surface.commands)
  contribute(Collected.settings, surface.settings)
  contribute(
    Collected.routes,
    surface.routes?.map(route => ({ owner, route: route as Route, self })),
  )
  contribute(
    Collected.unrouted,
    surface.unrouted?.map(ask => (path: string) => ask(self, path)),
  )
  contribute(
    Collected.services,
    surface.services?.map(({ name, run }) => ({ scope, name, run: signal => run(self, signal) })),
  )
  contribute(
    Collected.reconcilers,
    surface.reconcilers?.map(({ kind, after = [], watches = [], projected, run }) => ({
      owner,
      scope,
      kind: kind.name,
      after: after.map(k => k.name),
      watches: watches.map(watch => ({
        kind: watch.kind.name,
        keys: (record: StoredRecord) => watch.keys(self, record),
      })),
      ...(projected ? { projected: () => projected(self) } : {}),
      run: (batch, signal) => run(self, batch as never, signal),
    })),
  )
  for (const { phase, run } of surface.quiesce ?? []) hooks.quiesce.for(phase).tap(tapper, signal => run(self, signal))
  for (const { to, entries } of surface.registries ?? [])
    hooks.collect.for(to.registry).tap(tapper, () => entries(self))
  if (surface.hooks) tapKernel(hooks, tapper, surface.hooks, self)
  for (const { on, tap } of surface.taps ?? []) {
    const service = serviceOf(on.id)
    if (service === undefined) throw new Error(`a tap names ${on.id}, which is not among what ${owner} requires`)
    const { hook, fn } = tap(service, self)
    ;(hook as unknown as Hook<unknown>).tap(tapper, fn)
  }
}
