import { command } from '../../../kernel/kit/commands/command-line.js'
import { Feed } from '../../../kernel/kit/feed.js'
import { resolveSecret } from '../../../kernel/kit/secret-ref.js'
import { shown } from '../../../kernel/kit/text.js'
import { type Actor, messageOf, type Setting } from '../../../kernel/plugin.js'
import { durationMs } from '../../../schemas/duration.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import type {
  AcceptOffersBody,
  ListRemoteOffersReply,
  OfferAcceptance,
  OfferTaskBody,
  RemoteOffer,
} from '../../../schemas/network/offers.js'
import {
  type AddRemotePeerBody,
  type JoinRemoteBody,
  RemoteChannel,
  type RemoteIdentity,
  RemotePeer,
  type RemoteStatus,
} from '../../../schemas/network/remote.js'
import { finding } from '../../desk/daemon/api.js'
import { TaskErrors } from '../../work/tasks/api.js'
import { RemoteErrors } from './api.js'
import type { Link, LinkConfig } from './link.js'
import type { K } from './needs.js'
import type { Signer } from './offers/envelopes.js'
import type { Offers } from './offers/offers.js'
import { OfferAgent, OfferPeers, OffersAtOnce, OfferWorkspace } from './offers/settings.js'
import { sweepOffers } from './offers/table.js'
import type { Connected } from './offers/wire.js'
import type { Identity } from './proof.js'
import { Credentials, RealmSetting, Servers, TlsCa, TlsCert, TlsKey } from './settings.js'
import { type PeerRow, peers, refusals, type ShareRow, shares } from './tables.js'

const KEY = 'vault:network/identity'
/** Accepted clock difference in milliseconds. */
const SKEW_MS = 5 * 60_000
/** Allowed lifetime of an offer. */
const WITHIN = { least: 60_000, most: 7 * 24 * 60 * 60_000 }
/** Milliseconds that a join waits for its connection. */
const SETTLED_MS = 3000
const SWEEP_MS = 10 * 60_000
/** Milliseconds for which expired ids are still remembered, because clocks can be set back. */
const LINGER_MS = 60 * 60_000

/** The daemon in a network of daemons: its key, pinned keys, shared channels, and the connection. */
export class RemoteService {
  readonly #feed = new Feed<never>()
  readonly #settings = new Feed<never>()
  #link: Link | undefined
  /** Wakes when the link changes or fails. */
  readonly #linkFeed = new Feed<never>()
  #failure: string | undefined
  #identity: Promise<Identity> | undefined
  /** Wakes when there is work for offers. */
  readonly #offerFeed = new Feed<never>()
  #offers: Promise<Offers> | undefined
  #signer: Signer | undefined

  constructor(private readonly kernel: K) {}

  /** Called when a message is durable, or shared channels change. */
  wake(): void {
    this.#feed.wake()
  }

  /** Called when the connection settings change. */
  configured(): void {
    // The error of the old connection does not apply to the new one.
    this.#link = undefined
    this.#failure = undefined
    this.#settings.wake()
  }

  /** Called when the settings for accepting offers change. */
  accepting(): void {
    this.#offerFeed.wake()
  }

  /** Compares offers with their runs, starting with the first offer, until the signal aborts. */
  async runOffers(signal: AbortSignal): Promise<void> {
    await this.#untilOffers(signal)
    if (!signal.aborted) await (await this.#loaded()).run(signal)
  }

  /** Handles offers within a connection. */
  async #offering(connected: Connected, signal: AbortSignal): Promise<void> {
    await this.#untilOffers(signal)
    const [{ OfferWire }, offers] = await Promise.all([import('./offers/wire.js'), this.#loaded()])
    if (signal.aborted || !this.#signer) return
    offers.signer = this.#signer
    await new OfferWire(this.kernel, offers, connected, signal).run()
  }

  async #untilOffers(signal: AbortSignal): Promise<void> {
    const wake = () => this.#offerFeed.wake()
    signal.addEventListener('abort', wake, { once: true })
    for (let next = this.#offerFeed.next(); !signal.aborted && !this.#hasOffers(); next = this.#offerFeed.next())
      await next
    signal.removeEventListener('abort', wake)
  }

  #hasOffers(): boolean {
    const { config, db } = this.kernel
    const open = `SELECT 1 FROM network_nats_given WHERE ended_at IS NULL UNION ALL SELECT 1 FROM network_nats_taken WHERE told_at IS NULL LIMIT 1`
    return config.get(OfferAgent) !== '' || db.row(open) !== undefined
  }

  #loaded(): Promise<Offers> {
    this.#offers ??= import('./offers/offers.js').then(({ Offers }) => new Offers(this.kernel, this.#offerFeed))
    return this.#offers
  }

  /**
   * Offers a task to the realm. @throws Fault `remote_off`, `remote_offer_invalid`, `remote_offer_exists`, those of
   * tasks
   */
  async offer({ task, within = '24h' }: OfferTaskBody, actor: Actor): Promise<RemoteOffer> {
    const { tasks } = this.kernel.needs
    if (tasks.titleOf(task) === undefined) throw TaskErrors.task_not_found(`task not found: ${shown(task)}`)
    if (!this.#isOn()) throw RemoteErrors.remote_off()
    const ms = durationMs(within) ?? 0
    if (ms < WITHIN.least || ms > WITHIN.most)
      throw RemoteErrors.remote_offer_invalid(`within: has to be 1m to 7d, not ${within}`)
    return (await this.#loaded()).offer(actor, task, ms)
  }

  /** Returns a task to this daemon. @throws Fault `remote_offer_not_found` */
  async withdraw(task: string, actor: Actor): Promise<void> {
    await (await this.#loaded()).withdraw(actor, task)
  }

  async listOffers(): Promise<ListRemoteOffersReply> {
    const { listOffers } = await import('./offers/offers.js')
    return { offers: listOffers(this.kernel), accepts: this.#acceptance() ?? null }
  }

  #acceptance(): OfferAcceptance | undefined {
    const { config } = this.kernel
    const [agent, workspace] = [config.get(OfferAgent), config.get(OfferWorkspace)]
    if (agent === '' || workspace === '') return undefined
    return { agent, workspace, at_once: config.get(OffersAtOnce), peers: config.get(OfferPeers) }
  }

  /**
   * Lets an agent work on offers of other daemons from now on. @throws Fault `remote_peer_not_found`, those of agents,
   * workspaces and the configuration
   */
  async accept(
    { agent, workspace, at_once: atOnce = 1, peers: names = [] }: AcceptOffersBody,
    actor: Actor,
  ): Promise<OfferAcceptance> {
    const { agents, workspaces } = this.kernel.needs
    const found = await workspaces.find(workspace)
    // Checked now, because an agent that cannot start would fail tasks of others later.
    await agents.plan(agent, found)
    const only = [...new Set(names)]
    for (const name of only)
      if (!peers.get(this.kernel.db, { name, revokedAt: null }))
        throw RemoteErrors.remote_peer_not_found(`there is no trusted daemon ${shown(name)}`, {
          next: command('network peer keys'),
        })
    const [id, all] = [found.id, { [OffersAtOnce.path]: atOnce, [OfferPeers.path]: only }]
    await this.#write({ [OfferAgent.path]: agent, [OfferWorkspace.path]: id, ...all }, actor)
    return { agent, workspace: id, at_once: atOnce, peers: only }
  }

  /** Accepts no more offers; accepted ones are finished. */
  async refuse(actor: Actor): Promise<void> {
    await this.#write({ [OfferAgent.path]: '', [OfferWorkspace.path]: '', [OfferPeers.path]: [] }, actor)
  }

  /** Keeps the configured connection until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    await this.kernel.needs.daemon.released(signal)
    const stop = () => this.#settings.wake()
    signal.addEventListener('abort', stop)
    while (!signal.aborted) {
      const changed = this.#settings.next()
      const inner = new AbortController()
      const running = this.#isOn() ? this.#linked(inner.signal) : undefined
      await changed
      inner.abort()
      await running
    }
    signal.removeEventListener('abort', stop)
  }

  /** Never rejects: configuration errors are part of the status until a change. */
  async #linked(signal: AbortSignal): Promise<void> {
    const { clock, ids, log } = this.kernel
    this.#failure = undefined
    try {
      const [{ Link }, config, identity] = await Promise.all([import('./link.js'), this.#config(), this.identity()])
      this.#signer = { identity, realm: config.realm }
      const link = new Link(this.kernel, config, identity, this.#feed, [(...on) => this.#offering(...on)])
      this.#link = link
      this.#linkFeed.wake()
      const sweeping = this.#sweep(signal)
      await link.run(signal)
      await sweeping
    } catch (error) {
      this.#failure = messageOf(error)
      log.warn('the network has no connection to other daemons', { error: this.#failure })
      this.#linkFeed.wake()
      // Retried, because a missing secret may be stored later.
      const retry = clock.timeout(60_000 * (1 + ids.random()), () => this.configured())
      signal.addEventListener('abort', () => retry.cancel())
    } finally {
      this.#link = undefined
    }
  }

  async #sweep(signal: AbortSignal): Promise<void> {
    const { clock, db } = this.kernel
    while (!signal.aborted) {
      await db.tx(t => {
        t.run('DELETE FROM network_nats_seen WHERE expires_at < ?', [clock.now() - LINGER_MS])
        sweepOffers(t, clock.now())
      })
      await clock.sleep(SWEEP_MS, signal).catch(() => {})
    }
  }

  #isOn(): boolean {
    const { config } = this.kernel
    return config.get(Servers).length > 0 && config.get(RealmSetting) !== ''
  }

  async #config(): Promise<LinkConfig> {
    const { config } = this.kernel
    const text = (setting: Setting<string>) => config.get(setting) || undefined
    const secret = async (setting: Setting<string>) => {
      const reference = text(setting)
      return reference === undefined ? undefined : resolveSecret(this.kernel, reference, setting.path)
    }
    return {
      servers: config.get(Servers),
      realm: config.get(RealmSetting),
      credentials: await secret(Credentials),
      tls: { ca: text(TlsCa), cert: text(TlsCert), key: await secret(TlsKey) },
    }
  }

  /** The key of this daemon, created on first use. */
  identity(): Promise<Identity> {
    this.#identity ??= this.#readIdentity().catch(error => {
      this.#identity = undefined
      throw error
    })
    return this.#identity
  }

  async #readIdentity(): Promise<Identity> {
    const { identityOf, newSecret } = await import('./proof.js')
    const { vault } = this.kernel.needs
    const known = await vault.reveal(KEY)
    if (known !== undefined) return identityOf(known)
    const secret = newSecret()
    await vault.put(KEY, secret, { kind: 'network_identity' })
    return identityOf(secret)
  }

  async shownIdentity(): Promise<RemoteIdentity> {
    const { daemon, publicKey, fingerprint } = await this.identity()
    return { daemon, public_key: publicKey, fingerprint }
  }

  /**
   * Pins the key of another daemon. @throws Fault `remote_key_invalid`, `remote_fingerprint_mismatch`,
   * `remote_peer_exists`
   */
  async addPeer({ name, public_key, fingerprint }: AddRemotePeerBody): Promise<RemotePeer> {
    const { keyNameOf } = await import('./proof.js')
    const key = keyNameOf(public_key.trim())
    if (!key) throw RemoteErrors.remote_key_invalid()
    if (key.fingerprint !== fingerprint.trim())
      throw RemoteErrors.remote_fingerprint_mismatch(`the fingerprint of this key is ${key.fingerprint}`)
    if (key.publicKey === (await this.identity()).publicKey)
      throw RemoteErrors.remote_key_invalid('this is the key of this daemon itself')
    const row: PeerRow = { name, ...key, addedAt: this.kernel.clock.now() }
    await this.kernel.db.tx(t => {
      const known = peers.get(t, { name }) ?? peers.get(t, { publicKey: key.publicKey })
      if (known) throw RemoteErrors.remote_peer_exists(`${known.name} has the key ${known.fingerprint}`)
      peers.insert(t, row)
    })
    return this.#wirePeer(row)
  }

  /**
   * Revokes the key of a daemon. The daemon stays listed, so that its messages are refused by name. @throws Fault
   * `remote_peer_not_found`
   */
  async removePeer(name: string): Promise<void> {
    const { clock, db, needs } = this.kernel
    await db.tx(t => {
      if (!peers.get(t, { name }))
        throw RemoteErrors.remote_peer_not_found(`there is no daemon ${JSON.stringify(name)}`)
      peers.update(t, { name, revokedAt: null }, { revokedAt: clock.now() })
      for (const { channel, workspaceId } of shares.all(t)) needs.network.remotePeers(t, workspaceId, channel, name, [])
    })
    this.#offerFeed.wake()
  }

  listPeers(): RemotePeer[] {
    return peers.all(this.kernel.db, {}, 'ORDER BY name LIMIT 10000').map(row => this.#wirePeer(row))
  }

  #wirePeer(row: PeerRow): RemotePeer {
    const sql = 'SELECT ifnull(sum(n), 0) AS n FROM network_nats_refusal WHERE peer = ?'
    return peers.wire(row, RemotePeer, {
      status: row.revokedAt === undefined ? 'trusted' : 'revoked',
      clock_skew_ms: row.skewMs ?? null,
      clock_is_off: Math.abs(row.skewMs ?? 0) > SKEW_MS,
      refused: this.kernel.db.get<{ n: number }>(sql, [row.name])?.n ?? 0,
    })
  }

  /**
   * Shares a channel from now on; earlier messages stay local. @throws Fault `channel_not_found`,
   * `remote_channel_taken`, those of workspaces
   */
  async share(channel: string, workspace: string): Promise<RemoteChannel> {
    const { clock, db, needs } = this.kernel
    const { id: workspaceId } = await needs.workspaces.find(workspace)
    needs.network.checkChannel(workspaceId, channel)
    const row: ShareRow = {
      ...{ channel, workspaceId, sharedAt: clock.now(), attempt: 0, acked: 0, received: 0 },
      cursor: this.#newest(workspaceId, channel),
    }
    const made = await db.tx(t => {
      const known = shares.get(t, { channel })
      if (known && known.workspaceId !== workspaceId)
        throw RemoteErrors.remote_channel_taken(`${channel} is shared for the workspace ${known.workspaceId}`)
      if (!known) shares.insert(t, row)
      return known ?? row
    })
    this.wake()
    return shares.wire(made, RemoteChannel)
  }

  /** Position of this daemon's newest message in a channel. */
  #newest(workspaceId: string, channel: string): number {
    const hasMore = (after: number) => this.kernel.needs.network.sent(workspaceId, channel, after, 1).length > 0
    let low = 0
    let high = 1
    while (hasMore(high)) [low, high] = [high, high * 2]
    if (!hasMore(low)) return low
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2)
      if (hasMore(middle)) low = middle
      else high = middle
    }
    return high
  }

  /** @throws Fault `remote_channel_not_found` */
  async unshare(channel: string): Promise<void> {
    const { db, needs } = this.kernel
    await db.tx(t => {
      const share = shares.get(t, { channel })
      if (!share) throw RemoteErrors.remote_channel_not_found(`${JSON.stringify(channel)} is not shared`)
      shares.delete(t, { channel })
      t.run('DELETE FROM network_nats_mark WHERE channel = ?', [channel])
      for (const { name } of peers.all(t)) needs.network.remotePeers(t, share.workspaceId, channel, name, [])
    })
    this.wake()
  }

  listShares(): RemoteChannel[] {
    return shares.all(this.kernel.db, {}, 'ORDER BY channel').map(row => shares.wire(row, RemoteChannel))
  }

  /** Connects to a server from now on. @throws those of the configuration */
  async join(
    { url, realm, credentials_ref: credentials = '', ca = '' }: JoinRemoteBody,
    actor: Actor,
  ): Promise<RemoteStatus> {
    await this.identity()
    await this.#write(
      { [Servers.path]: [url], [RealmSetting.path]: realm, [Credentials.path]: credentials, [TlsCa.path]: ca },
      actor,
    )
    await this.#settled()
    return this.status()
  }

  /** Resolves when a connection is established or failed, or after a timeout. */
  async #settled(): Promise<void> {
    const { clock } = this.kernel
    let isLate = false
    const timer = clock.timeout(SETTLED_MS, () => {
      isLate = true
      this.#linkFeed.wake()
    })
    while (!isLate && this.#failure === undefined) {
      const next = this.#linkFeed.next()
      const link = this.#link
      if (link && link.state.state !== 'connecting') break
      await Promise.race(link ? [next, link.states.next()] : [next])
    }
    timer.cancel()
  }

  /** Closes the connection. Peers and channels are kept. */
  async leave(actor: Actor): Promise<RemoteStatus> {
    await this.#write({ [Servers.path]: [] }, actor)
    return this.status()
  }

  async #write(values: Readonly<Record<string, unknown>>, actor: Actor): Promise<void> {
    const changes = Object.entries(values).map(([path, value]) => ({ path, value }))
    await this.kernel.needs.configuration.write(changes, { actor })
  }

  status(): RemoteStatus {
    const { config, db } = this.kernel
    const link = this.#link?.state
    const error = this.#failure ?? (link && 'error' in link ? link.error : undefined)
    return {
      state: this.#isOn() ? (link?.state ?? (this.#failure === undefined ? 'connecting' : 'away')) : 'off',
      realm: config.get(RealmSetting) || null,
      servers: config.get(Servers),
      ...(link && 'server' in link && { server: link.server }),
      ...(error !== undefined && { error }),
      peers: this.listPeers(),
      channels: this.listShares(),
      accepts: this.#acceptance() ?? null,
      refusals: refusals.all(db, {}, 'ORDER BY at DESC LIMIT 100').map(({ peer, reason, n, at, channel, message }) => ({
        ...{ peer, reason_code: reason, count: n, last_at: new Date(at).toISOString(), channel, message },
      })),
    }
  }

  /** The doctor's items; none while it is off. */
  async check(): Promise<DiagnosticItem[]> {
    if (!this.#isOn()) return []
    const { state, error = '', peers: known, accepts } = this.status()
    const item = (code: string, severity: string, title: string, message: string) =>
      finding({
        id: 'network.remote',
        category: 'network',
        code,
        severity,
        title,
        message,
        suggested_command: command('network remote'),
      })
    const found: DiagnosticItem[] = []
    if (state === 'away')
      found.push(
        item(
          'network_remote_away',
          'warning',
          'The NATS server is not reachable',
          `Messages wait in the store: ${error}`,
        ),
      )
    if (state === 'full')
      found.push(
        item(
          'network_remote_full',
          'warning',
          'The NATS server accepts no messages',
          `They wait in the store: ${error}`,
        ),
      )
    for (const { name, clock_is_off: isOff, clock_skew_ms: skew } of known)
      if (isOff)
        found.push(
          item(
            'network_remote_clock',
            'warning',
            `The clock of ${name} is off`,
            `The clock of ${name} is ${Math.round(Math.abs(skew ?? 0) / 1000)} s ${(skew ?? 0) < 0 ? 'behind' : 'ahead of'} this one`,
          ),
        )
    if (accepts) {
      const why = await (await this.#loaded()).unfit()
      const title = 'No offers of other daemons are accepted'
      if (why !== undefined) found.push(item('network_remote_unfit', 'warning', title, `${title}: ${why}`))
    }
    const day = this.kernel.clock.now() - 24 * 60 * 60_000
    for (const { peer, reason, n, message } of refusals.query(
      this.kernel.db,
      'WHERE at > ? ORDER BY at DESC LIMIT 20',
      [day],
    )) {
      const title = peer === 'self' ? 'Messages of this daemon are refused' : `Messages of ${peer} are refused`
      found.push(item('network_remote_refused', 'warning', title, `${title}: ${n} times ${reason}: ${message}`))
    }
    return found
  }
}
