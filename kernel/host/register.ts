import { type BoundRoute, Collected } from '../contract/bound.js'
import type { Hook, Tapper } from '../contract/hook.js'
import type { Route } from '../contract/route.js'
import type { Db } from '../contract/storage.js'
import type { Surface, Tap } from '../contract/surface.js'
import { type KernelHooks, tapKernel } from '../hooks/kernel-hooks.js'
import { ifPossible } from '../kit/system-calls.js'
import type { OwnedTapper } from './options.js'

/**
 * Taps the hooks of the kernel and of other plugins with the entries of a surface, whose functions are bound to `ownService`.
 * @param db with the rights of the plugin
 * @param serviceOf finds the service that a tap names, among those that the plugin requires
 */
export function register<S>(
  hooks: KernelHooks,
  tapper: OwnedTapper,
  surface: Surface<S>,
  ownService: S,
  db: Db,
  serviceOf: (tokenId: string) => unknown,
): void {
  const { owner, scope } = tapper
  const bind = <T>(entries: readonly T[] = []) => entries.map(entry => ({ scope, self: ownService, entry }))
  const entries: Readonly<Record<keyof typeof Collected, readonly unknown[] | undefined>> = {
    kinds: surface.kinds,
    commands: surface.commands,
    settings: surface.settings,
    secrets: surface.secrets?.map(of => of(ownService)),
    routes: surface.routes?.map((route): BoundRoute => ({ owner, route: route as Route, self: ownService })),
    services: bind(surface.services),
    quiesce: bind(surface.quiesce),
    reconcilers: bind(surface.reconcilers),
    owned: bind(surface.owned).map(one => ({ ...one, db })),
  }
  for (const [name, { registry }] of Object.entries(Collected)) {
    const mine = entries[name as keyof typeof Collected] ?? []
    if (mine.length > 0) hooks.collect.for(registry).tap(tapper, () => mine)
  }
  for (const { registry, entry } of surface.declares ?? []) if (entry) hooks.collect.for(registry).expect(entry)
  for (const { to, entries } of surface.registries ?? [])
    hooks.collect.for(to.registry).tap(tapper, () => entries(ownService))
  if (surface.hooks) tapKernel(hooks, tapper, surface.hooks, ownService)
  for (const tap of surface.taps ?? []) {
    if ('maybe' in tap.on) continue
    const service = serviceOf(tap.on.id)
    if (service === undefined) throw new Error(`a tap names ${tap.on.id}, which ${owner} does not require`)
    tapService(tapper, tap, tap.on.id, service, ownService)
  }
}

/**
 * Taps a hook of a service.
 * @throws MissingHook
 */
export function tapService<S>(tapper: Tapper, { hook, fn }: Tap<S>, token: string, service: unknown, own: S): void {
  hookOf(tapper.owner, token, hook, service).tap(tapper, fn(own))
}

/** A tap on a hook that the service of a token does not have. */
export class MissingHook extends Error {
  constructor(
    owner: string,
    readonly token: string,
    hook: string,
    cause?: unknown,
  ) {
    super(`${owner} taps the hook ${hook}, which the service of ${token} does not have`, { cause })
  }
}

/** @throws MissingHook */
function hookOf(owner: string, token: string, find: (service: unknown) => unknown, service: unknown): Hook<unknown> {
  let found: unknown
  try {
    found = find(service)
  } catch (error) {
    throw new MissingHook(owner, token, pathOf(find), error)
  }
  if (typeof (found as Partial<Hook<unknown>> | undefined)?.tap !== 'function')
    throw new MissingHook(owner, token, pathOf(find))
  return found as Hook<unknown>
}

/** The members that a function reads of its argument, as text: `turn.ending`, `of(…)`. */
function pathOf(find: (service: unknown) => unknown): string {
  let path = ''
  const recorder: unknown = new Proxy(() => {}, {
    get: (_, member) => {
      path += `${path === '' ? '' : '.'}${String(member)}`
      return recorder
    },
    apply: () => {
      path += '(…)'
      return recorder
    },
  })
  // After a throw, the path recorded so far is enough for the error.
  ifPossible(() => find(recorder))
  return path || String(find)
}
