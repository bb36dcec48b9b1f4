import { randomBytes } from 'node:crypto'
import { type Client, type Element, xml } from '@xmpp/client-core'
import type { IqCaller } from '@xmpp/iq/caller.js'
import { type DeliveryResult, InstanceProblem, NotSent, type Timing, tlsProblem } from '../../bridge-kit/src/index.js'
import { bareOf } from './address.js'
import { createClient, serviceOf } from './client.js'
import type { XmppConfig } from './config.js'
import { Rooms } from './rooms.js'
import { archiveId, archiveQuery, errorOf, hasId, messageOf, NS, type RsmPage } from './stanzas.js'

/** Time limit from the connection to the bound resource. */
const LOGIN_MS = 30_000
/** Time limit of a query, and of a room's reflection of a message. */
const ANSWER_MS = 15_000
/** Milliseconds for a server to close its stream. */
const CLOSE_MS = 1000
/** Pages read of an archive per search. */
const MOST_PAGES = 20

/** A message, live or from an archive. */
export interface Heard {
  readonly stanza: Element
  /** Its archive id, if it is archived. */
  readonly archived: string | undefined
  /** Epoch milliseconds stated by an archive or a server. */
  readonly at: number | undefined
}

/** Events of a connection for the bridge. */
export interface ConnectionEvents {
  heard(heard: Heard): void
  /** Rooms were left, or the named room was joined. */
  changed(joined?: string): void
}

interface Pending {
  readonly to: string
  readonly delivered: () => void
  readonly failed: (error: Error) => void
}

/** One connection of an account, from login to end. */
export class XmppConnection {
  /** Resolves with the reason when the connection ends. */
  readonly ended: Promise<string>
  readonly rooms: Rooms
  lastHeard: number
  readonly #client: Client
  readonly #iq: IqCaller
  readonly #pending = new Map<string, Pending>()
  readonly #archives = new Map<string, { readonly of: string; readonly found: Heard[] }>()
  readonly #over = new AbortController()
  #why = 'the connection was lost'
  #problem: InstanceProblem | undefined
  #end: (why: string) => void = () => {}

  private constructor(
    private readonly config: XmppConfig,
    service: string,
    private readonly events: ConnectionEvents,
    private readonly timing: Timing,
  ) {
    this.lastHeard = timing.now()
    this.ended = new Promise(resolve => {
      this.#end = resolve
    })
    this.rooms = new Rooms(config, stanza => this.#send(stanza), events.changed)
    const { client, iq } = createClient({
      config,
      service,
      timeoutMs: ANSWER_MS,
      heard: () => {
        this.lastHeard = timing.now()
      },
      tooMuch: what => this.#finish(what),
      refuse: why => this.#gaveUp('error', 'tenant_config_invalid', why),
    })
    this.#client = client
    this.#iq = iq
    this.#listen()
  }

  /** Logs in. Rejects with an InstanceProblem if the account is refused, else with an Error. */
  static async open(
    config: XmppConfig,
    events: ConnectionEvents,
    timing: Timing,
    signal: AbortSignal,
  ): Promise<XmppConnection> {
    const connection = new XmppConnection(config, await serviceOf(config), events, timing)
    const close = () => void connection.close()
    signal.addEventListener('abort', close, { once: true })
    void connection.ended.then(() => signal.removeEventListener('abort', close))
    try {
      await connection.#within(LOGIN_MS, connection.#client.start(), 'the login')
      if (signal.aborted) throw new Error('closed')
      void connection.#keepAlive()
      return connection
    } catch (error) {
      const tls = config.encrypted ? tlsProblem(error, config.domain) : undefined
      const problem = connection.#problem ?? (tls === undefined ? loginProblem(error) : new Error(tls))
      void connection.close()
      throw problem
    }
  }

  /** Sends presence, so that the server delivers messages. */
  announce(): Promise<void> {
    return this.#send(xml('presence'))
  }

  /** Closes the connection; resolves when it has ended. */
  async close(): Promise<void> {
    this.#finish('closed')
    // Else the client itself waits for a silent server, and keeps the process alive, as long as for an answer.
    this.#client.timeout = CLOSE_MS
    await Promise.race([this.#client.stop().catch(() => {}), this.timing.sleep(CLOSE_MS).catch(() => {})])
    this.#destroy()
  }

  /** Sends a message and waits until the server has accepted it: a room reflects it, and an error would have arrived. */
  async say(
    to: string,
    type: 'chat' | 'groupchat',
    id: string,
    text: string,
    replaces?: string,
  ): Promise<DeliveryResult> {
    if (this.#over.signal.aborted)
      throw new NotSent('transient_delivery_failure', 'not connected', { retryAfterMs: 1000 })
    const answer = new Promise<void>((delivered, failed) => this.#pending.set(id, { to, delivered, failed }))
    answer.catch(() => {})
    try {
      await this.#send(messageOf(to, type, id, text, replaces))
      // Server errors arrive before the reply to a later ping; a room reflects accepted messages.
      const taken = type === 'groupchat' ? answer : Promise.race([answer, this.roundTrip()])
      await this.#within(ANSWER_MS, taken, 'the message')
      if (type === 'chat') await Promise.race([answer, Promise.resolve()])
    } finally {
      this.#pending.delete(id)
    }
    return { status: 'delivered', remote_message_id: replaces ?? id }
  }

  /** Shows that the bot is typing (XEP-0085) until its next message. The notification is not stored for offline contacts. */
  async compose(to: string, type: 'chat' | 'groupchat'): Promise<void> {
    const hint = xml('no-store', { xmlns: NS.hints })
    await this.#send(xml('message', { to, type }, xml('composing', { xmlns: NS.chatStates }), hint))
  }

  /** Pings the server: its reply proves that everything before was processed. */
  async roundTrip(): Promise<void> {
    await this.#ask(xml('iq', { type: 'get', to: this.config.domain }, xml('ping', { xmlns: NS.ping }))).catch(
      error => {
        // An error is a reply as well.
        if (!isStanzaError(error)) throw error
      },
    )
  }

  /** Whether an archive keeps all messages; only then does a missing message prove anything. */
  async archives(room?: string): Promise<boolean> {
    const to = room ?? this.config.account
    const info = await this.#ask(xml('iq', { type: 'get', to }, xml('query', { xmlns: NS.info })))
    const features = info.getChild('query', NS.info)?.getChildren('feature') ?? []
    if (!features.some(({ attrs }) => attrs.var === NS.mam)) return false
    if (room !== undefined) return true
    const prefs = await this.#ask(xml('iq', { type: 'get' }, xml('prefs', { xmlns: NS.mam })))
    const answer = prefs.getChild('prefs', NS.mam)
    return answer?.attrs.default === 'always' && (answer.getChild('never')?.getChildElements().length ?? 0) === 0
  }

  /** Features of a room, such as visible addresses and an archive. */
  async roomInfo(room: string): Promise<ReadonlySet<string>> {
    const info = await this.#ask(xml('iq', { type: 'get', to: room }, xml('query', { xmlns: NS.info })))
    const features = info.getChild('query', NS.info)?.getChildren('feature') ?? []
    return new Set(features.map(({ attrs }) => attrs.var ?? ''))
  }

  /**
   * Searches the archive of the account or of a room from `since`, the newest page first, until `until` returns true. Resolves with
   * the messages in chronological order and whether the search was complete.
   */
  async search(
    query: { readonly room?: string; readonly with?: string; readonly since: number },
    until: (heard: Heard) => boolean = () => false,
  ): Promise<{ readonly found: readonly Heard[]; readonly whole: boolean }> {
    const { room } = query
    const fields = {
      start: new Date(query.since).toISOString(),
      ...(query.with === undefined ? {} : { with: query.with }),
    }
    const found: Heard[] = []
    let page: RsmPage = { before: '' }
    for (let pages = 0; pages < MOST_PAGES; pages++) {
      const { heard, first, complete } = await this.#page(room, fields, page)
      found.unshift(...heard)
      if (complete || first === undefined || heard.length === 0) return { found, whole: true }
      if (heard.some(until)) return { found, whole: false }
      page = { before: first }
    }
    return { found, whole: false }
  }

  /** Detects a dead server by its silence. */
  async #keepAlive(): Promise<void> {
    const { signal } = this.#over
    const ms = this.config.pingSeconds * 1000
    while (!signal.aborted) {
      await this.timing.sleep(Math.max(50, this.lastHeard + ms - this.timing.now()), signal).catch(() => {})
      if (signal.aborted || this.timing.now() - this.lastHeard < ms) continue
      await this.#within(ms, this.roundTrip(), 'a ping').catch(error => this.#finish((error as Error).message))
    }
  }

  async #page(room: string | undefined, fields: Readonly<Record<string, string>>, page: RsmPage) {
    const id = randomBytes(9).toString('base64url')
    const collected = { of: room ?? this.config.account, found: [] as Heard[] }
    this.#archives.set(id, collected)
    try {
      const reply = await this.#ask(
        xml('iq', { type: 'set', ...(room === undefined ? {} : { to: room }) }, archiveQuery(id, fields, page)),
      )
      const fin = reply.getChild('fin', NS.mam)
      const first = fin?.getChild('set', NS.rsm)?.getChildText('first') ?? undefined
      return { heard: collected.found, first, complete: fin?.attrs.complete === 'true' }
    } finally {
      this.#archives.delete(id)
    }
  }

  #listen(): void {
    const client = this.#client
    client.on('error', (error: Error) => {
      this.#why = error.message
      if (conditionOf(error) === 'conflict')
        this.#problem = this.#gaveUp(
          'error',
          'tenant_config_invalid',
          'another program uses the account with the same resource',
        )
    })
    client.on('disconnect', () => this.#finish(this.#why))
    client.on('offline', () => this.#finish(this.#why))
    client.on('stanza', (stanza: Element) => {
      try {
        this.#stanza(stanza)
      } catch (error) {
        this.#why = `a stanza that it cannot read: ${(error as Error).message}`
      }
    })
  }

  #stanza(stanza: Element): void {
    // Data received before encryption may be forged by a machine in the middle.
    if (this.config.encrypted && !this.#client.isSecure()) return
    if (stanza.name === 'presence') this.rooms.presence(stanza)
    if (stanza.name !== 'message') return
    const { from = this.config.account, type = 'normal', id = '' } = stanza.attrs
    const result = stanza.getChild('result', NS.mam)
    if (result) {
      this.#archived(from, result)
      return
    }
    if (type === 'error') {
      this.#refused(id, from, stanza)
      return
    }
    if (type === 'groupchat' && this.rooms.isMine(from)) {
      for (const [id, pending] of this.#pending)
        if (bareOf(from) === pending.to && hasId(stanza, id)) pending.delivered()
      return
    }
    const by = this.rooms.has(bareOf(from)) && type === 'groupchat' ? bareOf(from) : this.config.account
    const at = Date.parse(stanza.getChild('delay', NS.delay)?.attrs.stamp ?? '')
    this.events.heard({ stanza, archived: archiveId(stanza, by), at: Number.isFinite(at) ? at : undefined })
  }

  #archived(from: string, result: Element): void {
    const collected = this.#archives.get(result.attrs.queryid ?? '')
    // Only the archive itself may send its messages.
    if (collected?.of !== bareOf(from)) return
    const forwarded = result.getChild('forwarded', NS.forward)
    const stanza = forwarded?.getChild('message')
    const at = Date.parse(forwarded?.getChild('delay', NS.delay)?.attrs.stamp ?? '')
    if (stanza) collected.found.push({ stanza, archived: result.attrs.id, at: Number.isFinite(at) ? at : undefined })
  }

  #refused(id: string, from: string, stanza: Element): void {
    const pending = this.#pending.get(id)
    if (!pending || (bareOf(from) !== bareOf(pending.to) && from !== this.config.domain)) return
    const { kind, text } = errorOf(stanza)
    pending.failed(new NotSent(kind, text))
  }

  async #ask(stanza: Element): Promise<Element> {
    return this.#within(ANSWER_MS, this.#iq.request(stanza, ANSWER_MS), 'the answer')
  }

  async #send(stanza: Element): Promise<void> {
    if (this.#over.signal.aborted) throw new Error(this.#why)
    await this.#client.send(stanza)
  }

  /** Rejects on timeout and when the connection ends. */
  async #within<T>(ms: number, work: Promise<T>, what: string): Promise<T> {
    const timeout = new AbortController()
    const late = this.timing.sleep(ms, timeout.signal).then(() => {
      throw new Error(`${what} took longer than ${ms / 1000} s`)
    })
    const lost = this.ended.then(why => {
      throw new Error(why)
    })
    late.catch(() => {})
    lost.catch(() => {})
    try {
      return await Promise.race([work, late, lost])
    } finally {
      timeout.abort()
    }
  }

  #finish(why: string): void {
    if (this.#over.signal.aborted) return
    this.#why = why
    this.#over.abort()
    this.#end(why)
    if (why !== 'closed') this.#destroy()
  }

  /** A connection to a silent server does not close by itself. */
  #destroy(): void {
    const { socket } = this.#client
    socket?.socket?.destroy()
    socket?.destroy?.()
  }

  #gaveUp(status: 'error' | 'auth_required', reason: 'auth_failed' | 'tenant_config_invalid', message: string) {
    this.#problem ??= new InstanceProblem({ status, reason, message: `${this.config.account}: ${message}` })
    return this.#problem
  }

  /** Why the account is unusable; undefined: at most a network error. */
  get problem(): InstanceProblem | undefined {
    return this.#problem
  }
}

const conditionOf = (error: unknown): string => String((error as { condition?: unknown })?.condition ?? '')
const isStanzaError = (error: unknown): boolean => (error as { name?: unknown })?.name === 'StanzaError'

function loginProblem(error: unknown): unknown {
  const condition = conditionOf(error)
  if (!['not-authorized', 'account-disabled', 'credentials-expired', 'invalid-authzid'].includes(condition))
    return error
  return new InstanceProblem({
    status: 'auth_required',
    reason: 'auth_failed',
    message: `the server refuses the account or its password: ${condition}`,
  })
}
