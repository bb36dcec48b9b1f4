import type { Scope } from './basics.js'
import type { Kind, Reconciler } from './kind.js'
import type { SecretSource } from './redact.js'
import type { Route } from './route.js'
import type { Db } from './storage.js'
import type { Command, Owned, Service, Setting } from './surface.js'
import { registry } from './token.js'

/** A route with the service that serves it. */
export interface BoundRoute {
  readonly owner: string
  readonly route: Route
  readonly self: unknown
}

/** An entry of a surface whose functions take the service of its plugin, with that service, and the scope that ends with the plugin. */
export interface Bound<T> {
  readonly scope: Scope
  readonly self: unknown
  readonly entry: T
}

/** Rows of a plugin that go with a thing, and the database with its rights. */
export interface BoundOwned extends Bound<Owned<unknown>> {
  readonly db: Db
}

/** The registries that every surface fills: what the hook `collect` gives for these ids. */
export const Collected = {
  kinds: registry<Kind>('kinds@1'),
  routes: registry<BoundRoute>('routes@1'),
  // biome-ignore lint/suspicious/noExplicitAny: the erasing line of the registries
  reconcilers: registry<Bound<Reconciler<any, any>>>('reconcilers@1'),
  services: registry<Bound<Service<unknown>>>('services@1'),
  owned: registry<BoundOwned>('owned@1'),
  commands: registry<Command>('commands@1'),
  settings: registry<Setting>('settings@1'),
  secrets: registry<SecretSource>('secrets@1'),
}
