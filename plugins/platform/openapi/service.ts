import { Collected } from '../../../kernel/platform.js'
import { Fault, type Host, messageOf, type Plugin, type PluginKernel } from '../../../kernel/plugin.js'
import type { OpenApiApi } from './api.js'

/** Describes routes; the code for that is loaded on first use. */
export class OpenApiService implements OpenApiApi {
  constructor(private readonly kernel: PluginKernel<{ host: typeof Host }>) {}

  async document(): ReturnType<OpenApiApi['document']> {
    const { buildDocument } = await import('./document.js')
    const routes = this.kernel.collect(Collected.routes).map(({ entry }) => entry.route)
    return (await buildDocument(routes, this.kernel.needs.host.version)) as Awaited<ReturnType<OpenApiApi['document']>>
  }

  /** Why the routes of a plugin cannot be described; undefined when they can. */
  async check({ surface: { routes = [] } }: Plugin): Promise<Fault | undefined> {
    if (routes.length === 0) return undefined
    const { checkDescribable } = await import('./document.js')
    try {
      checkDescribable(routes)
      return undefined
    } catch (error) {
      return new Fault('route_refused', 422, messageOf(error), { cause: error })
    }
  }
}
