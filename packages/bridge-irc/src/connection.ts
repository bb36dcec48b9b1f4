import { createHash, randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import irc, { type IrcMessage, type Spoken } from 'irc-framework'
import {
  clip,
  type DeliveryResult,
  InstanceProblem,
  NotSent,
  type Timing,
  tlsProblem,
} from '../../bridge-kit/src/index.js'
import type { IrcConfig } from './config.js'
import { FloodControl } from './flood.js'
import { type Prefix, privmsgLines } from './lines.js'
import { Transport } from './transport.js'

/** Time limit from the connection to the registration. */
const REGISTER_MS = 30_000
/** Time limit of an answer; beyond it the server counts as gone. */
const ANSWER_MS = 20_000
/** A delivery whose last line would wait longer is refused with a retry delay. */
const MOST_WAIT_MS = 1500
/** Bytes of an unterminated line after which a server counts as broken. */
const LONGEST_INPUT = 64 * 1024
const MOST_ALTERNATIVES = 5
/** Wait for NickServ's confirmation before channels are joined anyway. */
const IDENTIFY_MS = 3000
/** How long a looked-up account of a mask is cached. */
const ACCOUNT_MS = 60_000
const MOST_ACCOUNTS = 2000

/** Numerics that refuse a message, with the kind of failure. */
const REFUSED: Readonly<Record<string, 'unknown_destination' | 'permission_denied' | 'transient_delivery_failure'>> = {
  '401': 'unknown_destination',
  '402': 'unknown_destination',
  '403': 'unknown_destination',
  '404': 'permission_denied',
  '407': 'unknown_destination',
  '411': 'unknown_destination',
  '437': 'transient_delivery_failure',
  '439': 'transient_delivery_failure',
  '263': 'transient_delivery_failure',
  '442': 'permission_denied',
  '477': 'permission_denied',
  '486': 'permission_denied',
  '489': 'permission_denied',
  '531': 'permission_denied',
}
/** Numerics that refuse a JOIN, with the reason. */
const NOT_JOINED: Readonly<Record<string, string>> = {
  '403': '',
  '405': 'the bot is in too many channels',
  '407': '',
  '437': '',
  '471': 'the channel is full',
  '473': 'invite only: somebody in it has to invite the bot',
  '474': 'the bot is banned there',
  '475': 'it requires a key: bind the secret channel_keys',
  '476': '',
  '477': 'only registered nicks may enter',
  '480': '',
  '489': 'only encrypted connections may enter',
  '520': '',
}
/** Back-off after the server refused messages for flooding. */
const SLOW_DOWN_MS = 60_000

/** A line written by a person. */
export interface Heard extends Spoken {
  /** Identical when the platform repeats the line. */
  readonly key: string
  /** Services account of the sender; undefined: none or unknown. */
  readonly loggedInAs: string | undefined
}

/** Events of a connection for the bridge. */
export interface ConnectionEvents {
  heard(heard: Heard): void
  /** A channel was joined or left, or the nick changed. */
  changed(): void
}

interface Delivering {
  readonly target: string
  readonly refusals: { readonly kind: (typeof REFUSED)[string]; readonly text: string }[]
}

/** One connection to a network, from registration to its end. */
export class IrcConnection {
  /** Resolves with the reason when the connection ends. */
  readonly ended: Promise<string>
  /** Time of the last data from the server. */
  lastHeard: number
  /** Configured channels that are not joined, with the reason. */
  readonly refusedChannels = new Map<string, string>()
  readonly #client = new irc.Client()
  readonly #epoch = randomBytes(6).toString('hex')
  readonly #joined = new Map<string, string>()
  readonly #pongs = new Map<string, () => void>()
  readonly #accounts = new Map<string, { readonly account: string | undefined; readonly at: number }>()
  readonly #over = new AbortController()
  readonly #flood: FloodControl
  #heard = 0
  #tokens = 0
  #prefix: Prefix
  #registered = false
  #reason = 'the connection was lost'
  #delivering: Delivering | undefined
  #deliveries: Promise<unknown> = Promise.resolve()
  #inbound: Promise<void> = Promise.resolve()
  #whois: { readonly nick: string; user: string; host: string; account: string | undefined } | undefined

  private constructor(
    private readonly config: IrcConfig,
    private readonly events: ConnectionEvents,
    private readonly timing: Timing,
  ) {
    this.lastHeard = timing.now()
    this.#flood = new FloodControl(config.burst, config.linesPerMinute, timing)
    this.#prefix = { nick: config.nick, user: `~${config.username}`, host: '' }
    this.ended = new Promise(resolve => {
      this.#client.on('close', () => {
        this.#over.abort()
        resolve(this.#reason)
      })
    })
  }

  /** Connects and registers. Rejects with an InstanceProblem if the account is refused, else with an Error. */
  static async open(
    config: IrcConfig,
    events: ConnectionEvents,
    timing: Timing,
    signal: AbortSignal,
  ): Promise<IrcConnection> {
    const connection = new IrcConnection(config, events, timing)
    const close = () => connection.close('closed')
    signal.addEventListener('abort', close, { once: true })
    void connection.ended.then(() => signal.removeEventListener('abort', close))
    try {
      await connection.#register()
      return connection
    } catch (error) {
      connection.close('not registered')
      throw error
    }
  }

  get nick(): string {
    return this.#prefix.nick
  }

  get networkName(): string {
    return this.#client.network.name ?? ''
  }

  /** Joined channels, as the network spells them. */
  get channels(): readonly string[] {
    return [...this.#joined.values()]
  }

  lower = (text: string): string => this.#client.caseLower(text)

  isChannel(target: string): boolean {
    return /^[#&+]/.test(target)
  }

  isIn(channel: string): boolean {
    return this.#joined.has(this.lower(channel))
  }

  join(channel: string): void {
    const key = this.config.keys.get(channel)
    this.#write(key === undefined ? `JOIN ${channel}` : `JOIN ${channel} ${key}`)
  }

  /** Requests the configured nick again. */
  regainNick(): void {
    if (this.lower(this.nick) !== this.lower(this.config.nick)) this.#write(`NICK ${this.config.nick}`)
  }

  /** Quits and closes the connection. */
  close(why: string): void {
    this.#reason = why
    if (this.#client.connected) this.#client.quit('bye')
    // Closes without waiting long for a server that does not answer QUIT or never accepted the connection.
    setTimeout(() => this.#client.connection.end(undefined, true), this.#client.connected ? 500 : 0).unref()
    if (!this.#client.connected) this.#client.emit('close')
  }

  /** Sends the lines of a text, one delivery after the other, and returns the server's verdict. */
  say(target: string, text: string): Promise<DeliveryResult> {
    const turn = this.#deliveries.then(() => this.#say(target, text))
    this.#deliveries = turn.catch(() => {})
    return turn
  }

  /** Services account of the nick's current owner. */
  async accountOf(nick: string): Promise<string | undefined> {
    return (await this.#lookUp(nick))?.account
  }

  /** Sends a PING and waits for its PONG, which proves that the server has processed everything before it. */
  async roundTrip(): Promise<void> {
    const token = `svc-${++this.#tokens}`
    const timeout = new AbortController()
    try {
      const answered = new Promise<void>(resolve => this.#pongs.set(token, resolve))
      this.#write(`PING ${token}`)
      const late = this.timing.sleep(ANSWER_MS, timeout.signal).then(() => {
        throw new Error(`the server did not answer within ${ANSWER_MS / 1000} s`)
      })
      late.catch(() => {})
      const lost = this.ended.then(why => {
        throw new Error(why)
      })
      lost.catch(() => {})
      await Promise.race([answered, late, lost])
    } finally {
      timeout.abort()
      this.#pongs.delete(token)
    }
  }

  async #say(target: string, text: string): Promise<DeliveryResult> {
    const lines = privmsgLines(text, target, this.#prefix, this.config.burst)
    if (lines.length === 0) return { status: 'delivered' }
    // Either all lines are sent in time or none: a delivery that exceeds the daemon's time limit would count as unknown.
    const wait = this.#flood.waitFor(lines.length)
    if (wait > MOST_WAIT_MS)
      throw new NotSent('transient_delivery_failure', 'flood control', { retryAfterMs: wait - MOST_WAIT_MS / 2 })
    const delivering: Delivering = { target: this.lower(target), refusals: [] }
    this.#delivering = delivering
    let written = 0
    try {
      for (const line of lines) {
        await this.#flood.take(this.#over.signal).catch(() => {})
        if (this.#over.signal.aborted) throw new Error(this.#reason)
        this.#write(`PRIVMSG ${target} :${line}`)
        written++
      }
      await this.roundTrip()
    } catch (error) {
      if (written === 0) throw new NotSent('transient_delivery_failure', (error as Error).message)
      return {
        status: 'unknown',
        message: `${written} of ${lines.length} lines were written: ${(error as Error).message}`,
      }
    } finally {
      this.#delivering = undefined
    }
    const { refusals } = delivering
    const [first] = refusals
    if (first === undefined) return { status: 'delivered' }
    if (refusals.length < lines.length)
      return { status: 'unknown', message: `${refusals.length} of ${lines.length} lines were refused: ${first.text}` }
    const slow = first.kind === 'transient_delivery_failure' ? { retryAfterMs: SLOW_DOWN_MS } : {}
    throw new NotSent(first.kind ?? 'transient_delivery_failure', first.text, slow)
  }

  async #register(): Promise<void> {
    const { config } = this
    const client = this.#client
    this.#listen()
    client.connect({
      host: config.host,
      port: config.port,
      tls: config.tls,
      rejectUnauthorized: config.verify,
      ca: config.ca,
      transport: Transport,
      nick: config.nick,
      username: config.username,
      gecos: config.realname,
      // An empty account prevents the library from using the server password for SASL.
      account: config.auth === 'sasl' ? { account: config.account, password: config.password } : {},
      ...(config.serverPassword === undefined ? {} : { password: config.serverPassword }),
      sasl_disconnect_on_fail: true,
      auto_reconnect: false,
      ping_interval: config.pingSeconds,
      ping_timeout: config.pingSeconds * 2,
      version: '',
    })
    const timeout = new AbortController()
    try {
      await new Promise<void>((resolve, reject) => {
        client.on('registered', ({ nick }: { nick: string }) => {
          this.#prefix = { ...this.#prefix, nick }
          resolve()
        })
        client.on('sasl failed', ({ reason }: { reason: string }) => reject(saslProblem(reason)))
        client.on('nick invalid', () => reject(badNick(config.nick)))
        client.on('socket close', (error: unknown) => {
          const why = error instanceof Error ? error.message : this.#reason
          reject(new Error(tlsProblem(error, config.host) ?? why))
        })
        void this.ended.then(why => reject(new Error(why)))
        this.timing.sleep(REGISTER_MS, timeout.signal).then(
          () => reject(new Error(`not registered within ${REGISTER_MS / 1000} s`)),
          () => {},
        )
      })
    } finally {
      timeout.abort()
    }
    this.#registered = true
    if (config.auth === 'nickserv') await this.#identify()
    for (const channel of config.channels) this.join(channel)
    await this.roundTrip()
  }

  async #identify(): Promise<void> {
    const timeout = new AbortController()
    const known = new Promise<void>(resolve => {
      this.#client.once('loggedin', () => resolve())
      this.#client.on('notice', (notice: Spoken) => {
        if (this.lower(notice.nick ?? '') === 'nickserv') resolve()
      })
    })
    this.#write(`PRIVMSG NickServ :IDENTIFY ${this.config.account} ${this.config.password}`)
    await Promise.race([known, this.timing.sleep(IDENTIFY_MS, timeout.signal).catch(() => {})])
    timeout.abort()
  }

  #listen(): void {
    const client = this.#client
    let alternatives = 0
    client.on('nick in use', () => {
      if (this.#registered || alternatives >= MOST_ALTERNATIVES) return
      alternatives++
      this.#write(`NICK ${this.config.nick}${'_'.repeat(alternatives)}`)
    })
    client.on('raw', ({ from_server: inbound }: { from_server: boolean }) => {
      if (inbound) this.lastHeard = this.timing.now()
    })
    client.on('raw socket connected', (socket: Socket) => {
      // With Nagle's algorithm, a line and the PING after it would wait for each other's acknowledgement.
      socket.setNoDelay(true)
      socket.on('data', () => {
        if ((client.connection.transport?.incoming_buffer?.length ?? 0) > LONGEST_INPUT) socket.destroy()
      })
    })
    client.connection.on('message', (message: IrcMessage) => this.#numeric(message))
    client.on('privmsg', (spoken: Spoken) => this.#spoken(spoken))
    client.on('join', ({ nick, ident, hostname, channel, account }: Joined) => {
      if (this.#isMe(nick)) {
        this.#prefix = { nick, user: ident, host: hostname }
        this.#joined.set(this.lower(channel), channel)
        this.refusedChannels.delete(this.lower(channel))
        this.events.changed()
      } else if (account !== undefined) this.#remember(maskOf(nick, ident, hostname), account || undefined)
    })
    const left = (nick: string, channel: string, why: string) => {
      if (!this.#isMe(nick)) return
      this.#joined.delete(this.lower(channel))
      this.refusedChannels.set(this.lower(channel), why)
      this.events.changed()
    }
    client.on('part', ({ nick, channel }: Joined) => left(nick, channel, 'left'))
    client.on('kick', ({ kicked, nick, channel }: Joined & { kicked: string }) =>
      left(kicked, channel, `kicked by ${nick}`),
    )
    client.on('nick', ({ nick, new_nick: next }: { nick: string; new_nick: string }) => {
      this.#forget(nick)
      this.#forget(next)
      if (!this.#isMe(nick)) return
      this.#prefix = { ...this.#prefix, nick: next }
      this.events.changed()
    })
    client.on('quit', ({ nick }: { nick: string }) => {
      this.#forget(nick)
      if (this.lower(nick) === this.lower(this.config.nick)) this.regainNick()
    })
    client.on('account', ({ nick }: { nick: string }) => this.#forget(nick))
  }

  #isMe(nick: string): boolean {
    return this.lower(nick) === this.lower(this.nick)
  }

  #numeric({ command, params }: IrcMessage): void {
    const [, about = ''] = params
    const text = params.at(-1) ?? ''
    if (command === 'PONG') this.#pongs.get(text)?.()
    else if (command === 'ERROR') this.#reason = `the server closed the connection: ${clip(text, 200)}`
    else if (command === '311' && this.#asksFor(about)) {
      this.#whois!.user = params[2] ?? ''
      this.#whois!.host = params[3] ?? ''
    } else if (command === '330' && this.#asksFor(about)) this.#whois!.account = params[2]
    const kind = REFUSED[command]
    if (kind !== undefined && this.#delivering?.target === this.lower(about))
      this.#delivering.refusals.push({ kind, text: `${command} ${clip(text, 200)}` })
    else if (command in NOT_JOINED && this.config.channels.some(one => this.lower(one) === this.lower(about))) {
      const meaning = NOT_JOINED[command] === '' ? '' : `; ${NOT_JOINED[command]}`
      this.refusedChannels.set(this.lower(about), `${command} ${clip(text, 200)}${meaning}`)
      this.events.changed()
    }
  }

  #asksFor(nick: string): boolean {
    return this.#whois !== undefined && this.lower(this.#whois.nick) === this.lower(nick)
  }

  #spoken(spoken: Spoken): void {
    if (spoken.from_server || this.#isMe(spoken.nick)) return
    // Playback of a bouncer or the server: such lines are old and may have been handled before.
    if (/playback|history/.test(spoken.batch?.type ?? '')) return
    const { nick, target, message, tags } = spoken
    const hash = createHash('sha256').update(`${nick}\n${target}\n${message}`).digest('hex').slice(0, 12)
    const key = tags.msgid ? `id:${clip(tags.msgid, 128)}` : `${this.#epoch}:${++this.#heard}:${hash}`
    this.#inbound = this.#inbound
      .then(async () => this.events.heard({ ...spoken, key, loggedInAs: await this.#accountBehind(spoken) }))
      .catch(() => {})
  }

  /** The account that the server vouches for; a nick alone is no identity. */
  async #accountBehind({ nick, ident, hostname, account }: Spoken): Promise<string | undefined> {
    if (this.#client.network.cap.isEnabled('account-tag')) return account || undefined
    const mask = maskOf(nick, ident, hostname)
    const known = this.#accounts.get(mask)
    if (known && this.timing.now() - known.at < ACCOUNT_MS) return known.account
    const found = await this.#lookUp(nick).catch(() => undefined)
    // The nick may belong to another person by now.
    const same = found !== undefined && found.user === ident && found.host === hostname
    this.#remember(mask, same ? found.account : undefined)
    return same ? found.account : undefined
  }

  /** Sends one WHOIS at a time; the PONG marks its end, even if the server ignored it. */
  #lookUp(nick: string): Promise<{ user: string; host: string; account: string | undefined } | undefined> {
    const turn = this.#lookUps.then(async () => {
      const whois = { nick, user: '', host: '', account: undefined }
      this.#whois = whois
      try {
        this.#write(`WHOIS ${nick}`)
        await this.roundTrip()
        return whois.user === '' ? undefined : whois
      } finally {
        this.#whois = undefined
      }
    })
    this.#lookUps = turn.catch(() => {})
    return turn
  }
  #lookUps: Promise<unknown> = Promise.resolve()

  #remember(mask: string, account: string | undefined): void {
    if (this.#accounts.size >= MOST_ACCOUNTS) this.#accounts.clear()
    this.#accounts.set(mask, { account, at: this.timing.now() })
  }

  #forget(nick: string): void {
    for (const mask of this.#accounts.keys())
      if (this.lower(mask.slice(0, mask.indexOf('!'))) === this.lower(nick)) this.#accounts.delete(mask)
  }

  /** Refuses a line break, which would start a second command. */
  #write(line: string): void {
    if (/[\r\n\0]/.test(line)) throw new Error('an IRC line contains a line break')
    this.#client.connection.write(line)
  }
}

interface Joined {
  readonly nick: string
  readonly ident: string
  readonly hostname: string
  readonly channel: string
  /** False: not logged in; absent: unknown. */
  readonly account?: string | false
}

/** `nick!user@host` */
export const maskOf = (nick: string, ident: string, hostname: string): string => `${nick}!${ident}@${hostname}`

function saslProblem(reason: string): Error {
  if (reason === 'capability_missing') return new Error('the server offers no SASL; set login to nickserv, or to none')
  // Other failures may be temporary; only these mean a wrong account or password.
  if (reason !== 'fail' && reason !== 'nick_locked') return new Error(`SASL: ${reason}`)
  return new InstanceProblem({
    status: 'auth_required',
    reason: 'auth_failed',
    message: 'the network refuses the account or its password',
  })
}

const badNick = (nick: string) =>
  new InstanceProblem({
    status: 'error',
    reason: 'tenant_config_invalid',
    message: `the network does not allow the nick ${nick}`,
  })
