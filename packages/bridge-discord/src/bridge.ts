import {
  type APIUser,
  ApplicationFlags,
  GatewayDispatchEvents as Events,
  type GatewayDispatchPayload,
} from '@discordjs/core'
import {
  type Adapter,
  type Address,
  backoffMs,
  type Check,
  clip,
  type Delivery,
  type DeliveryResult,
  type Host,
  type InboundEvent,
  IngestRefused,
  type Instance,
  InstanceProblem,
  isAfter,
  measure,
  messageOf,
  NotSent,
  Positions,
  realTiming,
  type SettleResult,
  Standing,
  type StateReport,
  type Target,
  type Timing,
  type Unsettled,
} from '../../bridge-kit/src/index.js'
import { Channels } from './channels.js'
import { DiscordClient } from './client.js'
import { configOf, type DiscordConfig } from './config.js'
import { editEvent, type GatewayMessage, isWithoutContent, messageEvent } from './events.js'
import { describe, isTokenRefused, isUnseen, pauseOf } from './failures.js'
import { Gateway } from './gateway.js'

/** Maximum length of one message in code points. */
const LONGEST = 2000
/** Discord expects a heartbeat every 41 s, and the library replaces a connection that misses one. */
const DEAF_MS = 180_000
/** Direct conversations that are caught up after a new session. */
const MOST_DIRECT = 50
/** Event errors for which a retry is useless. */
const HOPELESS = new Set(['bridge_event_invalid', 'invalid_params'])

/** Opens one instance, which keeps its gateway connection until it is closed. */
export function openDiscord(instance: Instance, host: Host, timing: Timing = realTiming): Adapter {
  return new DiscordBridge(configOf(instance), host, timing)
}

class DiscordBridge implements Adapter {
  readonly #places = new Channels()
  readonly #positions: Positions
  readonly #client: DiscordClient
  readonly #running: Promise<void>
  /** Serialises the events of one channel while their files are fetched. */
  readonly #order = new Map<string, Promise<unknown>>()
  #gateway: Gateway | undefined
  #me: APIUser | undefined
  #isLive = false
  /** Why Discord withholds the text of messages; undefined: it does not. */
  #withoutContent: string | undefined
  readonly #standing: Standing

  constructor(
    private readonly config: DiscordConfig,
    private readonly host: Host,
    private readonly timing: Timing,
  ) {
    this.#positions = new Positions(host, timing)
    this.#client = new DiscordClient(config, host, timing, this.#places)
    this.#standing = new Standing(host, timing)
    this.#running = this.#run()
  }

  async deliver(delivery: Delivery): Promise<DeliveryResult> {
    const { event, text, remote_message_id: id } = delivery
    if (id !== undefined && !/^\d{1,25}$/.test(id))
      throw new NotSent('unknown_destination', `${JSON.stringify(clip(id, 80))} is not a Discord message`)
    const same = id === undefined ? {} : { remote_message_id: id }
    if (event === 'delete') {
      if (id === undefined) throw new NotSent('unknown_destination', 'the message to delete has no id')
      await this.#client.delete(delivery, id)
      return { status: 'delivered', ...same }
    }
    if (event === 'typing') {
      await this.#client.typing(delivery)
      return { status: 'delivered' }
    }
    const length = measure(text, 'code_points')
    if (length > LONGEST)
      throw new NotSent('unsupported_capability', `a text of ${length} characters is longer than ${LONGEST}`)
    if (text.trim() === '') return { status: 'delivered', ...same }
    if (id === undefined) return { status: 'delivered', remote_message_id: await this.#client.post(delivery) }
    await this.#client.edit(delivery, id)
    return { status: 'delivered', ...same }
  }

  async settle(unsettled: Unsettled): Promise<SettleResult> {
    return this.#me ? this.#client.find(unsettled, unsettled.since, this.#me.id) : { outcome: 'unknown' }
  }

  targets(): readonly Target[] {
    return this.#places.targets()
  }

  async verify(): Promise<readonly Check[]> {
    const checks: Check[] = []
    const add = (check: string, status: Check['status'], remediation: string) => {
      checks.push({ check, status, remediation: status === 'pass' ? '' : remediation })
    }
    const app = await this.#client.api.applications.getCurrent().catch((error: unknown) => describe(error))
    if (typeof app === 'string') {
      add('discord.token', 'fail', `Bind a valid bot_token: developer portal, Bot, Reset Token. ${app}`)
      return checks
    }
    add('discord.token', 'pass', '')
    const content = ApplicationFlags.GatewayMessageContent | ApplicationFlags.GatewayMessageContentLimited
    add(
      'discord.message_content',
      (app.flags ?? 0) & content ? 'pass' : this.config.content ? 'fail' : 'warn',
      CONTENT_OFF,
    )
    const why = this.deaf() ?? (this.#isLive ? undefined : 'There is no connection to the gateway.')
    add('discord.gateway', why === undefined ? 'pass' : 'fail', `${why}`)
    const invite = `https://discord.com/oauth2/authorize?client_id=${app.id}&scope=bot&permissions=${PERMISSIONS}`
    add('discord.servers', this.#places.guilds > 0 ? 'pass' : 'warn', `Invite the bot to a server: ${invite}`)
    return checks
  }

  deaf(): string | undefined {
    const silentMs = this.#isLive ? (this.#gateway?.silentMs ?? 0) : 0
    return silentMs > DEAF_MS ? `Discord has not answered heartbeats for ${Math.round(silentMs / 1000)} s` : undefined
  }

  async close(): Promise<void> {
    await this.#gateway?.close()
    await this.#running
    this.#client.rest.clearHandlerSweeper()
    this.#client.rest.clearHashSweeper()
  }

  async #run(): Promise<void> {
    const { signal } = this.host
    await this.#positions.load().catch(error => this.host.log(`positions are not known: ${messageOf(error)}`))
    for (let failures = 1; !signal.aborted; failures++) {
      const error = await this.#connect().catch((problem: unknown) => problem)
      this.#isLive = false
      await this.#gateway?.close().catch(() => {})
      if (signal.aborted) return
      if (isContentRefused(error) && this.#withoutContent === undefined && this.config.content) {
        this.#withoutContent = CONTENT_OFF
        continue
      }
      const problem = problemOf(error)
      if (problem) {
        this.#standing.report(problem)
        return
      }
      this.#lost(describe(error), pauseOf(error))
      await this.timing.sleep(pauseOf(error) ?? backoffMs(failures, this.timing), signal).catch(() => {})
    }
  }

  /** Runs the gateway until Discord refuses the bot or the instance is closed. */
  async #connect(): Promise<void> {
    const wantsContent = this.config.content && this.#withoutContent !== CONTENT_OFF
    const gateway = new Gateway(this.config.token, this.#client.rest, wantsContent, this.timing, {
      dispatch: payload => this.#dispatch(payload),
      live: (me, isNew) => {
        this.#me = me
        this.#isLive = true
        this.#tell()
        if (isNew) this.#directBehind()
      },
      lost: why => {
        this.#isLive = false
        this.#lost(why)
      },
    })
    this.#gateway = gateway
    const { signal } = this.host
    const close = () => void gateway.close().catch(() => {})
    signal.addEventListener('abort', close, { once: true })
    try {
      await gateway.open(signal)
      await gateway.ended
    } finally {
      signal.removeEventListener('abort', close)
    }
  }

  #dispatch(payload: GatewayDispatchPayload): void {
    this.#places.learn(payload)
    if (payload.t === Events.GuildCreate)
      for (const { id, last_message_id: last } of [...payload.d.channels, ...payload.d.threads] as readonly Latest[])
        if (last) this.#behind({ guild: payload.d.id, channel: id }, last)
    const isNew = payload.t === Events.MessageCreate
    if (!this.#me || (!isNew && payload.t !== Events.MessageUpdate)) return
    const message = payload.d as GatewayMessage
    if (isNew && message.author?.id === this.#me.id) this.#client.learnOwn(message)
    if (isNew) this.#positions.taking(keyOf(locationOf(message)), message.id)
    this.#inOrder(message.channel_id, () => this.#message(message, isNew, this.#me as APIUser))
  }

  /** Runs the work of one channel sequentially. */
  #inOrder(channel: string, work: () => Promise<void>): void {
    const before = this.#order.get(channel) ?? Promise.resolve()
    const handled = before
      .then(work)
      .catch(error => this.host.log(`a message could not be parsed: ${messageOf(error)}`))
    this.#order.set(channel, handled)
    void handled.then(() => {
      if (this.#order.get(channel) === handled) this.#order.delete(channel)
    })
  }

  /** Fetches the messages of a channel that were missed while disconnected; new messages wait for it. */
  #behind(location: ChannelLocation, last: string): void {
    const at = this.#positions.of(keyOf(location))
    if (at === undefined) this.#positions.begin(keyOf(location), last)
    else if (isAfter(last, at)) this.#inOrder(location.channel, () => this.#catchUp(location, at))
  }

  /** Discord does not replay direct messages that were sent before a new session. */
  #directBehind(): void {
    const direct = this.#positions.places().filter(key => key.startsWith(`${DIRECT}/`))
    for (const key of direct.slice(0, MOST_DIRECT)) {
      const at = this.#positions.of(key)
      const channel = key.slice(DIRECT.length + 1)
      if (at !== undefined) this.#inOrder(channel, () => this.#catchUp({ guild: undefined, channel }, at))
    }
  }

  /** Fetches the messages after `since`, the oldest first. */
  async #catchUp(location: ChannelLocation, since: string): Promise<void> {
    const me = this.#me as APIUser
    try {
      for await (const message of this.#client.since(location.channel, since)) {
        if (this.host.signal.aborted) return
        const whole = { ...message, ...(location.guild === undefined ? {} : { guild_id: location.guild }) }
        this.#positions.taking(keyOf(location), message.id)
        await this.#message(whole, true, me)
      }
    } catch (error) {
      // The bot has no access to the channel, or has lost it.
      if (isUnseen(error)) this.#positions.forget(keyOf(location))
      this.host.log(`messages written in ${location.channel} meanwhile could not be fetched: ${describe(error)}`)
    }
  }

  /** Resolves once the event was handed over; bridge-kit keeps it until the daemon has it. */
  async #message(message: GatewayMessage, isNew: boolean, me: APIUser): Promise<void> {
    const taken = () => {
      if (isNew) this.#positions.taken(keyOf(locationOf(message)), message.id)
    }
    const complete = await this.#eventOf(message, isNew, me).catch(error => {
      taken()
      throw error
    })
    if (!complete) taken()
    else void this.#ingest(complete).then(isOver => isOver && taken())
  }

  async #eventOf(message: GatewayMessage, isNew: boolean, me: APIUser): Promise<InboundEvent | undefined> {
    if (!message.author || message.author.id === me.id) return undefined
    const isDirect = message.guild_id === undefined
    const address = isDirect ? {} : await this.#placeOf(message.channel_id)
    if (isDirect) this.#places.learnPerson(message.author.id, message.channel_id, message.author.username)
    const event = isNew ? messageEvent(message, address, me) : editEvent(message, address, me)
    if (!event) return undefined
    if (isWithoutContent(message, me)) this.#emptied()
    return this.#complete(event, isNew ? message : undefined)
  }

  /**
   * Retries until the daemon has the event, because Discord does not send it again. Resolves with whether nothing remains to be
   * done.
   */
  async #ingest(event: InboundEvent): Promise<boolean> {
    const { signal } = this.host
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        await this.host.ingest(event)
        return true
      } catch (error) {
        this.host.log(`an event was not accepted by the daemon: ${messageOf(error)}`)
        if (error instanceof IngestRefused && HOPELESS.has(error.code)) return true
        await this.timing.sleep(backoffMs(failures, this.timing), signal).catch(() => {})
      }
    }
    return false
  }

  async #complete(event: InboundEvent, message: GatewayMessage | undefined): Promise<InboundEvent | undefined> {
    const files = message?.attachments ?? []
    if (files.length === 0) return event.text === '' ? undefined : event
    const { attachments, missing } = await this.#client.files(files)
    return {
      ...event,
      text: [event.text, ...missing].filter(Boolean).join('\n'),
      ...(attachments.length === 0 ? {} : { attachments }),
    }
  }

  async #placeOf(channel: string): Promise<Address> {
    if (!this.#places.has(channel))
      await this.#client.api.channels.get(channel).then(
        found => this.#places.add(found as never),
        error => this.host.log(`the channel ${channel} is not known: ${describe(error)}`),
      )
    return this.#places.addressOf(channel)
  }

  /** A message arrived without its text. */
  #emptied(): void {
    if (this.#withoutContent !== undefined || !this.config.content) return
    this.#withoutContent = CONTENT_EMPTY
    this.#tell()
  }

  #tell(): void {
    if (!this.#isLive) return
    const message = this.#withoutContent
    this.#standing.report(
      message === undefined ? { status: 'ready' } : { status: 'degraded', reason: 'tenant_config_invalid', message },
    )
  }

  #lost(message: string, pause?: number): void {
    const reason = pause === undefined ? 'provider_timeout' : 'rate_limited'
    this.#standing.report({ status: 'degraded', reason, message: clip(message, 500) })
  }
}

/** A channel of a server, or a direct-message channel. */
interface ChannelLocation {
  readonly guild: string | undefined
  readonly channel: string
}

interface Latest {
  readonly id: string
  readonly last_message_id?: string | null
}

const DIRECT = '@me'
const locationOf = ({ guild_id: guild, channel_id: channel }: GatewayMessage): ChannelLocation => ({ guild, channel })
const keyOf = ({ guild = DIRECT, channel }: ChannelLocation): string => `${guild}/${channel}`

/** View Channel, Send Messages, Read Message History, Send Messages in Threads. */
const PERMISSIONS = String((1n << 10n) | (1n << 11n) | (1n << 16n) | (1n << 38n))
const CONTENT_OFF =
  'Message Content Intent is off, so that only direct messages and messages that mention the bot can be read: turn it on at discord.com/developers/applications, the application, Bot, and restart the bridge'
const CONTENT_EMPTY =
  'a message came without its text, which means that Message Content Intent is missing: turn it on at discord.com/developers/applications, the application, Bot, and restart the bridge'

const isContentRefused = (error: unknown): boolean => /disallowed intents/i.test(messageOf(error))

/** The state that an unrecoverable error leaves the instance in until its restart; undefined: the error is transient. */
function problemOf(error: unknown): StateReport | undefined {
  if (error instanceof InstanceProblem) return error.state
  if (isTokenRefused(error) || /authentication failed/i.test(messageOf(error)))
    return {
      status: 'auth_required',
      reason: 'auth_failed',
      message:
        'Discord refuses the token: make a new one at discord.com/developers/applications, the application, Bot, Reset Token, and bind it to bot_token',
    }
  if (/disallowed intents|invalid intents|sharding is required|invalid (?:shard|api version)/i.test(messageOf(error)))
    return {
      status: 'error',
      reason: 'tenant_config_invalid',
      message: `Discord refuses the connection: ${messageOf(error)}`,
    }
  return undefined
}
