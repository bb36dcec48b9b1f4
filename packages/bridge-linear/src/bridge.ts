import {
  type Adapter,
  backoffMs,
  type Check,
  type Delivery,
  type DeliveryResult,
  type Host,
  type Instance,
  InstanceProblem,
  isHmac,
  type ListenConfig,
  listen,
  listenConfigOf,
  messageOf,
  NotSent,
  objectOf,
  realTiming,
  type SettleResult,
  type StateReport,
  type Target,
  type Timing,
  taken,
  type Unsettled,
  type WebhookReply,
  type WebhookRequest,
} from '../../bridge-kit/src/index.js'
import { type Credentials, LinearApi, LinearError } from './api.js'
import { readEvent, type Self } from './event.js'
import { commentId, isIdentifier, issueOf, isUuid } from './ids.js'

/** Linear waits five seconds, and tries again after a minute, an hour and six hours. */
const WAIT_MS = 4000
/** The last of these attempts still counts; the daemon knows the key of an event for 24 hours. */
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

/** Opens one instance: it listens, and finds out who it is, again and again until Linear answers. */
export async function openLinear(instance: Instance, host: Host, timing: Timing = realTiming): Promise<Adapter> {
  const bridge = new LinearBridge(configOf(instance), host, timing)
  await bridge.open()
  return bridge
}

class LinearBridge implements Adapter {
  readonly #api: LinearApi
  #self: Self | undefined
  #close: () => Promise<void> = async () => {}
  #reported = ''
  #heard = false

  constructor(
    private readonly config: LinearConfig,
    private readonly host: Host,
    private readonly timing: Timing,
  ) {
    this.#api = new LinearApi(config.apiUrl, config.credentials, host.signal)
  }

  async open(): Promise<void> {
    const { close } = await listen(this.config.listen, request => this.#received(request))
    this.#close = close
    void this.#introduce()
  }

  async deliver(delivery: Delivery): Promise<DeliveryResult> {
    if (delivery.event === 'progress') return { status: 'delivered' }
    const place = issueOf(delivery.target)
    const { remote_message_id: id } = delivery
    if (id !== undefined && !isUuid(id)) throw new NotSent('unknown_destination', 'the comment has no id of Linear')
    try {
      const result = await this.#perform(delivery, place)
      this.#standing()
      return result
    } catch (error) {
      this.#refused(error as Error)
      if (!(error instanceof LinearError)) throw error
      const kind = error.isMissing
        ? 'unknown_destination'
        : error.code === 'FORBIDDEN'
          ? 'permission_denied'
          : 'unsupported_capability'
      throw new NotSent(kind, `Linear refuses it: ${error.message}`)
    }
  }

  /** Exact: the id of the comment is known before it is made, and a second comment with it is refused. */
  async settle({ nonce }: Unsettled): Promise<SettleResult> {
    const id = commentId(nonce)
    return (await this.#exists(id)) ? { outcome: 'delivered', remote_message_id: id } : { outcome: 'absent' }
  }

  targets(): readonly Target[] {
    return this.config.targets.map(issue => ({ group_id: issue, display_name: issue, target_type: 'thread' }))
  }

  async verify(): Promise<readonly Check[]> {
    const failed = await this.#api.query(WHO).then(
      () => undefined,
      error => messageOf(error),
    )
    return [
      {
        check: 'linear.login',
        status: failed === undefined ? 'pass' : 'fail',
        remediation: failed === undefined ? '' : `Bind api_key, or client_id and client_secret: ${failed}`,
      },
      {
        check: 'linear.webhook',
        status: this.#heard ? 'pass' : 'warn',
        remediation: this.#heard ? '' : (await this.registerWebhook()).remediation,
      },
    ]
  }

  async registerWebhook(): Promise<Check> {
    const url = this.config.listen.publicUrl
    return {
      check: 'webhook.registered',
      status: url === undefined ? 'warn' : 'skipped',
      remediation:
        url === undefined
          ? 'Set provider_config.public_url.'
          : `Enter ${url} at Linear, with the data change events Comments.`,
    }
  }

  close(): Promise<void> {
    return this.#close()
  }

  async #perform(
    { event, text, nonce, remote_message_id: id }: Delivery,
    place: { issueId: string; parentId?: string },
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
      await this.#api.query(CREATE, { input: { id: made, body, ...place } })
    } catch (error) {
      // An earlier attempt may have made it.
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
    const { signal } = this.host
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        const { viewer } = (await this.#api.query(WHO)) as { viewer?: Record<string, unknown> }
        if (!isUuid(viewer?.id)) throw new Error('Linear does not say who the bot is')
        const names = [viewer.displayName, viewer.name].filter(name => typeof name === 'string' && name !== '')
        this.#self = { id: viewer.id, names: names as string[] }
        this.#standing()
        return
      } catch (error) {
        if (signal.aborted) return
        this.#refused(error as Error)
        if (error instanceof NotSent && error.kind === 'missing_token') return
        await this.timing.sleep(backoffMs(failures, this.timing), signal).catch(() => {})
      }
    }
  }

  async #received({ headers, body }: WebhookRequest): Promise<WebhookReply> {
    const { 'linear-signature': signature = '' } = headers
    if (!/^[0-9a-f]{64}$/.test(signature) || !isHmac(this.config.secret, body, signature, 'hex'))
      return { status: 401, body: { error: 'Linear-Signature does not match' } }
    const payload = objectOf(body.toString('utf8'))
    const age = Math.abs(Date.now() - Number(payload.webhookTimestamp ?? Number.NaN))
    if (!(age <= TOLERANCE_MS)) return { status: 401, body: { error: 'webhookTimestamp is missing or too old' } }
    this.#heard = true
    // Without knowing itself the bot would answer itself.
    if (!this.#self) return { status: 503, body: { error: 'not connected to Linear yet' } }
    const reading = readEvent(payload, this.#self)
    return 'ignored' in reading ? { status: 200, body: reading } : taken(this.host, reading.event, WAIT_MS)
  }

  #standing(): void {
    if (!this.#self) return
    const { publicUrl } = this.config.listen
    this.#report({ status: 'ready', ...(publicUrl === undefined ? {} : { webhook_public_url: publicUrl }) })
  }

  #refused(error: Error): void {
    const message = error.message.slice(0, 500)
    if (error instanceof LinearError && this.#self) return
    const limited = error instanceof NotSent && error.how.retryAfterMs !== undefined
    if (error instanceof NotSent && error.kind === 'missing_token')
      this.#report({ status: 'auth_required', reason: 'auth_failed', message })
    else this.#report({ status: 'degraded', reason: limited ? 'rate_limited' : 'provider_timeout', message })
  }

  #report(state: StateReport): void {
    const text = JSON.stringify(state)
    if (text === this.#reported) return
    this.#reported = text
    this.host.report(state)
  }
}

/** A link to a profile is a mention: an agent notifies no person by it. */
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
  const { api_url: apiUrl = 'https://api.linear.app', targets = [] } = config
  if (secret === undefined) throw missing('webhook_secret')
  if (typeof apiUrl !== 'string' || !SAFE_URL.test(apiUrl) || !URL.canParse(apiUrl))
    throw problem('provider_config.api_url is neither https nor an address of this machine')
  if (!Array.isArray(targets) || targets.length > 200 || !targets.every(isIdentifier))
    throw problem('provider_config.targets is no list of issues, ENG-12 for example')
  let credentials: Credentials
  if (id !== undefined && clientSecret !== undefined) credentials = { kind: 'app', id, secret: clientSecret }
  else if (key !== undefined) credentials = { kind: 'key', key }
  else throw missing('api_key, or to client_id and client_secret')
  if (key !== undefined && !/^[\x21-\x7e]+$/.test(key)) throw problem('the secret bound to api_key is no key')
  return { listen: listenConfigOf(instance), apiUrl: apiUrl.replace(/\/+$/, ''), secret, credentials, targets }
}

const SAFE_URL = /^(?:https:\/\/|http:\/\/(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])[:/])/

const problem = (message: string) => new InstanceProblem({ status: 'error', reason: 'tenant_config_invalid', message })

const missing = (slots: string) =>
  new InstanceProblem({
    status: 'auth_required',
    reason: 'auth_failed',
    message: `no secret is bound to ${slots}. Bind one: svc bridge secret-bindings put <id> <slot>`,
  })
