import {
  type Adapter,
  type Address,
  Arrivals,
  type Check,
  checksOf,
  clip,
  type Delivery,
  durable,
  fileMissing,
  type Host,
  type InboundEvent,
  type Instance,
  isHmac,
  isSame,
  type ListenConfig,
  listen,
  listenConfigOf,
  messageOf,
  NotSent,
  objectOf,
  realTiming,
  retrying,
  Standing,
  settingsOf,
  type Target,
  type Timing,
  type WebhookReply,
  type WebhookRequest,
  webhookCheck,
} from '../../bridge-kit/src/index.js'
import { refusalOf, WhatsappApi } from './api.js'
import { isGroup, isPerson, type Media, type Reading, readUpdate, type Status } from './event.js'
import { LONGEST, marked } from './text.js'

/** Meta sends up to 3 MB. */
const MOST_BYTES = 4 * 1024 * 1024

interface WhatsappConfig {
  readonly listen: ListenConfig
  readonly apiUrl: string
  readonly number: string
  readonly accessToken: string
  readonly appSecret: string
  readonly verifyToken: string
  readonly targets: readonly string[]
}

/** Opens one instance: it listens and retries to look up its number until WhatsApp responds. */
export async function openWhatsapp(instance: Instance, host: Host, timing: Timing = realTiming): Promise<Adapter> {
  const bridge = new WhatsappBridge(configOf(instance), host, timing)
  await bridge.open()
  return bridge
}

class WhatsappBridge implements Adapter {
  readonly #api: WhatsappApi
  readonly #standing: Standing
  #close: () => Promise<void> = async () => {}
  #hasHeard = false
  /** Foreign numbers whose events arrive here although they belong to other instances. */
  readonly #strangers = new Set<string>()
  readonly #arrivals: Arrivals
  /** Delivery failures being reported to the daemon. */
  readonly #reports = new Map<string, Promise<unknown>>()

  constructor(
    private readonly config: WhatsappConfig,
    private readonly host: Host,
    private readonly timing: Timing,
  ) {
    this.#api = new WhatsappApi(config.apiUrl, config.number, config.accessToken, host.signal)
    this.#arrivals = new Arrivals(host)
    this.#standing = new Standing(host, timing, config.listen.publicUrl)
  }

  async open(): Promise<void> {
    const { close } = await listen(this.config.listen, request => this.#received(request), MOST_BYTES, ['GET', 'POST'])
    this.#close = close
    void this.#standing.begin(async () => {
      await this.#api.whoAmI()
    })
  }

  async deliver({ event, target, text, remote_message_id: id, reply_to_message_id: reply }: Delivery) {
    if (event === 'progress') return { status: 'delivered' } as const
    if (event === 'delete' || id !== undefined)
      throw new NotSent('unsupported_capability', 'WhatsApp cannot edit a sent message')
    const body = marked(text)
    if (body.length > LONGEST)
      throw new NotSent('unsupported_capability', `a text of ${body.length} characters is longer than ${LONGEST}`)
    if (body === '') return { status: 'delivered' } as const
    try {
      const result = await this.#api.send(recipientOf(target), body, reply)
      if (result.status === 'delivered') this.#standing.well()
      return result
    } catch (error) {
      if (error instanceof NotSent) this.#standing.failed(error)
      throw error
    }
  }

  targets(): readonly Target[] {
    return this.config.targets.map(number => ({ peer_id: number, display_name: `+${number}`, target_type: 'user' }))
  }

  verify(): Promise<readonly Check[]> {
    const login = async () => `The number is ${await this.#api.whoAmI()}.`
    const hint = 'Bind a valid access_token, and check provider_config.phone_number_id'
    return checksOf('whatsapp', login, hint, this.#hasHeard, this.registerWebhook())
  }

  registerWebhook(): Check {
    const [other] = this.#strangers
    if (other !== undefined) {
      const remediation = `Events of the phone number ID ${other} come here: check provider_config.phone_number_id.`
      return { check: 'webhook.registered', status: 'warn', remediation }
    }
    return webhookCheck(
      this.config.listen.publicUrl,
      url =>
        `Enter ${url} as callback URL under WhatsApp > Configuration of the app, with the verify token, and subscribe to the field messages.`,
    )
  }

  close(): Promise<void> {
    return this.#close()
  }

  async #received({ method, headers, query, body }: WebhookRequest): Promise<WebhookReply> {
    if (method === 'GET') return this.#verified(query)
    const { 'x-hub-signature-256': signature = '' } = headers
    if (!/^sha256=[0-9a-f]{64}$/.test(signature) || !isHmac(this.config.appSecret, body, signature.slice(7), 'hex'))
      return { status: 401, body: { error: 'X-Hub-Signature-256 does not match' } }
    this.#hasHeard = true
    const { readings, statuses, others } = readUpdate(objectOf(body.toString('utf8')), this.config.number)
    for (const other of others) this.#refuse(other)
    const messages = readings.flatMap(one => ('ignored' in one ? [] : [this.#take(one)]))
    const failures = statuses.flatMap(one => (one.status === 'failed' ? [this.#failed(one)] : []))
    const replies = await Promise.all([...messages, ...failures])
    // When Meta repeats the whole request, the daemon ignores the parts that are already durable.
    const later = replies.find(({ status }) => status === 503)
    if (later) return later
    const ignored = readings.flatMap(one => ('ignored' in one ? [one.ignored] : []))
    return { status: 200, body: { taken: messages.length, ignored, ...(others.length > 0 ? { others } : {}) } }
  }

  /** Meta's verification request for the webhook URL. */
  #verified(query: URLSearchParams): WebhookReply {
    const [mode, token = '', challenge = ''] = ['mode', 'verify_token', 'challenge'].map(
      name => query.get(`hub.${name}`) ?? '',
    )
    if (mode !== 'subscribe' || !isSame(token, this.config.verifyToken))
      return { status: 403, text: 'hub.verify_token does not match' }
    return { status: 200, text: clip(challenge, 1000) }
  }

  #take({ event, media }: Exclude<Reading, { ignored: string }>): Promise<WebhookReply> {
    const complete = media && ((one: InboundEvent) => this.#withFile(one, media))
    return durable(this.#arrivals.take(event, complete))
  }

  /** The event with its file; a note replaces a file that is unavailable. */
  async #withFile(event: InboundEvent, media: Media): Promise<InboundEvent> {
    let why = 'WhatsApp did not deliver it'
    try {
      const file = await retrying(() => this.#api.file(media), {
        attempts: 3,
        signal: this.host.signal,
        timing: this.timing,
        transient: error => !(error instanceof NotSent) || error.kind === 'transient_delivery_failure',
      })
      if ('data' in file)
        return { ...event, attachments: [{ name: media.name, mime_type: media.type, data: file.data }] }
      why = file.missing
    } catch (error) {
      this.host.log(`a file could not be fetched: ${messageOf(error)}`)
    }
    return { ...event, text: [event.text, fileMissing(media.name, why)].filter(Boolean).join('\n') }
  }

  /** WhatsApp accepts almost every message and reports failures later in a status. */
  #failed({ id, code, message }: Status): Promise<WebhookReply> {
    let report = this.#reports.get(id)
    if (!report) {
      const { message: reason } = refusalOf(code, message)
      report = this.host.reportDelivery({ remote_message_id: id, status: 'failed', reason })
      this.#reports.set(id, report)
      const done = () => this.#reports.delete(id)
      report.then(done, done)
    }
    return durable(report)
  }

  #refuse(number: string): void {
    if (this.#strangers.has(number) || this.#strangers.size >= 10) return
    this.#strangers.add(number)
    this.host.log(`events of the phone number ID ${number} are refused: this instance is ${this.config.number}`)
  }
}

/**
 * The recipient in the form of the API.
 * @throws NotSent If the address is invalid
 */
function recipientOf({ group_id: group, peer_id: peer = '' }: Address): object {
  if (group !== undefined) {
    if (isGroup(group)) return { recipient_type: 'group', to: group }
  } else if (isPerson(peer)) {
    const to = /^\d+$/.test(peer) ? { to: peer } : { recipient: peer }
    return { recipient_type: 'individual', ...to }
  }
  throw new NotSent('unknown_destination', `${JSON.stringify(clip(group ?? peer, 80))} is not a WhatsApp number`)
}

function configOf(instance: Instance): WhatsappConfig {
  const settings = settingsOf(instance)
  const api = settings.api('api_url', 'https://graph.facebook.com')
  return {
    listen: listenConfigOf(instance),
    apiUrl: `${api}/${settings.text('api_version', 'v24.0', /^v\d{1,3}\.\d$/)}`,
    number: settings.text('phone_number_id', '', /^\d{1,32}$/),
    accessToken: settings.secret('access_token', /^[\x21-\x7e]{1,2000}$/, 'generate a token of a system user'),
    appSecret: settings.secret('app_secret', /^[\x21-\x7e]{1,500}$/, 'see App settings > Basic of the app at Meta'),
    verifyToken: settings.secret('verify_token', /^[\x21-\x7e]{1,500}$/, 'choose a text: openssl rand -hex 32'),
    targets: settings.texts('targets', /^\d{5,20}$/, 200),
  }
}
