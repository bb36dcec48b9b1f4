import {
  type Adapter,
  type Check,
  checksOf,
  clip,
  type Delivery,
  type DeliveryResult,
  type Host,
  type HttpReply,
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
import { type Credentials, checkKey, GithubApi } from './api.js'
import { readEvent, type Self } from './event.js'
import { Missed } from './missed.js'
import { bodyOf, marker } from './text.js'
import { addressOf, commentPath, commentsPath, creationPath, locationOf, REPOSITORY, type Thread } from './threads.js'

/** GitHub sends up to 25 MB, but a comment has at most 64 KiB. */
const MOST_BYTES = 5 * 1024 * 1024
const EVENTS = new Set(['issue_comment', 'issues', 'pull_request_review_comment'])
/**
 * An aborted request may take effect half a minute later, so a missing comment proves nothing before that. The daemon's time is up
 * to a minute before the attempt.
 */
const SETTLED_MS = 120_000
/** Allowed clock skew between this machine and GitHub. */
const SKEW_MS = 5 * 60_000
const MOST_PAGES = 10

interface GithubConfig {
  readonly listen: ListenConfig
  readonly apiUrl: string
  readonly secret: string
  readonly credentials: Credentials
  readonly repositories: ReadonlySet<string> | undefined
  readonly targets: readonly Thread[]
}

/** Opens one instance: it listens and retries to look up its own login until GitHub responds. */
export async function openGithub(instance: Instance, host: Host, timing: Timing = realTiming): Promise<Adapter> {
  const bridge = new GithubBridge(configOf(instance), host, timing)
  await bridge.open()
  return bridge
}

class GithubBridge implements Adapter {
  readonly #api: GithubApi
  readonly #standing: Standing
  readonly #missed: Missed
  #missing: Promise<void> = Promise.resolve()
  #self: Self | undefined
  #close: () => Promise<void> = async () => {}
  #pinged = false

  constructor(
    private readonly config: GithubConfig,
    private readonly host: Host,
    timing: Timing,
  ) {
    this.#api = new GithubApi(config.apiUrl, config.credentials, host.signal)
    const { repositories, listen } = config
    const hooks = { publicUrl: listen.publicUrl, repositories, events: EVENTS }
    this.#missed = new Missed(this.#api, hooks, host, timing)
    this.#standing = new Standing(host, timing, config.listen.publicUrl)
  }

  async open(): Promise<void> {
    const { close } = await listen(this.config.listen, request => this.#received(request), MOST_BYTES)
    this.#close = close
    const opening = this.#standing.begin(async () => {
      this.#self = await this.#api.whoAmI()
    })
    this.#missing = opening.then(() => (this.#self ? this.#missed.run() : undefined))
  }

  async deliver(delivery: Delivery): Promise<DeliveryResult> {
    const location = locationOf(delivery.target)
    const { event, remote_message_id: id, text, nonce, target } = delivery
    if (event === 'progress') return { status: 'delivered' }
    const { repository } = location
    try {
      if (event === 'delete') {
        if (id === undefined) return { status: 'delivered' }
        const reply = await this.#api.call('DELETE', repository, commentPath(location, id))
        return reply.status === 404 ? { status: 'delivered' } : resultOf(reply, false, id)
      }
      const body = { body: bodyOf(text, nonce, target.peer_id) }
      // An update is idempotent, a creation is not.
      const reply =
        id === undefined
          ? await this.#api.call('POST', repository, creationPath(location), body)
          : await this.#api.call('PATCH', repository, commentPath(location, id), body)
      const result = resultOf(reply, id === undefined, id)
      if (result.status === 'delivered') this.#standing.well()
      return result
    } catch (error) {
      if (error instanceof NotSent) this.#standing.failed(error)
      throw error
    }
  }

  async settle(unsettled: Unsettled): Promise<SettleResult> {
    const { nonce, since, target } = unsettled
    const location = locationOf(target)
    const from = new Date(Math.max(0, since - SKEW_MS)).toISOString()
    for (let page = 1; page <= MOST_PAGES; page++) {
      const query = `?since=${encodeURIComponent(from)}&per_page=100&page=${page}`
      const reply = await this.#api.call('GET', location.repository, commentsPath(location) + query)
      if (reply.status !== 200) return { outcome: 'unknown' }
      const comments = listOf(reply.text)
      const own = comments.find(({ body, user }) => this.#isMine(user?.login) && String(body).includes(marker(nonce)))
      if (own !== undefined) return { outcome: 'delivered', remote_message_id: String(own.id) }
      if (comments.length < 100) return Date.now() - since < SETTLED_MS ? { outcome: 'unknown' } : { outcome: 'absent' }
    }
    return { outcome: 'unknown' }
  }

  targets(): readonly Target[] {
    return this.config.targets.map(location => ({
      ...addressOf(location),
      display_name: `${location.repository}#${location.number}`,
      target_type: 'thread',
    }))
  }

  async verify(): Promise<readonly Check[]> {
    const login = async () => `The bot is ${(await this.#api.whoAmI()).login}.`
    const bind = 'Bind a token, or app_id and private_key'
    const checks = await checksOf('github', login, bind, this.#pinged, this.registerWebhook())
    const { problem } = this.#missed
    const missed: Check = {
      check: 'github.missed',
      status: problem === undefined ? 'pass' : 'warn',
      remediation: problem ?? '',
    }
    return [...checks, missed]
  }

  registerWebhook(): Check {
    const events = [...EVENTS].join(', ')
    return webhookCheck(
      this.config.listen.publicUrl,
      url => `Enter ${url} as payload URL at GitHub, content type application/json, the events ${events}.`,
    )
  }

  async close(): Promise<void> {
    await this.#close()
    await this.#missing
  }

  async #received({ headers, body }: WebhookRequest): Promise<WebhookReply> {
    const {
      'x-hub-signature-256': signature = '',
      'x-github-event': kind = '',
      'x-github-delivery': guid = '',
    } = headers
    if (!/^sha256=[0-9a-f]{64}$/.test(signature) || !isHmac(this.config.secret, body, signature.slice(7), 'hex'))
      return { status: 401, body: { error: 'X-Hub-Signature-256 does not match' } }
    if (!/^[A-Za-z0-9-]{1,64}$/.test(guid)) return { status: 400, body: { error: 'X-GitHub-Delivery is not an id' } }
    this.#pinged = true
    if (!EVENTS.has(kind)) return { status: 200, body: { ignored: clip(kind, 64) } }
    // Without its own login the bot would answer its own comments.
    if (!this.#self) return { status: 503, body: { error: 'not connected to GitHub yet' } }
    const payload = objectOf(body.toString('utf8'))
    const reading = readEvent(kind, guid, payload, this.#self, this.config.repositories)
    if ('ignored' in reading) return { status: 200, body: reading }
    return taken(this.host, reading.event)
  }

  #isMine(login: unknown): boolean {
    return typeof login === 'string' && login.toLowerCase() === this.#self?.login.toLowerCase()
  }
}

/** The delivery result of GitHub's response. */
function resultOf({ status, text }: HttpReply, creates: boolean, id: string | undefined): DeliveryResult {
  const answer = objectOf(text)
  if (status >= 200 && status < 300) {
    const made = Number.isSafeInteger(answer.id) ? String(answer.id) : id
    return { status: 'delivered', ...(made === undefined ? {} : { remote_message_id: made }) }
  }
  const message = `GitHub answered ${status}: ${clip(String(answer.message ?? ''), 200)}`
  if (status === 403) throw new NotSent('permission_denied', message)
  if (status === 404 || status === 410 || (status >= 300 && status < 400))
    throw new NotSent('unknown_destination', message)
  if (status < 500) throw new NotSent('unsupported_capability', message)
  if (!creates) throw new NotSent('transient_delivery_failure', message)
  return { status: 'unknown', message }
}

interface Comment {
  readonly id?: unknown
  readonly body?: unknown
  readonly user?: { readonly login?: unknown } | null
}

function listOf(text: string): readonly Comment[] {
  const list: unknown = objectOf(text)
  return Array.isArray(list) ? list.filter(one => typeof one === 'object' && one !== null) : []
}

function configOf(instance: Instance): GithubConfig {
  const { config } = instance
  const secret = instance.secret('webhook_secret')
  if (secret === undefined) throw unbound(instance, ['webhook_secret'])
  const { repositories, targets = [] } = config
  if (repositories !== undefined && !isListOf(repositories, REPOSITORY))
    throw problem('provider_config.repositories is no list of owner/name')
  if (!isListOf(targets, /^[^#]+#\d{1,9}$/)) throw problem('provider_config.targets is no list of owner/name#number')
  return {
    listen: listenConfigOf(instance),
    apiUrl: settingsOf(instance).api('api_url', 'https://api.github.com'),
    secret,
    credentials: credentialsOf(instance),
    repositories: repositories && new Set(repositories.map(name => name.toLowerCase())),
    targets: targets.map(target => {
      const [repository = '', number = ''] = target.split('#')
      if (!REPOSITORY.test(repository)) throw problem('provider_config.targets is no list of owner/name#number')
      return { kind: 'issue', repository, number: Number(number) }
    }),
  }
}

function credentialsOf(instance: Instance): Credentials {
  const [token, appId, privateKey] = ['token', 'app_id', 'private_key'].map(slot => instance.secret(slot)?.trim())
  if (appId !== undefined && privateKey !== undefined) {
    checkKey(privateKey)
    return { kind: 'app', appId, privateKey }
  }
  if (token === undefined) throw unbound(instance, ['token', 'app_id and private_key'])
  if (!/^[\x21-\x7e]+$/.test(token)) throw problem('the secret bound to token is not a token')
  return { kind: 'token', token }
}

const isListOf = (value: unknown, form: RegExp): value is string[] =>
  Array.isArray(value) && value.length <= 200 && value.every(one => typeof one === 'string' && form.test(one))

const problem = (message: string) => new InstanceProblem({ status: 'error', reason: 'tenant_config_invalid', message })
