import { findAddress } from './address.js'
import type { ClientOptions, DaemonClient } from './client.js'
import type { Io } from './io.js'

/** A client whose code, including Node's HTTP, is loaded with the first request: many commands, such as completion, make none. */
export function clientOf(io: Io, more: Partial<ClientOptions>): DaemonClient {
  let made: Promise<DaemonClient> | undefined
  const { SVC_HOOK_DEPTH: depth } = io.env
  // Set in a program run by a hook: events of its requests are nested in that hook.
  const headers = depth ? { 'x-svc-hook-depth': depth } : {}
  const client = () => {
    made ??= import('./client.js').then(
      ({ Client }) => new Client({ address: () => findAddress(io.env), signal: io.signal, headers, ...more }),
    )
    return made
  }
  return {
    request: async (...request) => (await client()).request(...request),
    stream: async function* (...request) {
      yield* (await client()).stream(...request)
    },
  }
}
