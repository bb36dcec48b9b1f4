import type { K } from '../needs.js'
import { type Bundle, buildBundle } from './build.js'
import { scrubberOf, sourcesOf } from './online.js'

/** Makes the bundle of a running daemon. */
export async function makeBundle(
  kernel: K,
  {
    id,
    createdAt,
    includeStatus,
  }: { readonly id: string; readonly createdAt: number; readonly includeStatus: boolean },
): Promise<Bundle> {
  const { host } = kernel.needs
  const scrubber = await scrubberOf(kernel)
  return buildBundle({
    operationId: id,
    at: createdAt,
    sources: sourcesOf(kernel, scrubber, includeStatus),
    scrubber,
    signal: kernel.scope.signal,
    about: `The daemon ${host.version} of ${kernel.home.root} (pid ${host.pid}) runs since ${new Date(host.startedAt).toISOString()}.`,
  })
}
