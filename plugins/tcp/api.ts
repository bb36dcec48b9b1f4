/** `svc/plugins/tcp`: how TCP is served, and to callers whom no token makes known. */
import type { Duplex } from 'node:stream'
import { type Actor, type Awaitable, type Fault, type Hook, type Incoming, token } from '../../kernel/plugin.js'

export { TcpSettings } from './settings.js'

/** How TCP is served: without `tls`, a chain and its key in PEM, readable to whoever is in between. */
export interface Passage {
  readonly tls?: { readonly cert: Uint8Array; readonly key: Uint8Array }
}

/**
 * Whether TCP is served, and why not: `disabled`. `unchecked` serves every local user without a token, as the configuration has
 * it.
 */
export type TcpState = { readonly status: 'on' } | { readonly status: 'disabled' | 'unchecked'; readonly why: string }

export interface TcpApi {
  readonly state: TcpState
  /** Says how TCP is served at an address, or refuses that; beyond loopback somebody has to say. A throw refuses. */
  readonly bind: Hook<(host: string, isLoopback: boolean) => Awaitable<Fault | Passage | undefined>>
  /**
   * Says who makes a request that no `authenticate` knows, of callers on this machine alone and not through a proxy. Whom nobody
   * knows here either gets a 401. A throw refuses.
   */
  readonly vouch: Hook<(incoming: Incoming, connection: Duplex) => Awaitable<Actor | Fault | undefined>>
}

export const Tcp = token<TcpApi>('tcp@1')
