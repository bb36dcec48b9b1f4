import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { type Doorkeeper, type Listeners, operatorAt } from '../../../kernel/platform.js'
import {
  type Actor,
  type Change,
  Fault,
  type Host,
  type Incoming,
  messageOf,
  operator,
  type PluginKernel,
  type Route,
} from '../../../kernel/plugin.js'
import { type Passage, points, type TcpApi, type TcpState } from './api.js'
import { readTls } from './certificate.js'
import { isLoopback, isOwnHost, type Site, tcpRefusal, unguarded, wasForwarded } from './guards.js'
import { type Peer, PeerTable, peerRefusal } from './peers.js'
import { TcpSettings } from './settings.js'

/** Listens on TCP if that is configured, and guards its requests. */
export class TcpService implements TcpApi, Doorkeeper {
  readonly bind
  readonly vouch
  readonly authenticator: string
  state: TcpState = { status: 'disabled', why: 'no TCP listener is configured' }
  #site: Site

  #peers: PeerTable | undefined

  constructor(
    private readonly tables: string | undefined,
    private readonly kernel: PluginKernel<{ host: typeof Host; listeners: typeof Listeners }>,
  ) {
    const { config, hooks } = kernel
    const { bind, vouch } = hooks.of(points)
    this.bind = bind
    this.vouch = vouch
    this.authenticator = config.get(TcpSettings.authenticator)
    const allowed = () => config.get(TcpSettings.allowedHosts)
    this.#site = { host: config.get(TcpSettings.host), port: 0, tls: false, allowed }
  }

  async start(): Promise<void> {
    const { config, log, scope } = this.kernel
    if (!config.get(TcpSettings.trustOwnUser)) return
    const peers = await PeerTable.open(this.tables)
    if (typeof peers === 'string')
      return log.warn(`http.trust_own_user has no effect, every caller needs a token: ${peers}`)
    scope.defer('connection tables', () => peers.close())
    this.#peers = peers
  }

  /** The boot is over. A fault or a throw stops the start. */
  async open(): Promise<Fault | undefined> {
    const { config, log, needs } = this.kernel
    if (!needs.host.doors.includes('tcp')) return undefined
    const { host } = this.#site
    if (!config.get(TcpSettings.enabled)) {
      this.state = { status: 'disabled', why: 'http.enabled is false in config.json' }
      return undefined
    }
    const isLocal = isLoopback(host)
    if (!isLocal && this.authenticator === '' && !needs.listeners.isAuthenticated())
      return unguarded(host, 'no plugin authenticates them', 'set http.authenticator to the name of such a plugin')
    const passage = (await this.bind.ask(host, isLocal)) ?? (await this.#passage(host, isLocal))
    if (passage instanceof Fault) return passage
    this.state = { status: 'on' }
    if (isLocal && !config.get(TcpSettings.requireToken)) {
      const why = 'http.require_token is false'
      this.state = { status: 'unchecked', why }
      log.warn(`TCP serves every local user: ${why}`)
    }
    return this.#listen(host, passage)
  }

  /** Opens the listener for a version of this plugin that is loaded at runtime. */
  async openAgain({ boot, started }: Change): Promise<void> {
    const refused = boot || !started.has(this.kernel.name) ? undefined : await this.open()
    if (refused) throw refused
  }

  /** Whether the request came over loopback; others are refused by `privileged` routes. */
  isLocal({ host = '' }: IncomingHttpHeaders): boolean {
    return isLoopback(this.#site.host) && isOwnHost(host, this.#site)
  }

  refusal(incoming: Incoming, route: Route | undefined): Fault | undefined {
    return tcpRefusal(incoming, this.#site, route?.navigation)
  }

  /**
   * Identifies a local caller without a token: by another plugin's tap, or by the user of the calling process. Public routes do not
   * require it.
   */
  identify(incoming: Incoming, route: Route | undefined, done: (answer?: Actor | Fault) => void): unknown {
    const { headers, connection } = incoming
    if (!this.isLocal(headers as IncomingHttpHeaders) || wasForwarded(headers)) return done()
    const origin = headers['sec-fetch-site'] === 'same-origin' ? 'web' : 'http'
    if (this.state.status === 'unchecked') return done(operatorAt(origin, incoming.id))
    const known = (answer?: Actor | Fault) => done(answer instanceof Fault && route?.public ? undefined : answer)
    const judged = (peer: Peer) => known(peerRefusal(peer) ?? { ...operator, origin })
    return this.vouch.askNow([incoming, connection as Duplex], answer => {
      const peer = answer ? undefined : this.#peers?.of(connection as Socket)
      if (!peer) return known(answer)
      return peer instanceof Promise ? peer.then(judged) : judged(peer)
    })
  }

  /** The configured transport: the certificate, and a refusal when a guard is missing on an address that other machines reach. */
  async #passage(host: string, isLocal: boolean): Promise<Passage | Fault> {
    const { config, home } = this.kernel
    const tls = await readTls(home.root, config)
    if (tls instanceof Fault) return tls
    if (!isLocal && config.get(TcpSettings.allowedHosts).length === 0)
      return unguarded(host, 'http.allowed_hosts contains no host name for callers', 'set http.allowed_hosts')
    if (!isLocal && !tls && !config.get(TcpSettings.plaintext))
      return unguarded(
        host,
        'without encryption, tokens can be read in transit',
        'set http.tls.cert and http.tls.key, or http.plaintext to true if a proxy encrypts,',
      )
    return tls ? { tls } : {}
  }

  async #listen(host: string, passage: Passage): Promise<Fault | undefined> {
    const port = this.kernel.config.get(TcpSettings.port)
    try {
      const bound = await this.kernel.needs.listeners.listen({ host, port, ...passage }, this)
      this.kernel.scope.defer('listener', bound.close)
      this.#site = { ...this.#site, port: bound.port, tls: passage.tls !== undefined }
      return undefined
    } catch (error) {
      if (error instanceof Fault) return error
      if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') {
        return new Fault('http_port_in_use', 500, `the HTTP port ${port} on ${host} is taken by another program`, {
          next: command('config set', 'http.port', '0'), // any port that is free
        })
      }
      return new Fault('http_listen_failed', 500, `cannot listen on ${host}:${port}: ${messageOf(error)}`, {
        next: 'check http.host and http.port in config.json',
      })
    }
  }
}
