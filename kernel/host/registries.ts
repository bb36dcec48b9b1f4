import type { Awaitable } from '../contract/awaitable.js'
import type { ErrorEntry, Fault } from '../contract/errors.js'
import { errorsOf } from '../contract/errors.js'
import type { EventType } from '../contract/event.js'
import type { Hook, Report, Tapper } from '../contract/hook.js'
import type { Kind } from '../contract/kind.js'
import type { StoredRecord } from '../contract/record.js'
import type { Route } from '../contract/route.js'
import type { Command, Setting, Surface } from '../contract/surface.js'
import { Registry } from '../hooks/index.js'
import type { BoundRoute } from '../http/bound-route.js'
import type { BoundReconciler } from '../reconcile/kind-loop.js'

export interface BoundService {
  readonly name: string
  readonly run: (signal: AbortSignal) => Promise<void>
}

export interface BoundQuiesce {
  readonly phase: string
  readonly run: (signal: AbortSignal) => unknown
}

/** The kernel's own registries, one for each list of a surface, and those that plugins declare, by their id. */
export class Registries {
  readonly kinds: Registry<Kind>
  readonly reconcilers: Registry<BoundReconciler>
  readonly routes: Registry<BoundRoute>
  readonly events: Registry<EventType>
  readonly services: Registry<BoundService>
  readonly quiesce: Registry<BoundQuiesce>
  readonly errors: Registry<ErrorEntry & { readonly code: string }>
  readonly commands: Registry<Command>
  readonly settings: Registry<Setting>
  readonly unrouted: Registry<(path: string) => Awaitable<Fault | boolean>>
  readonly #declared = new Map<string, Registry<unknown>>()

  constructor(private readonly report: Report) {
    this.kinds = new Registry('kinds', report)
    this.reconcilers = new Registry('reconcilers', report)
    this.routes = new Registry('routes', report)
    this.events = new Registry('events', report)
    this.services = new Registry('services', report)
    this.quiesce = new Registry('quiesce', report)
    this.errors = new Registry('errors', report)
    this.commands = new Registry('commands', report)
    this.settings = new Registry('settings', report)
    this.unrouted = new Registry('unrouted', report)
  }

  /** A registry that a plugin declares; contributions to one whose owner is absent wait here. */
  declared(id: string): Registry<unknown> {
    let registry = this.#declared.get(id)
    if (!registry) {
      registry = new Registry(id, this.report)
      this.#declared.set(id, registry)
    }
    return registry
  }

  /** Taps every registry with what is on a surface, its functions bound to `self`. `serviceOf` finds what taps name. */
  register<S>(tapper: Tapper, surface: Surface<S>, self: S, serviceOf: (tokenId: string) => unknown): void {
    const add = <T>(registry: Registry<T>, entries: readonly T[] | undefined) => {
      if (entries && entries.length > 0) registry.tap(tapper, () => entries)
    }
    add(this.kinds, surface.kinds)
    add(this.events, surface.events)
    add(this.commands, surface.commands)
    add(this.settings, surface.settings)
    add(
      this.routes,
      surface.routes?.map(route => ({ owner: tapper.owner, route: route as Route, self })),
    )
    add(
      this.unrouted,
      surface.unrouted?.map(ask => (path: string) => ask(self, path)),
    )
    add(
      this.errors,
      surface.errors?.flatMap(table => Object.entries(errorsOf(table)).map(([code, entry]) => ({ ...entry, code }))),
    )
    add(
      this.services,
      surface.services?.map(({ name, run }) => ({ name, run: (signal: AbortSignal) => run(self, signal) })),
    )
    add(
      this.quiesce,
      surface.quiesce?.map(({ phase, run }) => ({ phase, run: (signal: AbortSignal) => run(self, signal) })),
    )
    add(
      this.reconcilers,
      surface.reconcilers?.map(({ kind, after = [], watches = [], projected, run }) => ({
        owner: tapper.owner,
        kind: kind.name,
        after: after.map(k => k.name),
        watches: watches.map(watch => ({
          kind: watch.kind.name,
          keys: (record: StoredRecord) => watch.keys(self, record),
        })),
        ...(projected ? { projected: () => projected(self) } : {}),
        run: ((batch, signal) => run(self, batch, signal)) as BoundReconciler['run'],
      })),
    )
    for (const { to, entries } of surface.registries ?? []) {
      this.declared(to.registry).tap(tapper, () => entries(self))
    }
    for (const { on, tap } of surface.taps ?? []) {
      const service = serviceOf(on.id)
      if (service === undefined)
        throw new Error(`a tap names ${on.id}, which is not among what ${tapper.owner} requires`)
      const { hook, fn } = tap(service, self)
      ;(hook as unknown as Hook<unknown>).tap(tapper, fn)
    }
  }
}
