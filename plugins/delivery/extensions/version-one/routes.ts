import type * as v from 'valibot'
import { cli, describe, type RouteCli, runsCode } from '../../../../kernel/kit/annotations/index.js'
import {
  type Annotation,
  type Replies,
  type Route,
  type RouteBody,
  type RouteDefinition,
  routeOf as routeOfToday,
} from '../../../../kernel/plugin.js'

/** Members of an `apiVersion = 1` route that became annotations. */
export interface MembersOfOne {
  /** Section of the document. */
  readonly area?: string
  readonly errors?: readonly number[]
  readonly runsCode?: boolean
  readonly cli?: RouteCli
}

type Schema = v.GenericSchema

/** The route constructor of `apiVersion = 1`: data for the command line and the OpenAPI document is part of the route. */
export function routeOf<S>() {
  const route = routeOfToday<S>()
  return <
    const P extends string,
    R extends Replies,
    Q extends Schema | undefined = undefined,
    B extends RouteBody | undefined = undefined,
  >(
    definition: RouteDefinition<S, P, Q, B, R> & MembersOfOne,
  ): Route<S> => route(definition)
}

/** Converts the members of an `apiVersion = 1` route to annotations; a route without them is unchanged. */
export function annotated<R extends Route<never>>(route: R & MembersOfOne): R {
  const { area, errors, runsCode: can, cli: command, ...rest } = route
  const made: Annotation[] = []
  if (area !== undefined || errors) made.push(describe(area ?? 'Other', errors && { errors }))
  if (command) {
    const { path, ...more } = command
    made.push(cli(path, more))
  }
  if (can !== undefined) made.push(runsCode(can))
  return made.length === 0 ? route : ({ ...rest, with: [...made, ...(route.with ?? [])] } as unknown as R)
}
