import { type AuthenticationFailure, ImapFlow, type SearchObject } from 'imapflow'
import {
  type Host,
  IngestRefused,
  InstanceProblem,
  messageOf,
  type Timing,
  tlsProblem,
} from '../../bridge-kit/src/index.js'
import type { Bounce } from './bounce.js'
import type { EmailConfig, ServerConfig } from './config.js'
import { type Reading, read } from './message.js'
import { after, type Position, type PositionFile, renumbered } from './position.js'

/** Time limit of a command; beyond it the connection counts as dead. */
const ANSWER_MS = 20_000
/** Time limit to fetch a message. */
const FETCH_MS = 60_000
/** Bytes read of a message. */
const LONGEST_SOURCE = 16 * 1024 * 1024
/** Attempts to fetch a message that the server lists but does not return. */
const MOST_EMPTY = 5
const AGAIN_MS = 1000
/** Response codes of a refused login that mean that the server is busy. */
const BUSY = new Set(['UNAVAILABLE', 'LIMIT', 'INUSE', 'SERVERBUG', 'CONTACTADMIN'])

const DAY_MS = 24 * 60 * 60_000

/** One connection to the server with the watched folder open. */
export class Mailbox {
  /** Resolves with the reason when the connection ends. */
  readonly ended: Promise<string>
  #end: (why: string) => void = () => {}
  #over = false
  #lastHeard: number
  #wake: () => void = () => {}
  #arrived = false
  readonly #empty = new Map<number, number>()

  private constructor(
    private readonly client: ImapFlow,
    private readonly config: EmailConfig,
    private readonly position: PositionFile,
    private readonly host: Host,
    private readonly timing: Timing,
  ) {
    this.#lastHeard = timing.now()
    this.ended = new Promise(resolve => {
      this.#end = why => {
        this.#over = true
        this.#wake()
        resolve(why)
      }
    })
    client.on('close', () => this.#end('the server closed the connection'))
    client.on('error', error => this.#end(messageOf(error)))
    client.on('response', () => this.#heard())
    client.on('exists', () => {
      this.#heard()
      this.#arrived = true
      this.#wake()
    })
  }

  /**
   * Connects and opens the folder.
   * @throws InstanceProblem If the login is refused or the folder does not exist
   */
  static async open(config: EmailConfig, position: PositionFile, host: Host, timing: Timing): Promise<Mailbox> {
    const token = await tokenOf(config.imap)
    const client = clientOf(config, token)
    const mailbox = new Mailbox(client, config, position, host, timing)
    const stop = () => client.close()
    host.signal.addEventListener('abort', stop, { once: true })
    void mailbox.ended.then(() => host.signal.removeEventListener('abort', stop))
    try {
      await connect(client, config, token)
      await mailbox.#select()
      return mailbox
    } catch (error) {
      client.close()
      throw error
    }
  }

  /** Time of the server's last sign of life. */
  get lastHeard(): number {
    return this.#lastHeard
  }

  /** Hands arriving messages to the daemon until the connection ends. Rejects when the daemon or the server fails. */
  async watch(): Promise<void> {
    while (!this.#over) {
      await this.#pull()
      await this.#idle()
    }
  }

  /** Checks that the server responds. */
  alive(): Promise<void> {
    return this.#answered(this.client.noop(), ANSWER_MS)
  }

  /** Stores a copy of an answer. */
  async store(folder: string, message: Buffer): Promise<void> {
    await this.#answered(this.client.append(folder, message, ['\\Seen']), ANSWER_MS)
  }

  close(): void {
    this.client.close()
    this.#end('closed')
  }

  #heard(): void {
    this.#lastHeard = this.timing.now()
  }

  async #select(): Promise<void> {
    const { config, client } = this
    const opened = await this.#answered(client.mailboxOpen(config.mailbox), ANSWER_MS).catch(error => {
      if (this.#over) throw error
      const message = `the folder ${config.mailbox} cannot be opened: ${messageOf(error)}`
      throw new InstanceProblem({ status: 'error', reason: 'tenant_config_invalid', message })
    })
    const uidValidity = String(opened.uidValidity)
    const known = await this.position.load()
    if (known === undefined) {
      const uid = Math.max(0, opened.uidNext - 1)
      await this.position.save({ uidValidity, uid, ...(await this.#latest(opened.exists)) })
    } else if (known.uidValidity !== uidValidity) {
      this.host.log(`UIDVALIDITY of ${config.mailbox} changed from ${known.uidValidity} to ${uidValidity}`)
      await this.position.save(renumbered(known, uidValidity, opened.uidNext))
    }
  }

  /** Server time and key of the newest message at the first start. */
  async #latest(messages: number): Promise<Pick<Position, 'receivedAt' | 'keys'>> {
    if (messages === 0) return { receivedAt: 0, keys: [] }
    const found = await this.#fetch('*', {})
    const reading = found
      ? await read({ source: found.source ?? Buffer.alloc(0), size: found.size ?? 0 }, this.config)
      : undefined
    const keys = reading?.kind === 'event' ? [reading.event.idempotency_key] : []
    return { receivedAt: (found && epochOf(found.internalDate)) || 0, keys }
  }

  #fetch(range: string, options: { readonly uid?: boolean }) {
    const query = { uid: true, internalDate: true, size: true, source: { maxLength: LONGEST_SOURCE } }
    return this.#answered(this.client.fetchOne(range, query, options), FETCH_MS)
  }

  /** Reads new messages in order. The position advances only past messages that the daemon has. */
  async #pull(): Promise<void> {
    for (const uid of await this.#newUids()) {
      if (this.#over) return
      const fetched = await this.#fetch(String(uid), { uid: true })
      const position = this.position.current as Position
      if (!fetched || fetched.source === undefined || fetched.source.length === 0) {
        // An empty FETCH reply says nothing about the message: it is fetched again, and the position does not advance.
        const times = (this.#empty.get(uid) ?? 0) + 1
        this.#empty.set(uid, times)
        if (times < MOST_EMPTY) {
          this.#arrived = true
          await this.timing.sleep(AGAIN_MS, this.host.signal).catch(() => {})
          return
        }
        this.host.log(`message ${uid} is listed but came without content ${times} times; it is skipped`)
        await this.position.save(after(position, uid))
        continue
      }
      this.#empty.delete(uid)
      const receivedAt = epochOf(fetched.internalDate)
      const { resync } = position
      if (resync !== undefined && uid < resync.below && (receivedAt ?? 0) < resync.olderThan) {
        await this.position.save(after(position, uid))
        continue
      }
      const raw = {
        source: fetched.source,
        size: fetched.size ?? 0,
        ...(receivedAt === undefined ? {} : { receivedAt }),
      }
      await this.#take(uid, await read(raw, this.config), receivedAt)
    }
  }

  async #newUids(): Promise<number[]> {
    this.#arrived = false
    const { uid, resync } = this.position.current as Position
    const query: SearchObject = { uid: `${uid + 1}:*` }
    if (resync !== undefined && uid + 1 < resync.below) query.since = new Date(resync.olderThan - 2 * DAY_MS)
    const found = await this.#answered(this.client.search(query, { uid: true }), ANSWER_MS)
    // `n:*` always includes the last message, even if its UID is lower.
    return (Array.isArray(found) ? found : []).filter(one => one > uid).sort((a, b) => a - b)
  }

  async #take(uid: number, reading: Reading, receivedAt: number | undefined): Promise<void> {
    const position = this.position.current as Position
    const at = receivedAt === undefined ? {} : { receivedAt }
    if (reading.kind === 'unusable') {
      this.host.log(`message ${uid} is skipped: ${reading.reason}`)
      await this.position.save(after(position, uid, at))
      return
    }
    if (reading.kind === 'report') {
      for (const bounce of reading.bounces) await this.#returned(bounce)
      if (!this.#over) await this.position.save(after(this.position.current as Position, uid, at))
      return
    }
    const { event, thread, subject } = reading
    const key = event.idempotency_key
    this.position.remember(thread, subject)
    if (!position.keys.includes(key)) {
      try {
        await this.host.ingest(event)
      } catch (error) {
        if (!(error instanceof IngestRefused) || !['bridge_event_invalid', 'invalid_params'].includes(error.code))
          throw error
        this.host.log(`message ${uid} is refused: ${error.message}`)
      }
    }
    // Another connection may have opened the folder; it reads this message again, and the daemon ignores the duplicate.
    if (this.#over) return
    await this.position.save(after(this.position.current as Position, uid, { ...at, key }))
    if (this.config.markSeen)
      await this.#answered(this.client.messageFlagsAdd(String(uid), ['\\Seen'], { uid: true }), ANSWER_MS)
  }

  /** Reports a bounce to the daemon. Rejects if the report must be repeated. */
  async #returned({ id, reason }: Bounce): Promise<void> {
    try {
      const outcome = await this.host.reportDelivery({ remote_message_id: id, status: 'failed', reason })
      if (outcome === 'unknown') this.host.log(`a returned e-mail is not known to the daemon: ${id}`)
    } catch (error) {
      if (!(error instanceof IngestRefused) || ['connection_closed', 'bridge_closed'].includes(error.code)) throw error
      this.host.log(`the report about ${id} was not accepted: ${error.message}`)
    }
  }

  /**
   * Waits for the server's notification, at most for the poll period, then checks that the server responds: a connection dropped by
   * a router looks idle, and some servers stop sending notifications.
   */
  async #idle(): Promise<void> {
    if (this.#over || this.#arrived) return
    const woken = new Promise<void>(resolve => {
      this.#wake = resolve
    })
    const timeout = new AbortController()
    const sleep = (ms: number) => this.timing.sleep(ms, timeout.signal).catch(() => {})
    // Any other command ends IDLE, and a server may refuse IDLE at once.
    const idling = this.client
      .idle()
      .catch(() => {})
      .then(() => sleep(AGAIN_MS))
    await Promise.race([woken, idling, sleep(this.config.idleMs)])
    timeout.abort()
    if (!this.#over) await this.alive()
  }

  /** The result of a command; a timeout closes the connection. */
  async #answered<T>(command: Promise<T>, ms: number): Promise<T> {
    const timeout = new AbortController()
    const late = this.timing.sleep(ms, timeout.signal).then(() => {
      this.#end(`the server did not answer within ${ms / 1000} s`)
      this.client.close()
      throw new Error(`the server did not answer within ${ms / 1000} s`)
    })
    late.catch(() => {})
    const over = this.ended.then(why => Promise.reject(new Error(why)))
    over.catch(() => {})
    command.catch(() => {})
    try {
      const result = await Promise.race([command, late, over])
      this.#heard()
      return result
    } finally {
      timeout.abort()
    }
  }
}

/** Whether a folder contains a Message-ID. Uses its own connection, so that the watched folder stays selected. */
export async function hasMessage(config: EmailConfig, folder: string, messageId: string): Promise<boolean> {
  const token = await tokenOf(config.imap)
  const client = clientOf(config, token)
  client.on('error', () => {})
  try {
    await connect(client, config, token)
    await client.mailboxOpen(folder, { readOnly: true })
    const found = await client.search({ header: { 'Message-ID': `<${messageId}>` } }, { uid: true })
    return Array.isArray(found) && found.length > 0
  } finally {
    client.close()
  }
}

const tokenOf = async ({ login }: ServerConfig): Promise<string> =>
  login.kind === 'oauth2' ? await login.tokens.get() : ''

function clientOf({ imap, verify, authorities }: EmailConfig, token: string): ImapFlow {
  const { user, login } = imap
  return new ImapFlow({
    host: imap.host,
    port: imap.port,
    secure: imap.security === 'tls',
    doSTARTTLS: imap.security === 'starttls',
    auth: login.kind === 'oauth2' ? { user, accessToken: token } : { user, pass: login.password },
    tls: { rejectUnauthorized: verify, ...(authorities === undefined ? {} : { ca: [...authorities] }) },
    clientInfo: { name: 'svc' },
    logger: false,
    disableAutoIdle: true,
    connectionTimeout: ANSWER_MS,
    greetingTimeout: ANSWER_MS,
    maxLineLength: 8 * 1024 * 1024,
    maxLiteralSize: LONGEST_SOURCE + 1024,
    maxResponseSize: 2 * LONGEST_SOURCE,
  })
}

async function connect(client: ImapFlow, { imap }: EmailConfig, token: string): Promise<void> {
  const { login } = imap
  try {
    await client.connect()
    if (login.kind === 'oauth2') login.tokens.taken(token)
  } catch (error) {
    const tls = imap.security === 'none' ? undefined : tlsProblem(error, imap.host)
    if (tls !== undefined) throw new Error(tls)
    const { authenticationFailed: refused, serverResponseCode: code = '' } = error as Partial<AuthenticationFailure>
    if (refused !== true || BUSY.has(code)) throw error
    // A token may be revoked before it expires.
    if (login.kind === 'oauth2' && login.tokens.refused(token)) throw error
    const what = login.kind === 'oauth2' ? 'oauth_refresh_token' : 'password'
    const message = `${imap.host} refuses the login of ${imap.user}. Bind another ${what}: svc bridge secret-bindings put <id> ${what}`
    throw new InstanceProblem({ status: 'auth_required', reason: 'auth_failed', message })
  }
}

function epochOf(date: Date | string | undefined): number | undefined {
  const ms = date === undefined ? Number.NaN : new Date(date).getTime()
  return Number.isFinite(ms) ? ms : undefined
}
