import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import {
  type Actor,
  type Awaitable,
  type Fault,
  type Incoming,
  operator,
  type PluginKernel,
} from '../../kernel/plugin.js'
import { type Peer, PeerTable, peerRefusal } from './peers.js'
import { TrustOwnUser } from './settings.js'

/** Takes processes of the daemon's own user for the operator, over loopback TCP, where the configuration says so. */
export class OwnUserService {
  #peers: PeerTable | undefined

  constructor(
    private readonly kernel: PluginKernel,
    private readonly tables?: string,
  ) {}

  async start(): Promise<void> {
    const { config, log, scope } = this.kernel
    if (!config.get(TrustOwnUser)) return
    const peers = await PeerTable.open(this.tables)
    if (typeof peers === 'string')
      return log.warn(`http.trust_own_user does nothing, everybody needs a token: ${peers}`)
    scope.defer('connection tables', () => peers.close())
    this.#peers = peers
  }

  /** Whose process opened a connection, when the system tells: the operator's, or one that is refused. */
  vouch({ headers }: Incoming, connection: Duplex): Awaitable<Actor | Fault | undefined> {
    const origin = headers['sec-fetch-site'] === 'same-origin' ? 'web' : 'http'
    const judged = (peer: Peer) => peerRefusal(peer) ?? { ...operator, origin }
    const peer = this.#peers?.of(connection as Socket)
    return peer instanceof Promise ? peer.then(judged) : peer && judged(peer)
  }
}
