import {
  type Adapter,
  Arrivals,
  type Attachment,
  type Check,
  checksOf,
  clip,
  type Delivery,
  type DeliveryResult,
  durable,
  fileMissing,
  type Host,
  type InboundEvent,
  type Instance,
  InstanceProblem,
  JwtRefused,
  type ListenConfig,
  listen,
  listenConfigOf,
  messageOf,
  NotSent,
  objectOf,
  realTiming,
  remember,
  type SettleResult,
  Standing,
  settingsOf,
  type Target,
  type Timing,
  type Unsettled,
  type WebhookReply,
  type WebhookRequest,
  webhookCheck,
} from '../../bridge-kit/src/index.js'
import { ChatError, GchatApi, type ServiceAccount, serviceAccountOf } from './api.js'
import { Bearer } from './bearer.js'
import { type FileOf, readEvent, type SpaceOf } from './event.js'
import { clientId, isMessage, isSpace, locationOf, messageIn, type SpaceLocation, threadKey } from './spaces.js'
import { LONGEST, quiet } from './text.js'

const MOST_BYTES = 2 * 1024 * 1024
/** Google Chat waits 30 s for a response. */
const WAIT_MS = 25_000
/** Bytes of all files of a message that the daemon accepts. */
const MOST_FILE_BYTES = 8 * 1024 * 1024
const MOST_PAGES = 10
const MOST_REMEMBERED = 2000
/** Any other response body would be shown as a message. */
const SEEN: WebhookReply = { status: 200, body: {} }

interface GchatConfig {
  readonly listen: ListenConfig
  readonly apiUrl: string
  readonly keysUrl: string
  readonly account: ServiceAccount
  readonly projectNumber: string | undefined
}

/** Opens one instance: it listens and retries to list its spaces until Google Chat responds. */
export async function openGchat(instance: Instance, host: Host, timing: Timing = realTiming): Promise<Adapter> {
  const bridge = new GchatBridge(configOf(instance), host, timing)
  await bridge.open()
  return bridge
}

class GchatBridge implements Adapter {
  readonly #api: GchatApi
  readonly #bearer: Bearer
  readonly #standing: Standing
  readonly #arrivals: Arrivals
  /** Known spaces, with the person's name for direct messages, which the list of spaces lacks. */
  readonly #spaces = new Map<string, SpaceOf>()
  /** Direct-message spaces by person. */
  readonly #direct = new Map<string, string>()
  #close: () => Promise<void> = async () => {}
  #hasHeard = false
  #refusal = ''

  constructor(
    private readonly config: GchatConfig,
    private readonly host: Host,
    timing: Timing,
  ) {
    const { apiUrl, account, keysUrl, projectNumber, listen } = config
    this.#api = new GchatApi(apiUrl, account, timing, host.signal)
    this.#bearer = new Bearer({ projectNumber, url: listen.publicUrl }, keysUrl, host.signal)
    this.#arrivals = new Arrivals(host)
    this.#standing = new Standing(host, timing, listen.publicUrl)
  }

  async open(): Promise<void> {
    const { close } = await listen(this.config.listen, request => this.#received(request), MOST_BYTES)
    this.#close = close
    void this.#standing.begin(async () => {
      await this.#api.call('GET', 'spaces?pageSize=1')
    })
  }

  async deliver(delivery: Delivery): Promise<DeliveryResult> {
    if (delivery.event === 'progress') return { status: 'delivered' }
    try {
      const location = await locationOf(delivery.target, user => this.#directWith(user))
      const result = await this.#perform(delivery, location)
      this.#standing.well()
      return result
    } catch (error) {
      const failure = error instanceof ChatError ? refusalOf(error) : error
      if (failure instanceof NotSent) this.#standing.failed(failure)
      throw failure
    }
  }

  /** Exact: the message id is chosen before the creation, and Google Chat refuses a duplicate. */
  async settle({ nonce, target }: Unsettled): Promise<SettleResult> {
    const { space } = await locationOf(target, user => this.#directWith(user))
    const found = await this.#find(space, nonce)
    return found === undefined ? { outcome: 'absent' } : { outcome: 'delivered', remote_message_id: found }
  }

  async targets(): Promise<readonly Target[]> {
    const targets = new Map<string, Target>()
    for (const space of this.#spaces.values()) targets.set(space.name, targetOf(space))
    let page = ''
    for (let n = 0; n < MOST_PAGES; n++) {
      const { spaces, nextPageToken } = await this.#api.call('GET', `spaces?pageSize=1000${page}`)
      for (const one of Array.isArray(spaces) ? spaces : []) {
        const { name, displayName, spaceType } = (one ?? {}) as Readonly<Record<string, unknown>>
        if (!isSpace(name) || this.#spaces.has(name)) continue
        const title = typeof displayName === 'string' && displayName !== '' ? clip(displayName, 200) : name
        targets.set(name, targetOf({ name, title, isDirect: spaceType === 'DIRECT_MESSAGE' }))
      }
      if (typeof nextPageToken !== 'string' || nextPageToken === '') break
      page = `&pageToken=${encodeURIComponent(nextPageToken)}`
    }
    return [...targets.values()]
  }

  verify(): Promise<readonly Check[]> {
    const login = () => this.#api.call('GET', 'spaces?pageSize=1').then(() => undefined)
    const hint = 'Enable the Google Chat API in the project, and bind credentials_json'
    return checksOf('gchat', login, hint, this.#hasHeard, this.registerWebhook())
  }

  registerWebhook(): Check {
    if (this.#refusal !== '' && !this.#hasHeard)
      return { check: 'webhook.registered', status: 'fail', remediation: `An event was refused: ${this.#refusal}.` }
    const audience = this.config.projectNumber === undefined ? 'HTTP endpoint URL' : 'Project number'
    return webhookCheck(
      this.config.listen.publicUrl,
      url => `Enter ${url} as HTTP endpoint URL in the configuration of the Google Chat API, audience ${audience}.`,
    )
  }

  close(): Promise<void> {
    return this.#close()
  }

  async #perform(delivery: Delivery, location: SpaceLocation): Promise<DeliveryResult> {
    const { event, nonce, remote_message_id: id } = delivery
    const text = quiet(delivery.text)
    if (event === 'delete') {
      if (id !== undefined) await this.#api.call('DELETE', messageIn(location.space, id)).catch(unlessMissing)
      return { status: 'delivered' }
    }
    if (text.length > LONGEST)
      throw new NotSent('unsupported_capability', `a text of ${text.length} characters is longer than ${LONGEST}`)
    const message = { text, markupSyntax: 'MARKUP_SYNTAX_MARKDOWN' }
    if (id !== undefined) {
      await this.#change(messageIn(location.space, id), message)
      return { status: 'delivered', remote_message_id: id }
    }
    if (text.trim() === '') return { status: 'delivered' }
    const query = `messageId=${clientId(nonce)}`
    const { reply, thread } = threadFor(location, delivery)
    try {
      const { name } = await this.#api.call('POST', `${location.space}/messages?${query}${reply}`, {
        ...message,
        ...thread,
      })
      return isMessage(name)
        ? { status: 'delivered', remote_message_id: name }
        : { status: 'unknown', message: 'Google Chat returned no message id' }
    } catch (error) {
      if (!(error instanceof ChatError) || error.status !== 409) throw error
      // An earlier attempt has created the message.
      const made = await this.#find(location.space, nonce)
      if (made === undefined) throw error
      await this.#change(made, message)
      return { status: 'delivered', remote_message_id: made }
    }
  }

  async #change(name: string, message: object): Promise<void> {
    try {
      await this.#api.call('PATCH', `${name}?updateMask=text`, message)
    } catch (error) {
      if (error instanceof NotSent || error instanceof ChatError) throw error
      // An update is idempotent.
      throw new NotSent('transient_delivery_failure', messageOf(error))
    }
  }

  /** The name of the message with a nonce. */
  async #find(space: string, nonce: string): Promise<string | undefined> {
    const found = await this.#api.call('GET', `${space}/messages/${clientId(nonce)}`).catch(unlessMissing)
    if (found === undefined) return undefined
    if (!isMessage(found.name)) throw new Error('Google Chat returned no message id')
    return found.name
  }

  async #directWith(user: string): Promise<string> {
    const known = this.#direct.get(user)
    if (known !== undefined) return known
    const found = await this.#api
      .call('GET', `spaces:findDirectMessage?name=${encodeURIComponent(user)}`)
      .catch(unlessMissing)
    if (!isSpace(found?.name))
      throw new NotSent(
        'unknown_destination',
        `there is no direct message with ${user}: that person has to write first`,
      )
    remember(this.#direct, user, found.name, MOST_REMEMBERED)
    return found.name
  }

  async #received({ headers, body }: WebhookRequest): Promise<WebhookReply> {
    try {
      await this.#bearer.check(headers.authorization ?? '', Date.now())
    } catch (error) {
      const message = messageOf(error)
      if (!(error instanceof JwtRefused)) {
        this.host.log(`an event cannot be checked: ${message}`)
        return { status: 503, headers: { 'retry-after': '5' } }
      }
      if (message !== this.#refusal) this.host.log(`an event is refused: ${message}`)
      this.#refusal = message
      return { status: 401, body: { error: message } }
    }
    this.#hasHeard = true
    const reading = readEvent(objectOf(body.toString('utf8')))
    const { space, isRemoved, event, files = [] } = reading ?? {}
    if (space && isRemoved) this.#spaces.delete(space.name)
    else if (space) remember(this.#spaces, space.name, space, MOST_REMEMBERED)
    if (!event) return SEEN
    if (space?.isDirect) remember(this.#direct, event.sender.id, space.name, MOST_REMEMBERED)
    const complete = files.length === 0 ? undefined : (one: InboundEvent) => this.#withFiles(one, files)
    const reply = await durable(this.#arrivals.take(event, complete), WAIT_MS)
    return reply.status === 200 ? SEEN : reply
  }

  /** The event with its files; a note replaces each file that is unavailable. */
  async #withFiles(event: InboundEvent, files: readonly FileOf[]): Promise<InboundEvent> {
    const attachments: Attachment[] = []
    const words = [event.text]
    let left = MOST_FILE_BYTES
    for (const { resource, name, type } of files) {
      const data = resource === '' ? '' : await this.#fileOf(resource, left)
      if (data === undefined) words.push(fileMissing(name, 'the files are larger than 8 MiB'))
      else if (data === '') words.push(fileMissing(name, 'Google Chat did not deliver it'))
      else {
        attachments.push({ name, mime_type: type, data })
        left -= Buffer.byteLength(data, 'base64')
      }
    }
    return { ...event, text: words.filter(Boolean).join('\n'), attachments }
  }

  /** The bytes of a file in base64. Empty: unavailable; undefined: too large. */
  async #fileOf(resource: string, mostBytes: number): Promise<string | undefined> {
    try {
      return await this.#api.file(resource, mostBytes)
    } catch (error) {
      this.host.log(`a file could not be fetched: ${messageOf(error)}`)
      return ''
    }
  }
}

/** The thread of a new message. All parts of a notification share the thread that its first part creates. */
function threadFor({ space, thread, isDirect }: SpaceLocation, { delivery_id: id }: Delivery) {
  if (isDirect) return { reply: '', thread: {} }
  const to = thread === undefined ? { threadKey: threadKey(id) } : { name: `${space}/threads/${thread}` }
  return { reply: '&messageReplyOption=REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD', thread: { thread: to } }
}

function refusalOf({ status, message }: ChatError): NotSent {
  if (status === 403) return new NotSent('permission_denied', `${message} Add the app to the space.`)
  if (status === 404 || status < 400) return new NotSent('unknown_destination', message)
  return new NotSent('unsupported_capability', message)
}

const targetOf = ({ name, title, isDirect }: SpaceOf): Target =>
  isDirect
    ? { peer_id: name, display_name: title, target_type: 'user' }
    : { group_id: name, display_name: title, target_type: 'group' }

function unlessMissing(error: unknown): undefined {
  if (error instanceof ChatError && error.status === 404) return undefined
  throw error
}

function configOf(instance: Instance): GchatConfig {
  const settings = settingsOf(instance)
  const listenConfig = listenConfigOf(instance)
  const json = settings.secret('credentials_json', /^\{[\s\S]{1,20000}\}$/, 'make a JSON key of a service account')
  const number = instance.secret('project_number')?.trim()
  if (number !== undefined && !/^\d{1,32}$/.test(number))
    throw problem('the secret project_number is not a number: see the dashboard of the project')
  if (number === undefined && listenConfig.publicUrl === undefined)
    throw problem('the audience of events is unknown: bind project_number, or set provider_config.public_url')
  return {
    listen: listenConfig,
    apiUrl: settings.api('api_url', 'https://chat.googleapis.com'),
    keysUrl: settings.api('certs_url', 'https://www.googleapis.com'),
    account: serviceAccountOf(json),
    projectNumber: number,
  }
}

const problem = (message: string) => new InstanceProblem({ status: 'error', reason: 'tenant_config_invalid', message })
