import { type Host, type HttpReply, messageOf, objectOf, type Timing } from '../../bridge-kit/src/index.js'
import type { GithubApi } from './api.js'

/** GitHub keeps deliveries for three days. */
const OLDEST_MS = 3 * 24 * 60 * 60_000
/** A younger delivery may still be in progress. */
const YOUNGEST_MS = 60_000
/** Interval of the search for failed deliveries: the proxy may have been down while this process ran. */
const AGAIN_MS = 60 * 60_000
const MOST_PAGES = 10
const MOST_AGAIN = 100
const MOST_REPOSITORIES = 20
/** After this many failed attempts an event is given up. */
const MOST_ATTEMPTS = 5

/** One delivery attempt of GitHub. */
interface Attempt {
  readonly id?: unknown
  readonly guid?: unknown
  readonly delivered_at?: unknown
  readonly status_code?: unknown
  readonly event?: unknown
}

/** Settings of {@link Missed}. */
export interface Hooks {
  readonly publicUrl: string | undefined
  readonly repositories: ReadonlySet<string> | undefined
  /** Event types that the bridge handles. */
  readonly events: ReadonlySet<string>
}

/** Redelivers failed webhook deliveries, because GitHub does not retry by itself. */
export class Missed {
  /** Why failed deliveries cannot be listed, with the remedy; undefined: they can, or it is not known yet. */
  problem: string | undefined

  constructor(
    private readonly api: GithubApi,
    private readonly hooks: Hooks,
    private readonly host: Host,
    private readonly timing: Timing,
  ) {}

  /** Redelivers failed deliveries now and every hour until the instance is closed. */
  async run(): Promise<void> {
    const { signal } = this.host
    while (!signal.aborted) {
      await this.#check().catch(error => {
        if (!signal.aborted) this.host.log(`failed deliveries could not be listed: ${messageOf(error)}`)
      })
      await this.timing.sleep(AGAIN_MS, signal).catch(() => {})
    }
  }

  async #check(): Promise<void> {
    this.problem = undefined
    if (this.api.isApp) {
      await this.#redeliver((method, path) => this.api.asApp(method, path), '/app/hook/deliveries')
      return
    }
    const { repositories, publicUrl } = this.hooks
    if (repositories === undefined || publicUrl === undefined) {
      this.problem = `${BY_HAND} To redeliver them automatically, set provider_config.repositories and public_url.`
      return
    }
    for (const repository of [...repositories].slice(0, MOST_REPOSITORIES)) {
      const ask = (method: 'GET' | 'POST', path: string) => this.api.call(method, repository, path)
      const listed = await ask('GET', `/repos/${repository}/hooks?per_page=100`)
      if (!this.#isAllowed(listed, repository)) continue
      const hook = listOf<{ id?: unknown; config?: { url?: unknown } }>(listed.text).find(
        ({ config }) => config?.url === publicUrl,
      )
      if (hook && Number.isSafeInteger(hook.id))
        await this.#redeliver(ask, `/repos/${repository}/hooks/${String(hook.id)}/deliveries`)
    }
  }

  async #redeliver(ask: (method: 'GET' | 'POST', path: string) => Promise<HttpReply>, path: string): Promise<void> {
    const attempts: Attempt[] = []
    let cursor: string | undefined
    for (let page = 0; page < MOST_PAGES; page++) {
      const reply = await ask('GET', `${path}?per_page=100${cursor === undefined ? '' : `&cursor=${cursor}`}`)
      if (!this.#isAllowed(reply, path)) return
      const listed = listOf<Attempt>(reply.text)
      attempts.push(...listed)
      cursor = nextOf(reply)
      if (cursor === undefined || listed.some(one => ageOf(one) > OLDEST_MS)) break
    }
    for (const id of failedOf(attempts, this.hooks.events)) {
      const { status } = await ask('POST', `${path}/${id}/attempts`)
      if (status >= 300) this.host.log(`GitHub answers ${status} to the redelivery of ${id}`)
    }
  }

  #isAllowed({ status }: HttpReply, what: string): boolean {
    if (status === 200) return true
    const needs = this.api.isApp ? 'the app is not allowed to' : 'the token needs read and write access to webhooks'
    if (status === 403 || status === 404) this.problem = `${BY_HAND} To redeliver them automatically: ${needs}.`
    this.host.log(`GitHub answers ${status} to the request for failed deliveries of ${what}`)
    return false
  }
}

const BY_HAND =
  'Redeliver events that GitHub could not deliver with the button Redeliver in the settings of the webhook.'

/** The attempts to redeliver, the oldest first: the latest attempt of each event that was never acknowledged. */
export function failedOf(attempts: readonly Attempt[], events: ReadonlySet<string>): readonly number[] {
  const byEvent = new Map<string, Attempt[]>()
  for (const attempt of attempts) {
    const { guid, event } = attempt
    if (typeof guid !== 'string' || typeof event !== 'string' || !events.has(event)) continue
    byEvent.set(guid, [...(byEvent.get(guid) ?? []), attempt])
  }
  return [...byEvent.values()]
    .flatMap(of => {
      const [latest] = of.sort((a, b) => ageOf(a) - ageOf(b))
      const age = latest ? ageOf(latest) : Number.NaN
      const isOpen = age >= YOUNGEST_MS && age <= OLDEST_MS && of.length < MOST_ATTEMPTS
      if (!latest || !isOpen || of.some(isAcknowledged) || !Number.isSafeInteger(latest.id)) return []
      return [{ id: latest.id as number, age }]
    })
    .sort((a, b) => b.age - a.age)
    .slice(0, MOST_AGAIN)
    .map(({ id }) => id)
}

const isAcknowledged = ({ status_code: status }: Attempt): boolean =>
  typeof status === 'number' && status >= 200 && status < 300

/** Age of an attempt in milliseconds; NaN without a date. */
const ageOf = ({ delivered_at: at }: Attempt): number => Date.now() - Date.parse(String(at))

function nextOf({ headers }: HttpReply): string | undefined {
  const next = (headers.get('link') ?? '').split(',').find(link => /;\s*rel="next"/.test(link))
  return /[?&]cursor=([A-Za-z0-9_%.-]{1,500})/.exec(next ?? '')?.[1]
}

function listOf<T>(text: string): readonly T[] {
  const list: unknown = objectOf(text)
  return Array.isArray(list) ? list.filter(one => typeof one === 'object' && one !== null) : []
}
