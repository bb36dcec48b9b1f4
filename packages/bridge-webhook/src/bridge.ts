import {
  type Adapter,
  type Check,
  type Delivery,
  type DeliveryResult,
  type Host,
  type HttpReply,
  http,
  type Instance,
  InstanceProblem,
  type ListenConfig,
  listen,
  listenConfigOf,
  NotSent,
  type Target,
  taken,
  unbound,
  type WebhookReply,
  type WebhookRequest,
} from '../../bridge-kit/src/index.js'
import { BadEvent, eventOf } from './event.js'
import { keyOf, signed, verified } from './signature.js'

/** Maximum size of a request, which may contain files. */
const MOST_BYTES = 12 * 1024 * 1024
const LEAST_KEY_BYTES = 24

interface WebhookConfig {
  readonly listen: ListenConfig
  readonly deliveryUrl: string | undefined
  readonly inboundKey: Buffer
  readonly outboundKey: Buffer
  readonly toleranceSeconds: number
  readonly trustSenders: boolean
}

/** Opens one instance, which listens until it is closed. */
export async function openWebhook(instance: Instance, host: Host): Promise<Adapter> {
  const bridge = new WebhookBridge(configOf(instance), host)
  await bridge.listen()
  return bridge
}

class WebhookBridge implements Adapter {
  #close: () => Promise<void> = async () => {}
  #port = 0

  constructor(
    private readonly config: WebhookConfig,
    private readonly host: Host,
  ) {}

  async listen(): Promise<void> {
    const { port, close } = await listen(this.config.listen, request => this.#received(request), MOST_BYTES)
    this.#close = close
    this.#port = port
    this.host.report({ status: 'ready', webhook_public_url: this.#url() })
  }

  async deliver(delivery: Delivery): Promise<DeliveryResult> {
    const { deliveryUrl: url, outboundKey } = this.config
    if (url === undefined) throw new NotSent('unknown_destination', 'provider_config.delivery_url is not set')
    const { event, target, nonce, bridge_instance_id, delivery_id, part, text, reply_to_message_id } = delivery
    if (event === 'delete') throw new NotSent('unsupported_capability', 'a sent webhook cannot be withdrawn')
    // A partial answer is not sent.
    if (event !== 'final' && event !== 'error') return { status: 'delivered' }
    const body = JSON.stringify({
      type: 'message',
      id: nonce,
      event,
      bridge_instance_id,
      delivery_id,
      part,
      ...target,
      text,
      reply_to_message_id,
    })
    const seconds = Math.floor(Date.now() / 1000)
    const reply = await http({
      method: 'POST',
      url,
      headers: { 'content-type': 'application/json', ...signed(outboundKey, nonce, seconds, body) },
      body,
      mostBytes: 64 * 1024,
      signal: this.host.signal,
    })
    return resultOf(reply)
  }

  targets(): readonly Target[] {
    return []
  }

  async verify(): Promise<readonly Check[]> {
    const { deliveryUrl } = this.config
    return [
      { check: 'webhook.listening', status: 'pass', remediation: `It listens on port ${this.#port}.` },
      await this.registerWebhook(),
      {
        check: 'webhook.delivery_url',
        status: deliveryUrl === undefined ? 'warn' : 'pass',
        remediation: deliveryUrl === undefined ? 'Set provider_config.delivery_url to receive answers.' : '',
      },
    ]
  }

  async registerWebhook(): Promise<Check> {
    const url = this.config.listen.publicUrl
    return {
      check: 'webhook.registered',
      status: url === undefined ? 'warn' : 'skipped',
      remediation:
        url === undefined ? 'Set provider_config.public_url.' : `Enter ${url} as the webhook URL of the other side.`,
    }
  }

  close(): Promise<void> {
    return this.#close()
  }

  #url(): string {
    const { host, path, publicUrl } = this.config.listen
    return publicUrl ?? `http://${host.includes(':') ? `[${host}]` : host}:${this.#port}${path}`
  }

  async #received(request: WebhookRequest): Promise<WebhookReply> {
    const { inboundKey, toleranceSeconds, trustSenders } = this.config
    const checked = verified(inboundKey, request, Date.now() / 1000, toleranceSeconds)
    if ('refused' in checked) return { status: 401, body: { error: checked.refused } }
    try {
      const event = eventOf(request.body, checked.id, trustSenders)
      return await taken(this.host, event)
    } catch (error) {
      if (error instanceof BadEvent) return { status: 400, body: { error: error.message } }
      throw error
    }
  }
}

/** The delivery result of the receiver's response. */
function resultOf({ status, text, retryAfterMs }: HttpReply): DeliveryResult {
  const message = `the receiver answered ${status}`
  if (status >= 200 && status < 300) {
    const id = messageIdIn(text)
    return { status: 'delivered', ...(id === undefined ? {} : { remote_message_id: id }) }
  }
  if (status === 429 || status === 503) {
    const retry = retryAfterMs === undefined ? {} : { retryAfterMs }
    throw new NotSent('transient_delivery_failure', message, retry)
  }
  if (status === 401 || status === 403) throw new NotSent('permission_denied', message)
  if (status < 400 || status === 404 || status === 410) throw new NotSent('unknown_destination', message)
  if (status < 500 && status !== 408) throw new NotSent('unsupported_capability', message)
  // The receiver may have acted before it failed.
  return { status: 'unknown', message }
}

function messageIdIn(text: string): string | undefined {
  try {
    const { message_id: id } = JSON.parse(text) as { message_id?: unknown }
    return typeof id === 'string' && id !== '' && id.length <= 256 ? id : undefined
  } catch {
    return undefined
  }
}

function configOf(instance: Instance): WebhookConfig {
  const { config } = instance
  const inbound = instance.secret('webhook_secret')
  if (inbound === undefined) throw unbound(instance, ['webhook_secret'])
  const [inboundKey, outboundKey] = [inbound, instance.secret('delivery_secret') ?? inbound].map(keyOf) as [
    Buffer,
    Buffer,
  ]
  if (Math.min(inboundKey.length, outboundKey.length) < LEAST_KEY_BYTES)
    throw problem(`a secret has fewer than ${LEAST_KEY_BYTES} bytes`)
  const { delivery_url: url, tolerance_seconds: tolerance = 300, trust_senders: trust = false } = config
  if (
    url !== undefined &&
    !(
      typeof url === 'string' &&
      /^(?:https:\/\/|http:\/\/(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])[:/])/.test(url) &&
      URL.canParse(url)
    )
  )
    throw problem('provider_config.delivery_url is neither https nor an address of this machine')
  if (!Number.isInteger(tolerance) || (tolerance as number) < 10 || (tolerance as number) > 900)
    throw problem('provider_config.tolerance_seconds is not between 10 and 900')
  if (typeof trust !== 'boolean') throw problem('provider_config.trust_senders is neither true nor false')
  return {
    listen: listenConfigOf(instance),
    deliveryUrl: url as string | undefined,
    inboundKey,
    outboundKey,
    toleranceSeconds: tolerance as number,
    trustSenders: trust,
  }
}

const problem = (message: string) => new InstanceProblem({ status: 'error', reason: 'tenant_config_invalid', message })
