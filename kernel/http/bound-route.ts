import type { Route } from '../contract/route.js'

/** A route with the service that serves it. */
export interface BoundRoute {
  readonly owner: string
  readonly route: Route
  readonly self: unknown
}
