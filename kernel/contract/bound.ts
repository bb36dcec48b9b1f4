import type { Awaitable } from './awaitable.js'
import type { Fault } from './errors.js'
import type { Kind } from './kind.js'
import type { Batch } from './reconcile.js'
import type { StoredRecord } from './record.js'
import type { Route } from './route.js'
import type { Scope } from './scope.js'
import type { Command, Setting } from './surface.js'
import { registry } from './token.js'

/** A route with the service that serves it. */
export interface BoundRoute {
  readonly owner: string
  readonly route: Route
  readonly self: unknown
}

/** A reconciler with its service bound and its types erased. */
export interface BoundReconciler {
  readonly owner: string
  readonly scope: Scope
  readonly kind: string
  readonly after: readonly string[]
  readonly watches: readonly { readonly kind: string; readonly keys: (record: StoredRecord) => readonly string[] }[]
  readonly projected?: (() => ReadonlyMap<string, number>) | undefined
  readonly run: (batch: Batch<unknown>, signal: AbortSignal) => unknown
}

/** A background loop with its service bound. */
export interface BoundService {
  readonly scope: Scope
  readonly name: string
  readonly run: (signal: AbortSignal) => Promise<void>
}

/** The registries that every surface fills: what the hook `collect` gives for these ids. */
export const Collected = {
  kinds: registry<Kind>('kinds@1'),
  routes: registry<BoundRoute>('routes@1'),
  reconcilers: registry<BoundReconciler>('reconcilers@1'),
  services: registry<BoundService>('services@1'),
  commands: registry<Command>('commands@1'),
  settings: registry<Setting>('settings@1'),
  unrouted: registry<(path: string) => Awaitable<Fault | boolean>>('unrouted@1'),
}
