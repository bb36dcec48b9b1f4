import { findAddress } from './address.js'
import type { ClientOptions, DaemonClient } from './client.js'
import type { Io } from './io.js'

/** A client whose code, and Node's HTTP with it, is loaded by the first request: completion and many others make none. */
export function clientOf(io: Io, more: Partial<ClientOptions>): DaemonClient {
  let made: Promise<DaemonClient> | undefined
  const { SVC_HOOK_DEPTH: depth } = io.env
  // Of a program that a hook runs: what it sets off is nested in that hook.
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
