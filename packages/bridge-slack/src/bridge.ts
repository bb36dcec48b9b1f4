import {
  type Adapter,
  backoffMs,
  type Check,
  clip,
  type Delivery,
  type DeliveryResult,
  type Host,
  type InboundEvent,
  IngestRefused,
  type Instance,
  messageOf,
  NotSent,
  realTiming,
  type SettleResult,
  Standing,
  type StateReport,
  type Target,
  type Timing,
  type Unsettled,
} from '../../bridge-kit/src/index.js'
import { SlackClient } from './client.js'
import { configOf, type SlackConfig } from './config.js'
import { type Found, foundIn, type Me, type SlackMessage } from './events.js'
import { describe, isTokenRefused, pauseOf } from './failures.js'
import { Missed } from './missed.js'
import { type Envelope, SlackSocket } from './socket.js'

/** Maximum length of a message that Slack does not cut. */
const LONGEST = 4000
/** Slack counts an envelope as lost after 3 s and sends it again. */
const ACK_MS = 2800
/** A connection is replaced after this time without data from Slack. */
const SILENCE_MS = 60_000
/** A connection that lasted this long resets the back-off. */
const STABLE_MS = 60_000
/** After a longer gap, events may be lost: Slack repeats an event only after one and five minutes. */
const GAP_MS = 30_000
/** Event errors for which a retry is useless. */
const HOPELESS = new Set(['bridge_event_invalid', 'invalid_params'])
/** Scopes of the bot, and how severe their absence is. */
const SCOPES: readonly (readonly [scope: string, need: 'fail' | 'warn'])[] = [
  ['chat:write', 'fail'],
  ['app_mentions:read', 'fail'],
  ['im:history', 'fail'],
  ['channels:history', 'warn'],
  ['groups:history', 'warn'],
  ['channels:read', 'warn'],
  ['im:write', 'warn'],
  ['files:read', 'warn'],
  ['users:read', 'warn'],
]

/** Time limits that tests shorten. */
export interface Limits {
  readonly silenceMs?: number
  readonly ackMs?: number
  readonly gapMs?: number
}

/** Opens one instance, which keeps a Socket Mode connection until it is closed. */
export function openSlack(instance: Instance, host: Host, timing: Timing = realTiming, limits: Limits = {}): Adapter {
  return new SlackBridge(configOf(instance), host, timing, limits)
}

class SlackBridge implements Adapter {
  readonly #client: SlackClient
  readonly #missed: Missed
  #lastLive: number | undefined
  readonly #running: Promise<void>
  /** Events being handed to the daemon, which repeated events share. */
  readonly #taking = new Map<string, Promise<boolean>>()
  /** Serialises the events of one conversation while their files are fetched. */
  readonly #order = new Map<string, Promise<unknown>>()
  #socket: SlackSocket | undefined
  #me: Me | undefined
  readonly #standing: Standing

  constructor(
    private readonly config: SlackConfig,
    private readonly host: Host,
    private readonly timing: Timing,
    private readonly limits: Limits,
  ) {
    this.#client = new SlackClient(config, host, timing)
    this.#missed = new Missed(this.#client, host, timing)
    this.#standing = new Standing(host, timing)
    this.#running = this.#run()
  }

  async deliver(delivery: Delivery): Promise<DeliveryResult> {
    const { event, text, remote_message_id: ts } = delivery
    if (ts !== undefined && !TS.test(ts))
      throw new NotSent('unknown_destination', `${JSON.stringify(clip(ts, 80))} is not a Slack message`)
    if (event === 'delete') {
      if (ts === undefined) throw new NotSent('unknown_destination', 'the message to delete has no id')
      await this.#client.delete(delivery, ts)
      return { status: 'delivered', remote_message_id: ts }
    }
    if (text.length > LONGEST)
      throw new NotSent('unsupported_capability', `a text of ${text.length} characters is longer than ${LONGEST}`)
    if (text.trim() === '') return { status: 'delivered', ...(ts === undefined ? {} : { remote_message_id: ts }) }
    if (ts === undefined) return { status: 'delivered', remote_message_id: await this.#client.post(delivery) }
    await this.#client.update(delivery, ts)
    return { status: 'delivered', remote_message_id: ts }
  }

  settle(unsettled: Unsettled): Promise<SettleResult> {
    return this.#client.find(unsettled, unsettled.since)
  }

  async targets(): Promise<readonly Target[]> {
    return this.#me ? this.#client.targets(this.#me) : []
  }

  async verify(): Promise<readonly Check[]> {
    const checks: Check[] = []
    const add = (check: string, status: Check['status'], remediation: string) => {
      checks.push({ check, status, remediation: status === 'pass' ? '' : remediation })
    }
    const auth = await this.#client.web.auth.test().catch((error: unknown) => describe(error))
    if (typeof auth === 'string') {
      add('slack.bot_token', 'fail', `Bind the Bot User OAuth Token of the app to bot_token. ${auth}`)
      return checks
    }
    add('slack.bot_token', 'pass', '')
    const { scopes = [] } = (auth.response_metadata ?? {}) as { scopes?: readonly string[] }
    for (const [scope, need] of scopes.length === 0 ? [] : SCOPES)
      if (!scopes.includes(scope))
        add(
          `slack.scope ${scope}`,
          need,
          `Add the scope ${scope} under OAuth & Permissions, and install the app again.`,
        )
    if (scopes.length > 0 && !checks.some(({ check }) => check.startsWith('slack.scope')))
      add('slack.scopes', 'pass', '')
    const socket = this.#socket
    const isLive = socket !== undefined && this.deaf() === undefined
    add('slack.socket', isLive ? 'pass' : 'fail', this.#standing.last?.message ?? 'not connected yet')
    return checks
  }

  deaf(): string | undefined {
    const silentMs = this.#socket?.silentMs ?? 0
    const most = (this.limits.silenceMs ?? SILENCE_MS) * 2
    return silentMs > most ? `no data from Slack for ${Math.round(silentMs / 1000)} s` : undefined
  }

  async close(): Promise<void> {
    this.#socket?.close('closed')
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.host
    await this.#missed.load()
    for (let failures = 0; !signal.aborted; ) {
      const startedAt = this.timing.now()
      const why = await this.#connect().catch((error: unknown) => error)
      this.#socket = undefined
      if (signal.aborted) return
      const state = refusalOf(why)
      if (state) {
        this.#standing.report(state)
        return
      }
      if (this.timing.now() - startedAt > STABLE_MS) failures = 0
      // Slack replaces connections every few hours, which is not a failure.
      if (typeof why === 'string' && MOVED.test(why) && failures === 0) {
        failures = 1
        continue
      }
      const pause = pauseOf(why)
      this.#standing.report({
        status: 'degraded',
        reason: pause === undefined ? 'provider_timeout' : 'rate_limited',
        message: clip(typeof why === 'string' ? why : describe(why), 500),
      })
      await this.timing.sleep(pause ?? backoffMs(++failures, this.timing), signal).catch(() => {})
    }
  }

  /** Runs one connection; resolves with why it ended. */
  async #connect(): Promise<string> {
    this.#me ??= await this.#client.me()
    const me = this.#me
    const silence = this.limits.silenceMs ?? SILENCE_MS
    const socket = await SlackSocket.open(this.config, this.timing, silence, this.host.signal, envelope =>
      this.#take(envelope, me),
    )
    this.#socket = socket
    this.#standing.report({ status: 'ready' })
    const gapMs = this.#lastLive === undefined ? Number.POSITIVE_INFINITY : this.timing.now() - this.#lastLive
    if (gapMs > (this.limits.gapMs ?? GAP_MS))
      this.#missed.fetch((message, channel) => this.#fetched(message, channel, me))
    return socket.ended.finally(() => {
      // The gap begins with the last sign of life: events may also be lost during the silence before the end.
      this.#lastLive = this.timing.now() - socket.silentMs
    })
  }

  /** Acknowledges an envelope once the daemon has it. If this takes too long, Slack sends the envelope again. */
  async #take({ type, body, ack }: Envelope, me: Me): Promise<void> {
    let found: Found | undefined
    try {
      found = foundIn(type, body, me, this.config.threads)
    } catch (error) {
      this.host.log(`an envelope could not be parsed: ${messageOf(error)}`)
    }
    if (!found) return ack()
    const timeout = new AbortController()
    const late = this.timing.sleep(this.limits.ackMs ?? ACK_MS, timeout.signal).then(
      () => false,
      () => false,
    )
    const isTaken = await Promise.race([this.#ingestOnce(found), late])
    timeout.abort()
    if (isTaken) await ack()
  }

  /** Handles a message from the history of a channel. */
  async #fetched(message: SlackMessage, channel: string, me: Me): Promise<boolean> {
    const kind = channel.startsWith('D') ? { channel_type: 'im' } : {}
    const event = { ...message, type: 'message', channel, ...kind }
    const found = foundIn('events_api', { event }, me, this.config.threads)
    return found ? this.#ingestOnce(found) : true
  }

  #ingestOnce(found: Found): Promise<boolean> {
    const { idempotency_key: key } = found.event
    const before = this.#taking.get(key)
    if (before) return before
    const taken = this.#ingest(found).finally(() => this.#taking.delete(key))
    this.#taking.set(key, taken)
    this.#missed.watch(found, taken)
    return taken
  }

  /** Resolves with whether the event needs no further handling. */
  async #ingest({ event, files, direct }: Found): Promise<boolean> {
    if (direct) this.#client.learn(direct.user, direct.channel)
    const conversation = event.group_id ?? event.peer_id ?? ''
    const before = this.#order.get(conversation) ?? Promise.resolve()
    const prepared = before.catch(() => {}).then(() => this.#complete(event, files))
    this.#order.set(conversation, prepared)
    const complete = await prepared
    if (this.#order.get(conversation) === prepared) this.#order.delete(conversation)
    return this.#untilTaken(complete)
  }

  /** Retries until the daemon has the event, because Slack repeats an event only for some minutes. */
  async #untilTaken(event: InboundEvent): Promise<boolean> {
    const { signal } = this.host
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        await this.host.ingest(event)
        return true
      } catch (error) {
        if (signal.aborted) break
        this.host.log(`an event was not accepted by the daemon: ${messageOf(error)}`)
        if (error instanceof IngestRefused && HOPELESS.has(error.code)) return true
        await this.timing.sleep(backoffMs(failures, this.timing), signal).catch(() => {})
      }
    }
    return false
  }

  /** Adds the sender's name and the files. */
  async #complete(event: InboundEvent, files: Found['files']): Promise<InboundEvent> {
    const { sender } = event
    const name = sender.username ?? (sender.authenticated ? await this.#client.nameOf(sender.id) : undefined)
    const named = name === undefined ? event : { ...event, sender: { ...sender, username: name, display_name: name } }
    if (files.length === 0) return named
    const { attachments, missing } = await this.#client.files(files)
    return {
      ...named,
      text: [event.text, ...missing].filter(Boolean).join('\n'),
      ...(attachments.length === 0 ? {} : { attachments }),
    }
  }
}

const TS = /^\d{1,20}\.\d{1,10}$/
/** Reasons for which Slack replaces a connection. */
const MOVED = /^Slack: (?:refresh_requested|warning)$/

/** The state that an unrecoverable error leaves the instance in until its restart; undefined: the error is transient. */
function refusalOf(error: unknown): StateReport | undefined {
  if (error === 'Slack: link_disabled')
    return {
      status: 'error',
      reason: 'tenant_config_invalid',
      message:
        'Socket Mode is off for this app: turn it on under Socket Mode at api.slack.com/apps, and restart the bridge',
    }
  if (!isTokenRefused(error)) return undefined
  const message = `${describe(error)}: bind bot_token (xoxb-…, OAuth & Permissions) and app_token (xapp-…, App-Level Tokens) anew`
  return { status: 'auth_required', reason: 'auth_failed', message }
}
