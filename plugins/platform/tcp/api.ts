/** `svc/plugins/tcp`: how TCP is served, and how callers without a token are identified. */
import type { Duplex } from 'node:stream'
import {
  type Actor,
  Fault,
  gate,
  hookTable,
  type Incoming,
  isActor,
  type TapsOf,
  token,
} from '../../../kernel/plugin.js'

export { TcpSettings } from './settings.js'

/** The transport of TCP: with `tls` a certificate chain and its key in PEM, without it plain text that intermediaries can read. */
export interface Passage {
  readonly tls?: { readonly cert: Uint8Array; readonly key: Uint8Array }
}

/** Whether TCP is served; `disabled` with the reason. `unchecked`: every local user is served without a token, as configured. */
export type TcpState = { readonly status: 'on' } | { readonly status: 'disabled' | 'unchecked'; readonly why: string }

const isPassage = (answer: unknown): answer is Passage =>
  typeof answer === 'object' && answer !== null && !(answer instanceof Fault) && !(answer instanceof Promise)

/** The hooks of TCP. */
export const points = hookTable({
  bind: gate<[host: string, isLoopback: boolean], Passage>(
    'bind',
    'Before TCP is served at an address. A tap decides how, or refuses; without an answer `http.tls` and `http.plaintext` apply. A throw refuses.',
    { deadlineMs: 30_000, isAnswer: isPassage },
  ),
  vouch: gate<[incoming: Incoming, connection: Duplex], Actor>(
    'vouch',
    'No tap of `authenticate` identified a caller on this machine that is not behind a proxy. A tap identifies it; without an answer `http.trust_own_user` applies, else the request gets a 401. A throw refuses.',
    { isAnswer: isActor },
  ),
})

export interface TcpApi extends TapsOf<typeof points> {
  readonly state: TcpState
}

export const Tcp = token<TcpApi>('tcp@1')
