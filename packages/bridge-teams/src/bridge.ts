import {
  type Adapter,
  Arrivals,
  type Attachment,
  type Check,
  clip,
  type Delivery,
  type DeliveryResult,
  durable,
  fileMissing,
  type Host,
  http,
  type InboundEvent,
  type Instance,
  JwtRefused,
  listen,
  messageOf,
  NotSent,
  objectOf,
  RemoteKeys,
  realTiming,
  Standing,
  type Target,
  type Timing,
  type VerifiedJwt,
  verifyJwt,
  type WebhookReply,
  type WebhookRequest,
  webhookCheck,
} from '../../bridge-kit/src/index.js'
import { type Activity, isOfTenant, readActivity } from './activity.js'
import { TeamsApi } from './api.js'
import { configOf, connectorOf, type TeamsConfig } from './config.js'
import { type Conversation, Conversations } from './conversations.js'
import type { FileOf } from './files.js'
import { MOST_BYTES, quiet } from './text.js'

const ISSUER = 'https://api.botframework.com'
const CHANNEL = 'msteams'
/** Bytes of all files of a message that the daemon accepts. */
const MOST_FILE_BYTES = 8 * 1024 * 1024
/** The Bot Connector waits 15 s for a response. */
const WAIT_MS = 12_000
const MESSAGE_ID = /^[\x21-\x7e]{1,200}$/
const THREAD = /^\d{1,20}$/

/** Opens one instance: it listens and retries to get a token until Microsoft responds. */
export async function openTeams(instance: Instance, host: Host, timing: Timing = realTiming): Promise<Adapter> {
  const bridge = new TeamsBridge(configOf(instance), host, timing)
  await bridge.open()
  return bridge
}

class TeamsBridge implements Adapter {
  readonly #api: TeamsApi
  readonly #keys: RemoteKeys
  readonly #places: Conversations
  readonly #arrivals: Arrivals
  #close: () => Promise<void> = async () => {}
  readonly #standing: Standing
  #reached = false

  constructor(
    private readonly config: TeamsConfig,
    private readonly host: Host,
    timing: Timing,
  ) {
    this.#api = new TeamsApi(config, host.signal)
    this.#keys = new RemoteKeys(() => this.#keysUrl(), host.signal)
    this.#places = new Conversations(host, config.serviceUrl)
    this.#arrivals = new Arrivals(host)
    this.#standing = new Standing(host, timing, config.listen.publicUrl)
  }

  async open(): Promise<void> {
    const { close } = await listen(this.config.listen, request => this.#received(request))
    this.#close = close
    void this.#standing.begin(async () => {
      await this.#api.token()
    })
  }

  async deliver(delivery: Delivery): Promise<DeliveryResult> {
    const { event, remote_message_id: id, text } = delivery
    const known = id === undefined ? {} : { remote_message_id: id }
    if (event === 'progress' || (event !== 'delete' && text.trim() === '')) return { status: 'delivered', ...known }
    if (id !== undefined && !MESSAGE_ID.test(id))
      throw new NotSent('unknown_destination', `${JSON.stringify(clip(id, 80))} is not a Teams message`)
    if (Buffer.byteLength(text) > MOST_BYTES)
      throw new NotSent('unsupported_capability', `a text of more than ${MOST_BYTES} bytes is too long for Teams`)
    try {
      const made = await this.#send(delivery, await this.#places.get(delivery.target))
      this.#standing.well()
      return { status: 'delivered', ...(made === undefined ? known : { remote_message_id: made }) }
    } catch (error) {
      if (error instanceof NotSent) this.#standing.failed(error)
      throw error
    }
  }

  targets(): Promise<readonly Target[]> {
    return this.#places.targets()
  }

  async verify(): Promise<readonly Check[]> {
    const login = await this.#api.token().then(() => undefined, messageOf)
    const keys = await this.#keysUrl().then(() => undefined, messageOf)
    return [
      { check: 'teams.login', status: login === undefined ? 'pass' : 'fail', remediation: login ?? '' },
      {
        check: 'teams.keys',
        status: keys === undefined ? 'pass' : 'fail',
        remediation: keys === undefined ? '' : `Without the keys of the Bot Connector no message is accepted: ${keys}`,
      },
      {
        check: 'teams.endpoint',
        status: this.#reached ? 'pass' : 'warn',
        remediation: this.#reached ? '' : (await this.registerWebhook()).remediation,
      },
    ]
  }

  async registerWebhook(): Promise<Check> {
    return webhookCheck(
      this.config.listen.publicUrl,
      url =>
        `Enter ${url} as messaging endpoint under Configuration of the Azure Bot resource, add the channel Microsoft Teams, and write to the bot.`,
    )
  }

  close(): Promise<void> {
    return this.#close()
  }

  /** Creates, changes or deletes one message. Resolves with the id of a new message. */
  async #send(delivery: Delivery, location: Conversation): Promise<string | undefined> {
    const { event, target, text, remote_message_id: id, reply_to_message_id: replyTo } = delivery
    const { service } = location
    const { thread_id: thread } = target
    if (thread !== undefined && !THREAD.test(thread))
      throw new NotSent('unknown_destination', `${JSON.stringify(clip(thread, 80))} is not a Teams thread`)
    // A channel post is the root of its thread.
    const root = location.kind === 'channel' ? (thread ?? id) : undefined
    const conversation = root === undefined ? location.conversation : `${location.conversation};messageid=${root}`
    const path = `/v3/conversations/${encodeURIComponent(conversation)}/activities`
    if (event === 'delete') {
      if (id !== undefined) await this.#delete(service, `${path}/${encodeURIComponent(id)}`)
      return id
    }
    const activity = { type: 'message', textFormat: 'markdown', text: quiet(text) }
    if (id !== undefined) {
      await this.#api.call('PUT', service, `${path}/${encodeURIComponent(id)}`, { ...activity, id })
      return id
    }
    if (location.kind === 'channel' && root === undefined) return this.#post(location, activity)
    const isReply = replyTo !== undefined && MESSAGE_ID.test(replyTo)
    const where = isReply ? `${path}/${encodeURIComponent(replyTo)}` : path
    const { text: made } = await this.#api.call('POST', service, where, {
      ...activity,
      ...(isReply ? { replyToId: replyTo } : {}),
    })
    return idOf(objectOf(made).id)
  }

  /** Creates a channel post, which starts a thread. */
  async #post({ service, conversation }: Conversation, activity: object): Promise<string | undefined> {
    const { text } = await this.#api.call('POST', service, '/v3/conversations', {
      isGroup: true,
      bot: { id: `28:${this.config.appId}` },
      channelData: { channel: { id: conversation } },
      tenantId: this.config.tenant,
      activity,
    })
    const { activityId, id } = objectOf(text)
    return idOf(activityId) ?? idOf(String(id).split(';messageid=')[1])
  }

  async #delete(service: string, path: string): Promise<void> {
    await this.#api.call('DELETE', service, path).catch(error => {
      // The message is already gone.
      if (!(error instanceof NotSent && error.kind === 'unknown_destination')) throw error
    })
  }

  async #received({ headers, body }: WebhookRequest): Promise<WebhookReply> {
    const [, token] = /^Bearer ([\w.-]+)$/i.exec(headers.authorization ?? '') ?? []
    if (token === undefined) return { status: 401, body: { error: 'no token of the Bot Connector' } }
    let verified: VerifiedJwt
    try {
      const expected = { issuers: [ISSUER], audiences: [this.config.appId], now: Date.now() }
      verified = await verifyJwt(token, this.#keys, expected)
    } catch (error) {
      if (error instanceof JwtRefused) return { status: 401, body: { error: error.message } }
      this.host.log(`the keys of the Bot Connector are not known: ${messageOf(error)}`)
      return { status: 503, headers: { 'retry-after': '5' }, body: { error: 'not accepted now' } }
    }
    const activity: Activity = objectOf(body.toString('utf8'))
    const service = this.#serviceOf(activity, verified)
    if (typeof service !== 'string') return { status: 403, body: service }
    this.#reached = true
    return this.#took(activity, service)
  }

  /** The Bot Connector URL of an activity with a valid token, or why the activity is refused. */
  #serviceOf(activity: Activity, { claims, key }: VerifiedJwt): string | { readonly error: string } {
    const { channelId, serviceUrl } = activity
    const { endorsements } = key
    if (channelId !== CHANNEL) return { error: 'only messages of Teams are accepted' }
    if (!Array.isArray(endorsements) || !endorsements.includes(channelId))
      return { error: 'the key of the token is not valid for this channel' }
    if (typeof serviceUrl !== 'string' || (claims.serviceurl ?? claims.serviceUrl) !== serviceUrl)
      return { error: 'the token is for another serviceUrl' }
    const service = connectorOf(serviceUrl, this.config.serviceUrl)
    if (service === undefined) {
      this.host.log(`a message with the foreign serviceUrl ${JSON.stringify(clip(serviceUrl, 200))} is refused`)
      return { error: 'the serviceUrl does not belong to Microsoft' }
    }
    return isOfTenant(activity, this.config.tenant) ? service : { error: 'the tenant is not served here' }
  }

  async #took(activity: Activity, service: string): Promise<WebhookReply> {
    const reading = readActivity(activity, this.config.appId, service)
    // The answer may be sent after a restart, so the place is stored first.
    if (reading.location) await this.#places.learn(reading.location)
    // The bot sends no buttons, but an invocation must be acknowledged.
    if (activity.type === 'invoke') return { status: 200, body: {} }
    if ('ignored' in reading) return { status: 200, body: { ignored: reading.ignored } }
    const { event, files } = reading
    const complete = files.length === 0 ? undefined : (one: InboundEvent) => this.#withFiles(one, files)
    const reply = await durable(this.#arrivals.take(event, complete), WAIT_MS)
    return reply.status === 200 ? { status: 200, body: {} } : reply
  }

  /** The event with its files; a note replaces each file that is unavailable. */
  async #withFiles(event: InboundEvent, files: readonly FileOf[]): Promise<InboundEvent> {
    const attachments: Attachment[] = []
    const words = [event.text]
    let left = MOST_FILE_BYTES
    for (const file of files) {
      const found =
        event.addressed || this.config.answersAll ? await this.#fileOf(file, left) : 'it was not meant for the bot'
      if (typeof found === 'string') words.push(fileMissing(file.name, found))
      else {
        attachments.push({ name: file.name, mime_type: found.type, data: found.data.toString('base64') })
        left -= found.data.length
      }
    }
    const text = words.filter(Boolean).join('\n')
    return { ...event, text, ...(attachments.length === 0 ? {} : { attachments }) }
  }

  /** The file, or why it is unavailable. */
  async #fileOf(file: FileOf, mostBytes: number) {
    if (file.url === undefined) return 'it is not on a file server of Teams'
    try {
      const found = await this.#api.file(file, mostBytes)
      if (found === undefined) return 'the files are larger than 8 MiB'
      return found.data.length === 0 ? 'it is empty' : found
    } catch (error) {
      this.host.log(`a file could not be fetched: ${messageOf(error)}`)
      return 'Teams did not deliver it'
    }
  }

  /** The URL of the signing keys, from the OpenID configuration. */
  async #keysUrl(): Promise<string> {
    const { openIdUrl } = this.config
    const reply = await http({ method: 'GET', url: openIdUrl, signal: this.host.signal })
    const { jwks_uri: url } = objectOf(reply.text)
    const { protocol, host } = new URL(openIdUrl)
    if (reply.status !== 200 || typeof url !== 'string' || !URL.canParse(url))
      throw new Error(`${host} answered ${reply.status} without the address of keys`)
    if (new URL(url).protocol !== protocol) throw new Error(`${host} refers to keys with another protocol than its own`)
    return url
  }
}

const idOf = (value: unknown): string | undefined =>
  typeof value === 'string' && MESSAGE_ID.test(value) ? value : undefined
