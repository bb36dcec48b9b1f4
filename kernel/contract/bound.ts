import type { Scope } from './basics.js'
import type { Kind, Reconciler } from './kind.js'
import type { SecretSource } from './redact.js'
import type { Route } from './route.js'
import type { Db } from './storage.js'
import type { Command, Owned, Quiesce, Service, Setting } from './surface.js'
import { registry } from './token.js'

/** A route with the service that serves it. */
export interface BoundRoute {
  readonly owner: string
  readonly route: Route
  readonly self: unknown
}

/** A surface entry together with the service that its functions take, and the scope of its plugin. */
export interface Bound<T> {
  readonly scope: Scope
  readonly self: unknown
  readonly entry: T
}

/** Owned rows, with a database that has the rights of their plugin. */
export interface BoundOwned extends Bound<Owned<unknown>> {
  readonly db: Db
}

/** The registries of surface entries: ids for the hook `collect`. */
export const Collected = {
  kinds: registry<Kind>('kinds@1'),
  routes: registry<BoundRoute>('routes@1'),
  // biome-ignore lint/suspicious/noExplicitAny: the erasing line of the registries
  reconcilers: registry<Bound<Reconciler<any, any>>>('reconcilers@1'),
  services: registry<Bound<Service<unknown>>>('services@1'),
  quiesce: registry<Bound<Quiesce<unknown>>>('quiesce@1'),
  owned: registry<BoundOwned>('owned@1'),
  commands: registry<Command>('commands@1'),
  settings: registry<Setting>('settings@1'),
  secrets: registry<SecretSource>('secrets@1'),
}
