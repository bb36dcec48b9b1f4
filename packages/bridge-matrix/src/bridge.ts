import { createHash } from 'node:crypto'
import {
  type Adapter,
  Arrivals,
  backoffMs,
  type Check,
  clip,
  type Delivery,
  type DeliveryResult,
  fileMissing,
  type Host,
  type InboundEvent,
  IngestRefused,
  type Instance,
  messageOf,
  NotSent,
  realTiming,
  type SettleResult,
  type StateReport,
  type Target,
  type Timing,
  type Unsettled,
} from '../../bridge-kit/src/index.js'
import { failureOf, isRefused, isTransient, MatrixClient, MatrixError } from './client.js'
import { configOf, isEvent, isRoom, isUser, type MatrixConfig, mayInvite } from './config.js'
import { contentOf, NONCE } from './content.js'
import { eventOf, type FileOf, fileOf, type RoomEvent, type Self } from './events.js'
import { type Room, Rooms } from './rooms.js'
import { BACKFILL_FILTER, eventsIn, isOwnJoin, type JoinedRoom, readSync, SYNC_FILTER, sinceJoin } from './sync.js'

const CALL_MS = 15_000
/** Added to the long-poll time for the request timeout. */
const GRACE_MS = 15_000
/** An empty response that arrives faster is no long poll; the loop then waits this long. */
const IDLE_MS = 1000
const MOST_SYNC_BYTES = 32 * 1024 * 1024
const MOST_PAGE_BYTES = 8 * 1024 * 1024
const PAGE = 100
/** Pages of older messages that are read after a disconnection or to find a message. */
const MOST_PAGES = 5
/** Interval at which a position without new events is saved. */
const KEEP_MS = 10 * 60_000
const MOST_OWN = 2000
/** Bytes of a file that the daemon accepts. */
const MOST_FILE_BYTES = 8 * 1024 * 1024
/** Allowed clock skew between this machine and the server. */
const SKEW_MS = 5 * 60_000
/** Event errors for which a retry is useless. */
const HOPELESS = new Set(['bridge_event_invalid', 'invalid_params'])

const ENCRYPTED =
  'This room is encrypted, and I cannot read encrypted messages. Please talk to me in a room without encryption.'

/** Opens one instance, which polls for events until it is closed. */
export function openMatrix(instance: Instance, host: Host, timing: Timing = realTiming): Adapter {
  return new MatrixBridge(configOf(instance), host, timing)
}

class MatrixBridge implements Adapter {
  readonly #client: MatrixClient
  readonly #arrivals: Arrivals
  readonly #running: Promise<void>
  /** Ids of events that the bot sent. */
  readonly #own = new Set<string>()
  /** Configured rooms that could not be joined, with the reason. */
  readonly #unjoined = new Map<string, string>()
  #self: Self | undefined
  #rooms: Rooms | undefined
  /** Sync position up to which the daemon has all events. */
  #since: string | undefined
  #keptAt = 0
  #askedAt: number | undefined
  #answers = 0
  #changes = 0
  #reported = ''

  constructor(
    private readonly config: MatrixConfig,
    private readonly host: Host,
    private readonly timing: Timing,
  ) {
    this.#client = new MatrixClient(config, host.signal)
    this.#arrivals = new Arrivals(host)
    this.#running = this.#run()
  }

  async deliver(delivery: Delivery): Promise<DeliveryResult> {
    const { event, text, target, remote_message_id: id } = delivery
    const known = id === undefined ? {} : { remote_message_id: id }
    if (event === 'progress' || (event !== 'delete' && text.trim() === '')) return { status: 'delivered', ...known }
    if (id !== undefined && !isEvent(id))
      throw new NotSent('unknown_destination', `${JSON.stringify(clip(String(id), 80))} is not a Matrix message`)
    try {
      const room = await this.#roomOf(target)
      const made = event === 'delete' ? await this.#redact(room, id) : await this.#send(room, delivery)
      return { status: 'delivered', ...(made === undefined ? {} : { remote_message_id: made }) }
    } catch (error) {
      if (isRefused(error)) this.#report(REFUSED)
      throw failureOf(error)
    }
  }

  /**
   * Searches for the message in the bot's recent messages. If it is missing, a retry is safe: it uses the same transaction id, so
   * the server creates only one event.
   */
  async settle(unsettled: Unsettled): Promise<SettleResult> {
    // An update is idempotent.
    if (unsettled.remote_message_id !== undefined) return { outcome: 'absent' }
    try {
      return await this.#find(unsettled)
    } catch (error) {
      this.host.log(`a message cannot be looked for: ${messageOf(error)}`)
      return { outcome: 'unknown' }
    }
  }

  async targets(): Promise<readonly Target[]> {
    return (await this.#rooms?.targets()) ?? []
  }

  async verify(): Promise<readonly Check[]> {
    const checks: Check[] = []
    const add = (check: string, why: string | undefined) => {
      checks.push({ check, status: why === undefined ? 'pass' : 'fail', remediation: why ?? '' })
    }
    const who = await this.#client.call('GET', ['account', 'whoami']).then(() => undefined, messageOf)
    add('matrix.login', who === undefined ? undefined : `Bind a valid access_token. ${who}`)
    if (who !== undefined) return checks
    const isReady = this.#reported.includes('"ready"') && this.deaf() === undefined
    add('matrix.sync', isReady ? undefined : `${this.deaf() ?? 'No events are received.'}`)
    for (const room of this.config.rooms) add(`matrix.room ${room}`, this.#unjoined.get(room))
    return checks
  }

  deaf(): string | undefined {
    if (this.#askedAt === undefined) return undefined
    const silentMs = this.timing.now() - this.#askedAt
    return silentMs > (this.config.pollSeconds * 1000 + GRACE_MS) * 2
      ? `the homeserver has not answered requests for events for ${Math.round(silentMs / 1000)} s`
      : undefined
  }

  close(): Promise<void> {
    return this.#running
  }

  async #roomOf({ group_id: group, peer_id: peer }: Delivery['target']): Promise<string> {
    const rooms = this.#rooms
    if (!rooms) throw new NotSent('transient_delivery_failure', 'not connected to the homeserver yet')
    if (group === undefined && isUser(peer)) return rooms.directOf(peer)
    if (!isRoom(group))
      throw new NotSent('unknown_destination', `${JSON.stringify(clip(group ?? peer ?? '', 80))} is not a room`)
    return group
  }

  async #find({ nonce, since, target }: Unsettled): Promise<SettleResult> {
    const room = await this.#roomOf(target)
    const filter = JSON.stringify({ types: ['m.room.message'], senders: [this.#self?.user] })
    let from: string | undefined
    for (let page = 0; page < MOST_PAGES; page++) {
      const { events, end } = await this.#page(room, { filter, ...(from === undefined ? {} : { from }) })
      const found = events.find(
        ({ unsigned, content }) => unsigned?.transaction_id === nonce || content?.[NONCE] === nonce,
      )
      if (isEvent(found?.event_id)) return { outcome: 'delivered', remote_message_id: found.event_id }
      const isOlder = events.some(({ origin_server_ts: at }) => typeof at === 'number' && at < since - SKEW_MS)
      if (isOlder || end === undefined) return { outcome: 'absent' }
      from = end
    }
    return { outcome: 'unknown' }
  }

  async #send(room: string, delivery: Delivery): Promise<string | undefined> {
    if ((await this.#rooms?.get(room))?.encrypted)
      throw new NotSent('unsupported_capability', 'the room is encrypted: use one without encryption')
    const { remote_message_id: id, nonce } = delivery
    // The server deduplicates a repeated message by its transaction id. A change needs a new id, because it may restore an earlier
    // text.
    const transaction = id === undefined ? nonce : this.#transaction()
    const path = ['rooms', room, 'send', 'm.room.message', transaction]
    const { event_id: made } = await this.#client.call('PUT', path, { body: contentOf(delivery) })
    if (id !== undefined) return id
    if (!isEvent(made)) return undefined
    this.#isOurs(made)
    return made
  }

  async #redact(room: string, id: string | undefined): Promise<string | undefined> {
    if (id === undefined) return undefined
    await this.#client.call('PUT', ['rooms', room, 'redact', id, this.#transaction()], { body: {} }).catch(error => {
      // The message is already gone.
      if (!(error instanceof MatrixError && error.status === 404)) throw error
    })
    return id
  }

  #transaction(): string {
    return `svc-${Date.now().toString(36)}-${process.pid}-${++this.#changes}`
  }

  #isOurs(event: string): void {
    this.#own.add(event)
    for (const oldest of this.#own) {
      if (this.#own.size <= MOST_OWN) return
      this.#own.delete(oldest)
    }
  }

  async #run(): Promise<void> {
    const { signal } = this.host
    for (let failures = 1; !signal.aborted; failures++) {
      const answers = this.#answers
      const error = await this.#poll().catch(problem => problem as unknown)
      if (signal.aborted) return
      if (this.#answers !== answers) failures = 1
      if (isRefused(error)) {
        this.#report(REFUSED)
        return
      }
      const pause = error instanceof MatrixError ? error.retryAfterMs : undefined
      const reason = pause === undefined ? 'provider_timeout' : 'rate_limited'
      this.#report({ status: 'degraded', reason, message: clip(messageOf(error), 500) })
      await this.timing.sleep(pause ?? backoffMs(failures, this.timing), signal).catch(() => {})
    }
  }

  /** Polls for events until an error. */
  async #poll(): Promise<never> {
    const self = this.#self ?? (await this.#introduce())
    // The first response is immediate.
    for (let seconds = 0; ; seconds = this.config.pollSeconds) {
      const startedAt = this.timing.now()
      this.#askedAt = startedAt
      const answer = await this.#sync(seconds).finally(() => {
        this.#askedAt = undefined
      })
      const { next, joined, invites } = readSync(answer, self.user)
      this.#answers++
      for (const { room, from } of invites) await this.#invited(room, from)
      // Messages from before the first start get no answer.
      if (this.#since !== undefined) await this.#take(joined, this.#since)
      await this.#advance(next, joined.length > 0)
      this.#report({ status: 'ready' })
      const isIdle = seconds > 0 && joined.length + invites.length === 0 && this.timing.now() - startedAt < IDLE_MS
      if (isIdle) await this.timing.sleep(IDLE_MS, this.host.signal)
    }
  }

  async #introduce(): Promise<Self> {
    const { user_id: user } = await this.#client.call('GET', ['account', 'whoami'])
    if (!isUser(user)) throw new Error('the homeserver did not identify the bot')
    const profile = this.#client.call('GET', ['profile', user, 'displayname'])
    const { displayname: name } = await profile.catch((): { readonly displayname?: unknown } => ({}))
    const rooms = new Rooms(this.#client, this.host, user)
    for (const room of this.config.rooms) {
      const why = await rooms.join(room).then(
        () => undefined,
        error => {
          if (isRefused(error) || (error instanceof MatrixError && error.retryAfterMs !== undefined)) throw error
          return messageOf(error)
        },
      )
      if (why === undefined) this.#unjoined.delete(room)
      else {
        this.#unjoined.set(room, why)
        this.host.log(`${room} cannot be joined: ${why}`)
      }
    }
    const kept = (await this.host.values.get('since')) as
      | { readonly user?: unknown; readonly token?: unknown }
      | undefined
    if (kept?.user === user && typeof kept.token === 'string') this.#since = kept.token
    this.#rooms = rooms
    this.#self = { user, ...(typeof name === 'string' ? { name } : {}) }
    return this.#self
  }

  async #sync(seconds: number): Promise<Readonly<Record<string, unknown>>> {
    const since = this.#since === undefined ? {} : { since: this.#since }
    try {
      return await this.#client.call('GET', ['sync'], {
        query: { filter: SYNC_FILTER, timeout: String(seconds * 1000), set_presence: 'offline', ...since },
        timeoutMs: seconds * 1000 + GRACE_MS,
        mostBytes: MOST_SYNC_BYTES,
      })
    } catch (error) {
      if (this.#since !== undefined && error instanceof MatrixError && error.status === 400) {
        this.host.log(`the homeserver no longer knows the sync position, so events may be lost: ${error.message}`)
        this.#since = undefined
      }
      throw error
    }
  }

  /** The position advances once the daemon has all messages before it. */
  async #advance(next: string, isNews: boolean): Promise<void> {
    const now = this.timing.now()
    if (this.#since === undefined || isNews || now - this.#keptAt > KEEP_MS) {
      await this.host.values.put('since', { user: this.#self?.user, token: next })
      this.#keptAt = now
    }
    this.#since = next
  }

  async #invited(room: string, from: string): Promise<void> {
    if (!isRoom(room) || !isUser(from)) return
    if (!mayInvite(this.config, from)) {
      this.host.log(`an invite by ${from} is not accepted: name them in provider_config.invites_from`)
      return
    }
    try {
      await this.#client.call('POST', ['rooms', room, 'join'], { body: {}, timeoutMs: CALL_MS })
      this.#rooms?.forget(room)
    } catch (error) {
      if (isTransient(error) || isRefused(error)) throw error
      this.host.log(`the room ${room} cannot be joined: ${messageOf(error)}`)
    }
  }

  /** Hands the events of rooms to the daemon. Rejects unless all are durable or need no handling. */
  async #take(joined: readonly JoinedRoom[], since: string): Promise<void> {
    const taken: Promise<boolean>[] = []
    for (const one of joined) {
      if (!isRoom(one.room)) continue
      try {
        taken.push(...(await this.#takeRoom(one, since)))
      } catch (error) {
        if (isTransient(error) || isRefused(error)) {
          await Promise.all(taken)
          throw error
        }
        // The bot may have been removed from the room meanwhile.
        this.host.log(`events of ${one.room} are not read: ${messageOf(error)}`)
      }
    }
    if ((await Promise.all(taken)).includes(false)) throw new Error('the daemon does not take an event')
  }

  async #takeRoom(one: JoinedRoom, since: string): Promise<readonly Promise<boolean>[]> {
    const { room, changed, before } = one
    const self = this.#self
    const rooms = this.#rooms
    if (!self || !rooms) return []
    if (changed) rooms.forget(room)
    const older =
      before === undefined || one.events.some(event => isOwnJoin(event, self.user))
        ? []
        : await this.#older(room, before, since)
    const events = sinceJoin([...older, ...one.events], self.user)
    const isNew = events.length < older.length + one.events.length
    const said = events.filter(({ sender, state_key: state }) => sender !== self.user && state === undefined)
    if (said.length === 0 && !isNew) return []
    const known = await rooms.get(room)
    if (known.encrypted) {
      await this.#tellEncrypted(room)
      return []
    }
    if (known.peer !== undefined) await rooms.learnDirect(known.peer, room)
    const found: Promise<boolean>[] = []
    for (const event of said) {
      const inbound = await this.#eventOf(event, room, known)
      if (inbound) found.push(this.#ingest(inbound, inbound.family === 'message' ? fileOf(event) : undefined))
    }
    return found
  }

  /** The events between a position and the start of a response, limited to some pages. */
  async #older(room: string, before: string, since: string): Promise<readonly RoomEvent[]> {
    const found: RoomEvent[] = []
    let from = before
    for (let page = 0; page < MOST_PAGES; page++) {
      const { events, end } = await this.#page(room, { filter: BACKFILL_FILTER, from, to: since })
      found.push(...events)
      const isWhole =
        end === undefined || events.length === 0 || events.some(event => isOwnJoin(event, this.#self?.user ?? ''))
      if (isWhole) return found.reverse()
      from = end
    }
    this.host.log(`${room}: events before the latest ${found.length} are not read`)
    return found.reverse()
  }

  /** One page of a room's events, the newest first. */
  async #page(room: string, query: Readonly<Record<string, string>>) {
    const answer = await this.#client.call('GET', ['rooms', room, 'messages'], {
      query: { dir: 'b', limit: String(PAGE), ...query },
      mostBytes: MOST_PAGE_BYTES,
    })
    return { events: eventsIn(answer.chunk), end: typeof answer.end === 'string' ? answer.end : undefined }
  }

  async #eventOf(event: RoomEvent, room: string, { peer }: Room): Promise<InboundEvent | undefined> {
    const self = this.#self
    if (!self) return undefined
    const where = { room, direct: peer !== undefined }
    const named: string[] = []
    const read = (isOwn: (id: string) => boolean): InboundEvent | undefined => {
      try {
        return eventOf(event, self, { ...where, isOwn })
      } catch (error) {
        this.host.log(`an event could not be parsed: ${messageOf(error)}`)
        return undefined
      }
    }
    const found = read(id => named.push(id) > 0 && this.#own.has(id))
    if (!found || found.addressed || named.length === 0) return found
    // The event may refer to a message from before the last start.
    for (const id of named) await this.#learnOwn(room, id)
    return read(id => this.#own.has(id))
  }

  async #learnOwn(room: string, id: string): Promise<void> {
    if (this.#own.has(id)) return
    const { sender } = await this.#client.call('GET', ['rooms', room, 'event', id]).catch(error => {
      if (isTransient(error) || isRefused(error)) throw error
      return { sender: undefined }
    })
    if (sender === this.#self?.user) this.#isOurs(id)
  }

  /** Posts once in an encrypted room that messages cannot be read there. */
  async #tellEncrypted(room: string): Promise<void> {
    const key = `encrypted/${createHash('sha256').update(room).digest('hex').slice(0, 32)}`
    if ((await this.host.values.get(key)) !== undefined) return
    const content = { msgtype: 'm.notice', body: ENCRYPTED, 'm.mentions': {} }
    const path = ['rooms', room, 'send', 'm.room.message', `svc-${key.replace('/', '-')}`]
    await this.#client.call('PUT', path, { body: content }).catch(error => {
      if (isTransient(error) || isRefused(error)) throw error
      this.host.log(`${room} is encrypted, and the notice about this could not be sent: ${messageOf(error)}`)
    })
    await this.host.values.put(key, true)
  }

  /** Resolves with whether the event needs no further handling. */
  #ingest(event: InboundEvent, file: FileOf | undefined): Promise<boolean> {
    const complete = file === undefined ? undefined : (one: InboundEvent) => this.#withFile(one, file)
    return this.#arrivals.take(event, complete).then(
      () => true,
      error => {
        if (this.host.signal.aborted) return false
        this.host.log(`an event was not accepted by the daemon: ${messageOf(error)}`)
        return error instanceof IngestRefused && HOPELESS.has(error.code)
      },
    )
  }

  /** The event with its file; a note replaces a file that is unavailable. */
  async #withFile(event: InboundEvent, { name, type, at, size }: FileOf): Promise<InboundEvent> {
    const without = (why: string) => ({
      ...event,
      text: [event.text, fileMissing(name, why)].filter(Boolean).join('\n'),
    })
    if (!event.addressed && !this.config.answersAll) return without('the message is not addressed to the bot')
    if (at === undefined) return without('it has no address')
    if (size > MOST_FILE_BYTES) return without('it is larger than 8 MiB')
    try {
      const data = await this.#client.file(at, MOST_FILE_BYTES)
      if (data === undefined) return without('it is larger than 8 MiB')
      return data === '' ? without('it is empty') : { ...event, attachments: [{ name, mime_type: type, data }] }
    } catch (error) {
      this.host.log(`a file could not be fetched: ${messageOf(error)}`)
      return without('the homeserver did not deliver it')
    }
  }

  #report(state: StateReport): void {
    const text = JSON.stringify(state)
    if (text === this.#reported) return
    this.#reported = text
    this.host.report(state)
  }
}

const REFUSED: StateReport = {
  status: 'auth_required',
  reason: 'auth_failed',
  message: 'the homeserver refuses the access token: log in as the bot again and bind the new token to access_token',
}
