import { createHash } from 'node:crypto'
import type { Element } from '@xmpp/client-core'
import {
  type Adapter,
  type Check,
  clip,
  type Delivery,
  type DeliveryResult,
  type Host,
  type Instance,
  messageOf,
  NotSent,
  realTiming,
  type SettleResult,
  Standing,
  silence,
  type Target,
  type Timing,
  type Unsettled,
} from '../../bridge-kit/src/index.js'
import { bareOf, isAddress, resourceOf } from './address.js'
import { configOf, type XmppConfig } from './config.js'
import { type Heard, XmppConnection } from './connection.js'
import { hasId, NS, occupantIdOf } from './stanzas.js'

/** Retry interval for rooms that are not joined. */
const AGAIN_MS = 25_000
/** Rooms checked by a verification; the daemon accepts 100 checks. */
const MOST_CHECKED = 90
/** How long a lookup waits for a connection. */
const CONNECTED_MS = 20_000
/** Allowed clock skew between the server and this machine. */
const SKEW_MS = 5 * 60_000

/** Opens one instance, which reconnects until it is closed. */
export function openXmpp(instance: Instance, host: Host, timing: Timing = realTiming): Adapter {
  return new XmppBridge(configOf(instance), host, timing)
}

class XmppBridge implements Adapter {
  #connection: XmppConnection | undefined
  readonly #standing: Standing
  readonly #running: Promise<void>
  /** Live events wait here until the archive of earlier messages was read. */
  #inbound: Promise<void> = Promise.resolve()
  #waiters: (() => void)[] = []
  /** Rooms of the latest connection, which may already be lost. */
  #rooms: XmppConnection['rooms'] | undefined
  #since = 0
  #lostAt: number | undefined

  constructor(
    private readonly config: XmppConfig,
    private readonly host: Host,
    private readonly timing: Timing,
  ) {
    this.#standing = new Standing(host, timing)
    this.#running = this.#standing.keep(config.account, () => this.#connect())
  }

  async deliver(delivery: Delivery): Promise<DeliveryResult> {
    const { event, text, remote_message_id: remote } = delivery
    if (event === 'delete') throw new NotSent('unsupported_capability', 'XMPP messages cannot be withdrawn')
    const connection = this.#connection
    if (!connection) throw new NotSent('transient_delivery_failure', 'not connected', { retryAfterMs: 1000 })
    const { to, type } = this.#destination(delivery)
    if (type === 'groupchat' && !connection.rooms.isJoined(to)) {
      if (!connection.rooms.has(to))
        throw new NotSent('unknown_destination', `${to} is not among the rooms of the bridge`)
      throw new NotSent('transient_delivery_failure', `not in ${to}`, { retryAfterMs: 2000 })
    }
    if (event === 'typing') {
      await connection.compose(to, type)
      return { status: 'delivered' }
    }
    return connection.say(to, type, idOf(delivery), text, remote)
  }

  async settle(unsettled: Unsettled): Promise<SettleResult> {
    const { since, remote_message_id: remote } = unsettled
    const connection = await this.#connected()
    const { to, type } = this.#destination(unsettled)
    const room = type === 'groupchat' ? to : undefined
    const id = idOf(unsettled)
    // In a room, only the bot can use its nick; in the account's own archive, only the server can write.
    const ours = ({ stanza }: Heard) => {
      const from = stanza.attrs.from ?? this.config.account
      const mine = room === undefined ? bareOf(from) === this.config.account : bareOf(from) === room
      return mine && hasId(stanza, id)
    }
    const keepsAll = await connection.archives(room)
    const query = { since: since - SKEW_MS, ...(room === undefined ? { with: bareOf(to) } : { room }) }
    const { found, whole } = await connection.search(query, ours)
    if (found.some(ours)) return { outcome: 'delivered', remote_message_id: remote ?? id }
    return { outcome: keepsAll && whole ? 'absent' : 'unknown' }
  }

  targets(): readonly Target[] {
    const rooms = this.#connection?.rooms.joined() ?? []
    return rooms.map(room => ({
      group_id: room,
      display_name: room.slice(0, room.indexOf('@')),
      target_type: 'channel',
      qualifier: room.slice(room.indexOf('@') + 1),
    }))
  }

  async verify(): Promise<readonly Check[]> {
    const connection = this.#connection
    if (!connection) {
      const remediation = `Check the JID, the password and that the server of ${this.config.domain} is reachable.${this.#standing.lastAttempt}`
      return [{ check: 'xmpp.connected', status: 'fail', remediation }]
    }
    const alive = await connection.roundTrip().then(
      () => true,
      () => false,
    )
    const archive = await connection.archives().catch(() => false)
    const missing = new Map(connection.rooms.missing())
    return [
      { check: 'xmpp.connected', status: alive ? 'pass' : 'fail', remediation: alive ? '' : 'The server is silent.' },
      {
        check: 'xmpp.archive',
        status: archive ? 'pass' : 'warn',
        remediation: archive
          ? ''
          : 'Without an archive (XEP-0313, default "always") it is unknown which messages arrived before a crash.',
      },
      ...this.config.rooms.slice(0, MOST_CHECKED).map((room): Check => {
        const why = missing.get(room)
        const status = why === undefined ? 'pass' : 'fail'
        return {
          check: clip(`xmpp.room ${room}`, 128),
          status,
          remediation: why === undefined ? '' : `Let the account in: ${why}`,
        }
      }),
    ]
  }

  deaf(): string | undefined {
    const connection = this.#connection
    return connection && silence(this.config.domain, connection.lastHeard, this.config.pingSeconds * 4000, this.timing)
  }

  async close(): Promise<void> {
    await this.#connection?.close()
    await this.#running
  }

  #destination({ target }: Delivery): { readonly to: string; readonly type: 'chat' | 'groupchat' } {
    const to = target.group_id === undefined ? (target.peer_id ?? '') : bareOf(target.group_id)
    if (!isAddress(to)) throw new NotSent('unknown_destination', `${JSON.stringify(clip(to, 80))} is not a JID`)
    return { to, type: target.group_id === undefined ? 'chat' : 'groupchat' }
  }

  /** The current connection, or the next one. */
  async #connected(): Promise<XmppConnection> {
    const timeout = new AbortController()
    const late = this.timing.sleep(CONNECTED_MS, timeout.signal).catch(() => {})
    let isLate = false
    void late.then(() => {
      isLate = true
    })
    while (!this.#connection && !isLate && !this.host.signal.aborted)
      await Promise.race([late, new Promise<void>(resolve => this.#waiters.push(resolve))])
    timeout.abort()
    if (!this.#connection) throw new Error('not connected')
    return this.#connection
  }

  /** Runs one connection; resolves with why it ended. */
  async #connect(): Promise<string> {
    const { signal } = this.host
    try {
      const events = {
        heard: (heard: Heard) => {
          this.#inbound = this.#inbound.then(() => this.#heard(heard))
        },
        changed: (joined?: string) => {
          this.#tell()
          if (joined !== undefined) this.#whileReading(this.#catchUp(joined))
        },
      }
      const connection = await XmppConnection.open(this.config, events, this.timing, signal)
      this.#connection = connection
      this.#rooms = connection.rooms
      this.#since = Math.max(Date.now() - this.config.catchUpMs, (this.#lostAt ?? 0) - SKEW_MS)
      this.#whileReading(this.#catchUp())
      // Presence makes the server deliver and forget stored offline messages, so a check does not announce it.
      if (this.host.purpose === 'service') await connection.announce()
      await connection.rooms.join()
      this.#tell()
      for (const waiter of this.#waiters.splice(0)) waiter()
      const stop = new AbortController()
      void this.#tryAgain(connection, stop.signal)
      const why = await connection.ended.finally(() => stop.abort())
      if (connection.problem) throw connection.problem
      return why
    } finally {
      if (this.#connection) this.#lostAt = Date.now()
      this.#connection = undefined
    }
  }

  /** Fetches messages missed while disconnected; the daemon ignores those it already has. */
  async #catchUp(room?: string): Promise<void> {
    const connection = this.#connection
    if (!connection || this.config.catchUpMs === 0 || !(await connection.archives(room))) return
    const { found } = await connection.search({ since: this.#since, ...(room === undefined ? {} : { room }) })
    const knowsOccupants = room !== undefined && (await connection.roomInfo(room)).has(NS.occupantId)
    for (const heard of found) {
      const id = knowsOccupants ? occupantIdOf(heard.stanza) : undefined
      const person = room === undefined || id === undefined ? undefined : connection.rooms.addressOfOccupant(room, id)
      this.#heard({ ...heard, past: { person } })
    }
  }

  /** Delays live events until the archive was read, because they are newer. */
  #whileReading(reading: Promise<void>): void {
    const read = reading.catch(error => this.host.log(`an archive was not read: ${messageOf(error)}`))
    this.#inbound = this.#inbound.then(() => read)
  }

  async #tryAgain(connection: XmppConnection, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.timing.sleep(AGAIN_MS, signal).catch(() => {})
      if (!signal.aborted) await connection.rooms.join().catch(() => {})
    }
  }

  /** Reports the state of the connection. */
  #tell(): void {
    const missing = this.#connection?.rooms.missing()
    if (missing === undefined) return
    const message = `not in ${missing.map(([room, why]) => `${room} (${why})`).join(', ')}`
    this.#standing.report(
      missing.length === 0 ? { status: 'ready' } : { status: 'degraded', message: clip(message, 500) },
    )
  }

  /** @param past For a message from an archive: the sender, if the room knows it */
  #heard({ stanza, archived, at, past }: Heard & { readonly past?: { readonly person: string | undefined } }): void {
    const rooms = this.#rooms
    const { from = this.config.account, type = 'normal', id } = stanza.attrs
    const body = stanza.getChildText('body') ?? ''
    if (!rooms || body.trim() === '' || !['chat', 'normal', 'groupchat'].includes(type)) return
    const bare = bareOf(from)
    // Skips copies of the account's own messages and end-to-end encrypted ones.
    if (
      bare === this.config.account ||
      rooms.isMine(from) ||
      stanza.getChild('encrypted', 'eu.siacs.conversations.axolotl')
    )
      return
    const inRoom = type === 'groupchat'
    if (inRoom && (!rooms.has(bare) || resourceOf(from) === '' || isHistory(stanza, bare))) return
    const occupant = rooms.has(bare)
    // The nick may belong to another person by now.
    const person = occupant ? (past ? past.person : rooms.addressBehind(from)) : bare
    const nick = rooms.nickIn(bare)
    const named = inRoom ? addressed(body, nick) : body
    const replaces = stanza.getChild('replace', NS.correct)?.attrs.id
    const reply = stanza.getChild('reply', 'urn:xmpp:reply:0')?.attrs.id
    void this.host
      .ingest({
        idempotency_key: keyOf(stanza, bare, archived),
        family: replaces === undefined ? 'message' : 'edit',
        sender: {
          id: person ?? `${bare}/${resourceOf(from)}`,
          ...(occupant ? { username: resourceOf(from), display_name: resourceOf(from) } : { username: bare }),
          // The server vouches for a JID; a nick in a room that hides JIDs is no identity.
          authenticated: person !== undefined,
        },
        peer_id: inRoom ? (person ?? `${bare}/${resourceOf(from)}`) : occupant ? `${bare}/${resourceOf(from)}` : bare,
        ...(inRoom ? { group_id: bare } : {}),
        ...((replaces ?? id) === undefined ? {} : { message_id: (replaces ?? id) as string }),
        ...(reply === undefined ? {} : { reply_to_message_id: reply }),
        text: named === undefined || named === '' ? body : named,
        addressed: named !== undefined,
        ...(at === undefined ? {} : { received_at: at }),
      })
      .catch(error => this.host.log(`an event was not accepted by the daemon: ${messageOf(error)}`))
  }
}

/** Stanza id of a delivery: the nonce; for a correction also a digest of the text. */
function idOf({ nonce, text, remote_message_id: remote }: Delivery): string {
  if (remote === undefined) return nonce
  return `${nonce}.${createHash('sha256').update(text).digest('hex').slice(0, 12)}`
}

/** Whether a room replays the message. A sender may claim an old time, so only the room's own delay counts. */
function isHistory(stanza: Element, room: string): boolean {
  const delays = stanza.getChildren('delay', NS.delay)
  return delays.some(({ attrs }) => attrs.from === undefined || bareOf(attrs.from) === room)
}

function keyOf(stanza: Element, bare: string, archived: string | undefined): string {
  if (archived !== undefined) return clip(`mam:${bare}:${archived}`, 256)
  const id = stanza.getChild('origin-id', NS.sid)?.attrs.id ?? stanza.attrs.id
  const said = `${stanza.attrs.from} ${id ?? stanza.getChild('delay', NS.delay)?.attrs.stamp ?? ''} ${stanza.getChildText('body')}`
  return `id:${createHash('sha256').update(said).digest('hex').slice(0, 32)}`
}

/** The text after `nick: ` or `@nick `; undefined: it is not addressed to the nick. */
function addressed(text: string, nick: string): string | undefined {
  const at = text.startsWith('@') ? 1 : 0
  if (text.slice(at, at + nick.length).toLowerCase() !== nick.toLowerCase()) return undefined
  const rest = text.slice(at + nick.length)
  const [separator] = /^(?:\s*[:,]\s*|\s+|$)/.exec(rest) ?? []
  return separator === undefined ? undefined : rest.slice(separator.length)
}
