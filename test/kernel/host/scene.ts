import * as v from 'valibot'
import { describe } from '../../../kernel/kit/annotations/index.js'
import {
  definePlugin,
  type Fault,
  maybe,
  type Needs,
  ok,
  type Plugin,
  type PluginKernel,
  registry,
  routeOf,
  surfaceOf,
  token,
} from '../../../kernel/plugin.js'

export const Said = registry<string>('base.said@1')

interface Parts {
  readonly version?: string
  readonly requires?: readonly string[]
  readonly maybe?: readonly string[]
  readonly provides?: string
  readonly replaces?: string
  readonly path?: string
  readonly tables?: Plugin['surface']['tables']
  readonly inherits?: Plugin['surface']['inherits']
  readonly apply?: (kernel: PluginKernel<Needs>) => unknown
}

/** A plugin with one route, `GET /api/<name>` unless said otherwise, that answers with the name it runs as and its version. */
export function plain(name: string, parts: Parts = {}): Plugin {
  const { version = '1', requires = [], maybe: optional = [], provides, replaces, tables, inherits } = parts
  const path = parts.path ?? `/api/${name}`
  const { contribute } = surfaceOf<{ kernel: PluginKernel }>()
  const route = routeOf<{ kernel: PluginKernel }>()
  return definePlugin({
    name,
    version,
    requires: {
      ...Object.fromEntries(requires.map(id => [id, token<unknown>(id)])),
      ...Object.fromEntries(optional.map(id => [id, maybe(token<unknown>(id))])),
    },
    ...(provides ? { provides: token<unknown>(provides) } : {}),
    ...(replaces ? { replaces } : {}),
    service: async () =>
      class {
        constructor(readonly kernel: PluginKernel<Needs>) {}
        async start() {
          await parts.apply?.(this.kernel)
        }
      } as never,
  }).surface({
    ...(tables ? { tables } : {}),
    ...(inherits ? { inherits } : {}),
    registries: [contribute(Said, () => [`${name} ${version}`])],
    routes: [
      route({
        method: 'GET',
        path,
        with: [describe('Test')],
        summary: 'Who answers',
        replies: { 200: v.object({ name: v.string(), version: v.string() }) },
        handle: self => ok({ name: self.kernel.name, version: self.kernel.version }),
      }),
    ],
  } as never)
}

export const boom = (): never => {
  throw new Error('boom')
}

/** The code and text of what a promise rejects with. */
export async function refusal(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'none',
    error => `${(error as Fault).code}: ${(error as Error).message}`,
  )
}
