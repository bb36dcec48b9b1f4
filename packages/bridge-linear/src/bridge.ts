import {
  type Adapter,
  type Check,
  checksOf,
  type Delivery,
  type DeliveryResult,
  type Host,
  type Instance,
  InstanceProblem,
  isHmac,
  type ListenConfig,
  listen,
  listenConfigOf,
  NotSent,
  objectOf,
  realTiming,
  type SettleResult,
  Standing,
  settingsOf,
  type Target,
  type Timing,
  taken,
  type Unsettled,
  unbound,
  type WebhookReply,
  type WebhookRequest,
  webhookCheck,
} from '../../bridge-kit/src/index.js'
import { type Credentials, LinearApi, LinearError } from './api.js'
import { readEvent, type Self } from './event.js'
import { commentId, isIdentifier, issueOf, isUuid } from './ids.js'

/** Linear waits five seconds, and retries after a minute, an hour and six hours. */
const WAIT_MS = 4000
/** Accepts the last of these retries; the daemon remembers event keys for 24 hours. */
const TOLERANCE_MS = 8 * 60 * 60_000

const WHO = 'query { viewer { id name displayName } }'
const FIND = 'query ($id: String!) { comment(id: $id) { id } }'
const CREATE = 'mutation ($input: CommentCreateInput!) { commentCreate(input: $input) { success comment { id } } }'
const UPDATE =
  'mutation ($id: String!, $input: CommentUpdateInput!) { commentUpdate(id: $id, input: $input) { success } }'
const DELETE = 'mutation ($id: String!) { commentDelete(id: $id) { success } }'

interface LinearConfig {
  readonly listen: ListenConfig
  readonly apiUrl: string
  readonly secret: string
  readonly credentials: Credentials
  readonly targets: readonly string[]
}

/** Opens one instance: it listens and retries to look up its own user until Linear responds. */
export async function openLinear(instance: Instance, host: Host, timing: Timing = realTiming): Promise<Adapter> {
  const bridge = new LinearBridge(configOf(instance), host, timing)
  await bridge.open()
  return bridge
}

class LinearBridge implements Adapter {
  readonly #api: LinearApi
  readonly #standing: Standing
  #self: Self | undefined
  #close: () => Promise<void> = async () => {}
  #heard = false

  constructor(
    private readonly config: LinearConfig,
    private readonly host: Host,
    timing: Timing,
  ) {
    this.#api = new LinearApi(config.apiUrl, config.credentials, host.signal)
    this.#standing = new Standing(host, timing, config.listen.publicUrl)
  }

  async open(): Promise<void> {
    const { close } = await listen(this.config.listen, request => this.#received(request))
    this.#close = close
    void this.#standing.begin(() => this.#introduce())
  }

  async deliver(delivery: Delivery): Promise<DeliveryResult> {
    if (delivery.event === 'progress') return { status: 'delivered' }
    const location = issueOf(delivery.target)
    const { remote_message_id: id } = delivery
    if (id !== undefined && !isUuid(id)) throw new NotSent('unknown_destination', 'the comment has no id of Linear')
    try {
      const result = await this.#perform(delivery, location)
      this.#standing.well()
      return result
    } catch (error) {
      if (!(error instanceof LinearError)) {
        this.#standing.failed(error)
        throw error
      }
      const kind = error.isMissing
        ? 'unknown_destination'
        : error.code === 'FORBIDDEN'
          ? 'permission_denied'
          : 'unsupported_capability'
      throw new NotSent(kind, `Linear refused the message: ${error.message}`)
    }
  }

  /** Exact: the comment id is chosen before the creation, and Linear refuses a duplicate. */
  async settle({ nonce }: Unsettled): Promise<SettleResult> {
    const id = commentId(nonce)
    return (await this.#exists(id)) ? { outcome: 'delivered', remote_message_id: id } : { outcome: 'absent' }
  }

  targets(): readonly Target[] {
    return this.config.targets.map(issue => ({ group_id: issue, display_name: issue, target_type: 'thread' }))
  }

  async verify(): Promise<readonly Check[]> {
    const login = () => this.#api.query(WHO).then(() => undefined)
    return checksOf(
      'linear',
      login,
      'Bind api_key, or client_id and client_secret',
      this.#heard,
      this.registerWebhook(),
    )
  }

  registerWebhook(): Check {
    return webhookCheck(
      this.config.listen.publicUrl,
      url => `Enter ${url} at Linear, with the data change events Comments.`,
    )
  }

  close(): Promise<void> {
    return this.#close()
  }

  async #perform(
    { event, text, nonce, remote_message_id: id }: Delivery,
    location: { issueId: string; parentId?: string },
  ): Promise<DeliveryResult> {
    const body = quiet(text)
    if (event === 'delete') {
      if (id !== undefined) await this.#api.query(DELETE, { id }).catch(unlessMissing)
      return { status: 'delivered' }
    }
    if (id !== undefined) {
      await this.#api.query(UPDATE, { id, input: { body } })
      return { status: 'delivered', remote_message_id: id }
    }
    const made = commentId(nonce)
    try {
      await this.#api.query(CREATE, { input: { id: made, body, ...location } })
    } catch (error) {
      // An earlier attempt may have created the comment.
      if (!(error instanceof LinearError) || !(await this.#exists(made))) throw error
      await this.#api.query(UPDATE, { id: made, input: { body } })
    }
    return { status: 'delivered', remote_message_id: made }
  }

  async #exists(id: string): Promise<boolean> {
    const found = await this.#api.query(FIND, { id }).catch(unlessMissing)
    return typeof found?.comment === 'object' && found.comment !== null
  }

  async #introduce(): Promise<void> {
    const { viewer } = (await this.#api.query(WHO)) as { viewer?: Record<string, unknown> }
    if (!isUuid(viewer?.id)) throw new Error('Linear did not identify the bot')
    const names = [viewer.displayName, viewer.name].filter(name => typeof name === 'string' && name !== '')
    this.#self = { id: viewer.id, names: names as string[] }
  }

  async #received({ headers, body }: WebhookRequest): Promise<WebhookReply> {
    const { 'linear-signature': signature = '' } = headers
    if (!/^[0-9a-f]{64}$/.test(signature) || !isHmac(this.config.secret, body, signature, 'hex'))
      return { status: 401, body: { error: 'Linear-Signature does not match' } }
    const payload = objectOf(body.toString('utf8'))
    const age = Math.abs(Date.now() - Number(payload.webhookTimestamp ?? Number.NaN))
    if (!(age <= TOLERANCE_MS)) return { status: 401, body: { error: 'webhookTimestamp is missing or too old' } }
    this.#heard = true
    // Without its own user id the bot would answer its own comments.
    if (!this.#self) return { status: 503, body: { error: 'not connected to Linear yet' } }
    const reading = readEvent(payload, this.#self)
    return 'ignored' in reading ? { status: 200, body: reading } : taken(this.host, reading.event, WAIT_MS)
  }
}

/** A profile link is a mention; an invisible character disables it, so that an agent notifies nobody. */
const quiet = (text: string) => text.replace(/(linear\.app\/[\w-]{1,64}\/)(profiles\/)/gi, '$1\u200b$2')

function unlessMissing(error: unknown): undefined {
  if (error instanceof LinearError && error.isMissing) return undefined
  throw error
}

function configOf(instance: Instance): LinearConfig {
  const { config } = instance
  const [secret, key, id, clientSecret] = ['webhook_secret', 'api_key', 'client_id', 'client_secret'].map(slot =>
    instance.secret(slot)?.trim(),
  )
  const { targets = [] } = config
  if (secret === undefined) throw unbound(instance, ['webhook_secret'])
  if (!Array.isArray(targets) || targets.length > 200 || !targets.every(isIdentifier))
    throw problem('provider_config.targets is no list of issues, ENG-12 for example')
  let credentials: Credentials
  if (id !== undefined && clientSecret !== undefined) credentials = { kind: 'app', id, secret: clientSecret }
  else if (key !== undefined) credentials = { kind: 'key', key }
  else throw unbound(instance, ['api_key', 'client_id and client_secret'])
  if (key !== undefined && !/^[\x21-\x7e]+$/.test(key)) throw problem('the secret bound to api_key is not an API key')
  return {
    listen: listenConfigOf(instance),
    apiUrl: settingsOf(instance).api('api_url', 'https://api.linear.app'),
    secret,
    credentials,
    targets,
  }
}

const problem = (message: string) => new InstanceProblem({ status: 'error', reason: 'tenant_config_invalid', message })
