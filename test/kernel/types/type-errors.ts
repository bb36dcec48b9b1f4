/**
 * What the contract of a plugin does not let through. Every line below a mark is an error, of the code that the mark gives:
 * the type check of the project says that it is one, types.test.ts says that it is this one.
 */
import * as v from 'valibot'
import {
  created,
  definePlugin,
  type Fault,
  type maybe,
  noContent,
  ok,
  type PluginKernel,
  registry,
  routeOf,
  surfaceOf,
  token,
} from '../../../kernel/plugin.js'

interface ThingsApi {
  readonly count: number
  readonly heard: ReturnType<typeof hook>
}
declare const kernel: PluginKernel<{ things: typeof Things; other: ReturnType<typeof maybe<ThingsApi>> }>
const hook = () => kernel.hooks.notify<[name: string]>('heard')
const Things = token<ThingsApi>('things@1')
const Numbers = registry<{ readonly n: number }>('things.numbers@1')
const Levels = registry<{ readonly at: `GET /${string}`; readonly level: 'low' | 'high' }>('things.levels@1')
const route = routeOf<Service>()
const { contribute, tap } = surfaceOf<Service>()

class Service implements ThingsApi {
  readonly count = 1
  readonly heard = hook()
}

const base = { area: 'Things', summary: 'One' } as const
const Thing = v.object({ id: v.string() })

export const parameters = route({
  ...base,
  method: 'GET',
  path: '/api/things/{id}/parts/{part}',
  replies: { 200: Thing },
  // @ts-expect-error TS2339 a parameter that the path does not have
  handle: (_self, { params }) => ok({ id: params.id + params.part + params.prat }),
})

export const reply = route({
  ...base,
  method: 'GET',
  path: '/api/things',
  replies: { 200: Thing, 204: null },
  // @ts-expect-error TS2322 a body that does not match the schema of its status
  handle: (_self, { query }) => (query === undefined ? noContent() : ok({ id: 1 })),
})

export const status = route({
  ...base,
  method: 'POST',
  path: '/api/things',
  replies: { 200: Thing },
  // @ts-expect-error TS2322 a status that is not declared
  handle: () => created({ id: 'a' }),
})

export const query = route({
  ...base,
  method: 'GET',
  path: '/api/things',
  replies: { 200: Thing },
  // @ts-expect-error TS18048 a query that is not declared
  handle: (_self, { query }) => ok({ id: query.id }),
})

export const body = route({
  ...base,
  method: 'POST',
  path: '/api/things',
  replies: { 200: Thing },
  // @ts-expect-error TS18048 a body that is not declared
  handle: (_self, { body }) => ok({ id: body.id }),
})

export const member = route({
  ...base,
  method: 'PUT',
  path: '/api/things',
  body: v.strictObject({ size: v.number() }),
  replies: { 200: Thing },
  // @ts-expect-error TS2339 a member that the body does not have
  handle: (_self, { body }) => ok({ id: `${body.size}${body.weight}` }),
})

// @ts-expect-error TS2339 a need that was not declared
kernel.needs.workers

// @ts-expect-error TS18048 an optional need, used as if it were there
kernel.needs.other.current.count

export const taps = [
  tap(
    Things,
    service => service.heard,
    // @ts-expect-error TS2322 a tap that takes something else
    () => (name: number) => name,
  ),
  tap(
    Things,
    () => kernel.hooks.gate<[]>('may'),
    // @ts-expect-error TS2322 a gate that says no by a text
    () => async () => 'no',
  ),
  tap(
    Things,
    () => kernel.hooks.gate<[]>('may'),
    () => async (): Promise<Fault | undefined> => undefined,
  ),
]

// @ts-expect-error TS2322 a contribution that the registry does not hold
export const contribution = contribute(Numbers, () => [{ n: 'one' }])

export const literals = contribute(Levels, () => [{ at: 'GET /things', level: 'low' }])

export const wrongLiteral = contribute(Levels, () => [
  // @ts-expect-error TS2322 a text that is none of those of the entry
  { at: 'GET /things', level: 'middle' },
])

export const needs = definePlugin({
  name: 'needs',
  version: '1',
  requires: { things: Things },
  service: async () =>
    class {
      constructor(readonly kernel: PluginKernel<{ things: typeof Things }>) {}
      weigh() {
        // @ts-expect-error TS2339 what a service that is required does not have
        return this.kernel.needs.things.weight
      }
    },
})

export const provides = definePlugin({
  name: 'provides',
  version: '1',
  provides: Things,
  // @ts-expect-error TS2322 a service that is not what its token says
  service: async () => class {},
})
