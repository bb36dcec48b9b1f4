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
  Standing,
  silence,
  type Target,
  type Timing,
} from '../../bridge-kit/src/index.js'
import { configOf, type IrcConfig } from './config.js'
import { type Heard, IrcConnection, maskOf } from './connection.js'
import { addressedText, isTarget, plain } from './lines.js'

/** Retry interval for channels that are not joined and for a nick in use. */
const AGAIN_MS = 25_000
/** Channels checked by a verification; the daemon accepts 100 checks. */
const MOST_CHECKED = 90

/** Opens one instance, which reconnects until it is closed. */
export function openIrc(instance: Instance, host: Host, timing: Timing = realTiming): Adapter {
  return new IrcBridge(configOf(instance), host, timing)
}

class IrcBridge implements Adapter {
  #connection: IrcConnection | undefined
  readonly #standing: Standing
  readonly #running: Promise<void>

  constructor(
    private readonly config: IrcConfig,
    private readonly host: Host,
    private readonly timing: Timing,
  ) {
    this.#standing = new Standing(host, timing)
    this.#running = this.#standing.keep(config.host, () => this.#connect())
  }

  async deliver(delivery: Delivery): Promise<DeliveryResult> {
    const { event, target, text } = delivery
    if (event === 'delete') throw new NotSent('unsupported_capability', 'IRC has no deletion')
    // A partial answer is not sent.
    if (event === 'start' || event === 'delta' || event === 'resume') return { status: 'delivered' }
    const { nick, account } = peerOf(target.peer_id ?? '')
    const to = target.group_id ?? nick
    if (!isTarget(to))
      throw new NotSent('unknown_destination', `${JSON.stringify(clip(to, 80))} is not a channel or nick`)
    const connection = this.#connection
    if (!connection) throw new NotSent('transient_delivery_failure', 'not connected', { retryAfterMs: 1000 })
    if (target.group_id === undefined && account !== undefined && (await this.#accountOf(connection, nick)) !== account)
      throw new NotSent('permission_denied', `${nick} is not logged in as ${account} now`)
    return connection.say(to, text)
  }

  targets(): readonly Target[] {
    const connection = this.#connection
    if (!connection) return []
    const qualifier = connection.networkName || this.config.host
    return connection.channels.map(channel => ({
      group_id: channel,
      display_name: channel,
      target_type: 'channel',
      qualifier,
    }))
  }

  async verify(): Promise<readonly Check[]> {
    const connection = this.#connection
    if (!connection) {
      const remediation = `Check that ${this.config.host}:${this.config.port} is reachable and the nick is allowed.${this.#standing.lastAttempt}`
      return [{ check: 'irc.connected', status: 'fail', remediation }]
    }
    const alive = await connection.roundTrip().then(
      () => true,
      () => false,
    )
    const channels = this.config.channels.slice(0, MOST_CHECKED).map((channel): Check => {
      const why = connection.refusedChannels.get(connection.lower(channel))
      const status = connection.isIn(channel) ? 'pass' : 'fail'
      const remediation = status === 'pass' ? '' : `Let ${connection.nick} join ${channel}: ${why ?? 'not joined yet'}`
      return { check: clip(`irc.channel ${channel}`, 128), status, remediation }
    })
    return [
      { check: 'irc.connected', status: alive ? 'pass' : 'fail', remediation: alive ? '' : 'The server is silent.' },
      {
        check: 'irc.nick',
        status: connection.lower(connection.nick) === connection.lower(this.config.nick) ? 'pass' : 'warn',
        remediation: `The nick is ${connection.nick}.`,
      },
      ...channels,
    ]
  }

  deaf(): string | undefined {
    const connection = this.#connection
    return connection && silence(this.config.host, connection.lastHeard, this.config.pingSeconds * 4000, this.timing)
  }

  async close(): Promise<void> {
    this.#connection?.close('closed')
    await this.#running
  }

  /** Runs one connection; resolves with why it ended. */
  async #connect(): Promise<string> {
    const events = { heard: (heard: Heard) => this.#heard(heard), changed: () => this.#tell() }
    const connection = await IrcConnection.open(this.config, events, this.timing, this.host.signal)
    this.#connection = connection
    this.#tell()
    const stop = new AbortController()
    void this.#tryAgain(connection, stop.signal)
    return connection.ended.finally(() => {
      stop.abort()
      this.#connection = undefined
    })
  }

  async #tryAgain(connection: IrcConnection, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.timing.sleep(AGAIN_MS, signal).catch(() => {})
      if (signal.aborted) return
      connection.regainNick()
      for (const channel of this.config.channels) if (!connection.isIn(channel)) connection.join(channel)
    }
  }

  /** Reports the state of the connection. */
  #tell(): void {
    const connection = this.#connection
    if (!connection) return
    const missing = this.config.channels.filter(channel => !connection.isIn(channel))
    const why = (channel: string) => connection.refusedChannels.get(connection.lower(channel)) ?? 'not joined yet'
    if (missing.length > 0) {
      const message = `not in ${missing.map(channel => `${channel} (${why(channel)})`).join(', ')}`
      this.#standing.report({ status: 'degraded', message: clip(message, 500) })
    } else if (connection.lower(connection.nick) === connection.lower(this.config.nick))
      this.#standing.report({ status: 'ready' })
    else
      this.#standing.report({
        status: 'ready',
        message: `the nick ${this.config.nick} is taken; it is ${connection.nick}`,
      })
  }

  #heard(heard: Heard): void {
    const connection = this.#connection
    const text = plain(heard.message).trim()
    if (!connection || text === '') return
    const { nick, ident, hostname, target, loggedInAs } = heard
    const inChannel = connection.isChannel(target)
    const named = addressedText(text, connection.nick, connection.lower)
    const account = loggedInAs === undefined ? undefined : connection.lower(loggedInAs)
    void this.host
      .ingest({
        idempotency_key: heard.key,
        family: 'message',
        sender: {
          // Account names contain no `!`, so a mask cannot be mistaken for an account.
          id: account ?? maskOf(connection.lower(nick), ident, hostname),
          username: nick,
          display_name: nick,
          authenticated: account !== undefined,
          ...('bot' in heard.tags ? { is_bot: true } : {}),
        },
        peer_id: account === undefined ? nick : `${nick}!${account}`,
        ...(inChannel ? { group_id: target } : {}),
        ...(heard.tags.msgid ? { message_id: heard.tags.msgid } : {}),
        text: named === undefined || named === '' ? text : named,
        addressed: !inChannel || named !== undefined,
        ...(heard.time === undefined ? {} : { received_at: heard.time }),
      })
      .catch(error => this.host.log(`an event was not accepted by the daemon: ${messageOf(error)}`))
  }

  async #accountOf(connection: IrcConnection, nick: string): Promise<string | undefined> {
    const account = await connection.accountOf(nick).catch(() => {
      throw new NotSent('transient_delivery_failure', `the account of ${nick} cannot be looked up`)
    })
    return account === undefined ? undefined : connection.lower(account)
  }
}

/** Splits a peer id into the nick and, if the network knew one, the account. */
function peerOf(peer: string): { readonly nick: string; readonly account: string | undefined } {
  const at = peer.indexOf('!')
  return at === -1 ? { nick: peer, account: undefined } : { nick: peer.slice(0, at), account: peer.slice(at + 1) }
}
