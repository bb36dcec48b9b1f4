import * as v from 'valibot'
import { issueText } from '../../../../kernel/kit/issue-text.js'
import { type Actor, Fault, messageOf, type RecordScope } from '../../../../kernel/plugin.js'
import { RateLimiter } from '../../../platform/resources/api.js'
import type { HostCall, InstalledExtension } from '../api.js'
import { isLink } from '../identity.js'
import { type HostMethod, hostMethods } from '../manifest/permissions.js'
import type { Provisions } from './provisions.js'
import { rpcError } from './rpc-error.js'
import type { SubprocessHost } from './runtime.js'
import { type Snapshot, Snapshots } from './snapshots.js'

/** Rate limit of the Host API: a burst, and 10 calls/s sustained. */
const CALLS = { requests: 20, window: '2s', queue: 0 }
const CALLS_PER_SECOND = 10
/** Characters of a result. */
const MAX_RESULT = 4 * 1024 * 1024
/** What a link to all workspaces is told whose records name none. */
const NO_WORKSPACE =
  'may publish in workspaces alone, and is linked to none: name them by id, or link it with svc extension dev --workspace <dir>'

/** The process that calls. */
export interface HostCaller {
  readonly extension: InstalledExtension
  /** Methods that it was offered and accepted. */
  readonly permissions: readonly string[]
  /** As whom it reads and publishes its records. */
  readonly publisher: Actor
  /** As whom it does everything else. */
  readonly caller: Actor
  /** Aborts when the process is being ended. */
  readonly signal: AbortSignal
}

/** Parameters of `resources/snapshot`. */
export const SnapshotParams = v.strictObject({
  source_version: v.pipe(v.number(), v.integer(), v.minValue(1)),
  session_nonce: v.optional(v.string()),
  records: v.array(
    v.strictObject({
      kind: v.string(),
      id: v.string(),
      scope: v.strictObject({ kind: v.picklist(['user', 'global', 'workspace']), id: v.optional(v.string()) }),
      spec: v.unknown(),
      expected_version: v.optional(v.number(), 0),
    }),
  ),
})

/**
 * The methods that an extension may call: each one must be granted and within the rate limit, and is answered
 * by the route that the table of methods names, so that it answers as soon as there is a plugin with that route.
 */
export class HostApi {
  readonly #calls: RateLimiter
  readonly #snapshots: RateLimiter
  /** Methods that no route answers, and that are about the extension itself. */
  readonly #own: Readonly<Record<string, (by: HostCaller, params: object) => Promise<unknown>>> = {
    'resources/snapshot': (by, params) => this.#publish(by, params),
  }

  constructor(
    private readonly host: SubprocessHost,
    private readonly provisions: Provisions,
  ) {
    this.#calls = new RateLimiter(CALLS, host.clock)
    this.#snapshots = new RateLimiter(host.limits.snapshotRate, host.clock)
  }

  /** The result of a call; throws an {@link RpcError}. */
  async answer(by: HostCaller, method: string, params: unknown): Promise<unknown> {
    const known = hostMethods.get(method)
    if (!known) throw rpcError('method_not_found', `there is no method ${method.slice(0, 100)} in the Host API`)
    if (!by.permissions.includes(method)) {
      throw rpcError('capability_denied', `${method} is not granted; declare it in [permissions] requires`, {
        method,
        required: [known.consent],
        granted: [...new Set(by.permissions.flatMap(one => hostMethods.get(one)?.consent ?? []))].sort(),
      })
    }
    this.#calls.take(limited(CALLS_PER_SECOND, CALLS.requests, `host_api.${method}`))
    if (!isParameters(params)) throw rpcError('invalid_params', 'parameters are an object')
    const own = this.#own[method]
    if (own) return own(by, params ?? {})
    const provided = known.route === undefined ? this.provisions.methodOf(method) : undefined
    if (provided) return this.#provided(by, provided, params ?? {})
    return this.#ask(method.startsWith('resources/') ? by.publisher : by.caller, method, known, params ?? {})
  }

  /** A plugin that owns what the process provides answers. */
  async #provided(
    { extension, signal }: HostCaller,
    answer: (call: HostCall) => Promise<unknown>,
    params: object,
  ): Promise<unknown> {
    try {
      return (await answer({ extension, signal, params: { ...params } })) ?? {}
    } catch (error) {
      if (!(error instanceof Fault)) this.host.log.error('a method of the host API failed', { error: messageOf(error) })
      throw failed(error)
    }
  }

  async #publish(by: HostCaller, params: unknown): Promise<unknown> {
    const parsed = v.safeParse(SnapshotParams, params)
    if (!parsed.success) {
      const [issue] = parsed.issues
      throw rpcError('invalid_params', `${v.getDotPath(issue) ?? 'parameters'}: ${issueText(issue)}`)
    }
    const { requests } = this.host.limits.snapshotRate
    await this.#snapshots.pass(by, limited(requests, requests, 'resources.snapshot'))
    const { source_version: sourceVersion, session_nonce: nonce, records } = parsed.output
    const actor = nonce === undefined ? by.publisher : { ...by.publisher, nonce }
    if (isLink(actor.id) && !actor.maxScope && records.some(({ scope }) => scope.id === undefined)) {
      throw rpcError('invalid_params', `${actor.id} ${NO_WORKSPACE}`)
    }
    const snapshot: Snapshot = {
      sourceVersion,
      records: records.map(({ scope: { kind, id }, expected_version: expectedVersion, ...record }) => ({
        ...record,
        scope: scopeOf(kind, id ?? (kind === 'workspace' ? actor.maxScope?.id : undefined)),
        expectedVersion,
      })),
    }
    const { db } = this.host
    try {
      return {
        source_version: sourceVersion,
        ...(await db.tx(t => new Snapshots(this.host).apply(t, actor, snapshot))),
      }
    } catch (error) {
      throw failed(error)
    }
  }

  async #ask(as: Actor, method: string, { consent, route }: HostMethod, params: object): Promise<unknown> {
    const [area] = consent.split('.')
    const unavailable = () =>
      rpcError('method_unavailable', `${method}: this daemon has no subsystem that answers it: ${area}`, {
        method,
        area,
      })
    if (route === undefined) throw unavailable()
    const { status, body, headers } = await this.host.needs.request(toRequest(route, params), as).catch(error => {
      throw failed(error)
    })
    if (body.length > MAX_RESULT) {
      throw rpcError('result_too_large', `${method}: the result has more than ${MAX_RESULT} characters; ask for less`)
    }
    const reply: unknown = body === '' ? null : JSON.parse(body)
    if (status < 300) return reply
    const { code, error, details } = (reply ?? {}) as { code?: string; error?: string; details?: unknown }
    if (code === 'route_not_found') throw unavailable()
    const seconds = Number(headers['retry-after'] ?? Number.NaN)
    throw rpcError('request_failed', error ?? `status ${status}`, {
      code,
      status,
      ...(seconds > 0 ? { retry_after_ms: seconds * 1000 } : {}),
      ...(details ? { details } : {}),
    })
  }
}

const limited = (limit: number, burst: number, scope: string) => (waitMs: number) =>
  rpcError('rate_limited', 'too many calls; wait', { retry_after_ms: Math.ceil(waitMs), limit, burst, scope })

/** A link to a workspace publishes there, so it need not say which it is. */
const scopeOf = (kind: RecordScope['kind'], id: string | undefined): RecordScope => (id ? { kind, id } : { kind })

const isParameters = (params: unknown): params is object | undefined =>
  params === undefined || (typeof params === 'object' && params !== null && !Array.isArray(params))

/** Parameters that the path names go there, the others into the query of a GET and into the body of anything else. */
function toRequest(route: NonNullable<HostMethod['route']>, params: object) {
  const [method = '', template = ''] = route.split(' ')
  const rest = new Map(Object.entries(params).filter(([, value]) => value !== undefined && value !== null))
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = rest.get(name)
    rest.delete(name)
    if (typeof value !== 'string' || value === '' || /^\.+$/.test(value)) {
      throw rpcError('invalid_params', `${name}: a text is expected`)
    }
    return encodeURIComponent(value)
  })
  if (method !== 'GET') {
    return { method, url: path, ...(method === 'DELETE' && rest.size === 0 ? {} : { body: Object.fromEntries(rest) }) }
  }
  const query = new URLSearchParams(
    [...rest].map(([name, value]): [string, string] => [name, String(value)]),
  ).toString()
  return { method, url: query === '' ? path : `${path}?${query}` }
}

/** A fault as the other side is told of it; anything else is ours alone. */
function failed(error: unknown): Error {
  if (!(error instanceof Fault)) return rpcError('internal_error', 'an internal error; the daemon log has the details')
  const { code, status, message, details, next, retryAfter } = error
  return rpcError('request_failed', message, {
    code,
    status,
    ...(retryAfter === undefined ? {} : { retry_after_ms: retryAfter * 1000 }),
    ...(details ? { details } : {}),
    ...(next ? { next } : {}),
  })
}
