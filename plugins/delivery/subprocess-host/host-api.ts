import * as v from 'valibot'
import { clip } from '../../../kernel/kit/text.js'
import { type Actor, Fault, messageOf, type RecordScope } from '../../../kernel/plugin.js'
import { RateLimiter } from '../../platform/resources/api.js'
import { type HostCall, type HostMethod, hostMethods, isLink, StateParams } from '../extensions/api.js'
import { checkedParams, type HostCaller } from './host-call.js'
import { filesOf, formOf, type PromptFile } from './prompt-files.js'
import type { Provisions } from './provisions.js'
import { RpcError, rpcError } from './rpc-error.js'
import type { ProcessHost } from './runtime.js'
import { SessionFeed } from './session-feed.js'
import { type Snapshot, Snapshots } from './snapshots.js'

/** Rate limit of the Host API: a burst, and 10 calls/s sustained. */
const CALLS = { requests: 20, window: '2s', queue: 0 }
const CALLS_PER_SECOND = 10
/** Characters of a result. */
const MAX_RESULT = 4 * 1024 * 1024
/** Error for a link to all workspaces that publishes records without one. */
const NO_WORKSPACE =
  'may publish only in workspaces, and is linked to none: give their ids, or link it with svc extension dev --workspace <dir>'

const ATTACHMENTS = '/api/workspaces/{workspace_id}/sessions/{session_id}/attachments'

/** Parameters of `secrets/get`. */
export const SecretParams = v.strictObject({
  name: v.pipe(
    v.string(),
    v.minLength(1),
    v.maxLength(128),
    v.description('a variable of [subprocess.secret_env] or requires_env'),
  ),
})

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
 * The methods that an extension may call. Each call must be granted and within the rate limit, and is handled by the
 * route in the table of methods, so that it works as soon as a plugin has that route.
 */
export class HostApi {
  readonly #calls: RateLimiter
  readonly #snapshots: RateLimiter
  /** Methods without a route, about the extension itself. */
  readonly #own: Readonly<Record<string, (by: HostCaller, params: object) => Promise<unknown>>> = {
    'resources/snapshot': (by, params) => this.#publish(by, params),
    'sessions/prompt': (by, params) => this.#prompt(by, params),
    'sessions/subscribe': (by, params) =>
      this.#feed.subscribe(by, params, session => this.#route(by, 'sessions/status', session)),
    'sessions/unsubscribe': (by, params) => this.#feed.unsubscribe(by, params),
    'state/get': async ({ storage }, params) => {
      const { key } = checkedParams(StateParams.key, params)
      const value = await storage.get(key)
      return { key, found: value !== undefined, value: value ?? null }
    },
    'state/list': ({ storage }, params) => storage.list(checkedParams(StateParams.list, params)),
    'state/put': async ({ storage }, params) => {
      const { key, value } = checkedParams(StateParams.put, params)
      await storage.put(key, value)
      return { key, bytes: Buffer.byteLength(key) + Buffer.byteLength(JSON.stringify(value)) }
    },
    'state/delete': async ({ storage }, params) => {
      const { key } = checkedParams(StateParams.key, params)
      return { deleted: await storage.delete(key) }
    },
    'secrets/get': (by, params) => this.#secret(by, params),
  }
  readonly #feed: SessionFeed

  constructor(
    private readonly host: ProcessHost,
    private readonly provisions: Pick<Provisions, 'methodOf'>,
  ) {
    this.#calls = new RateLimiter(CALLS, host.clock)
    this.#snapshots = new RateLimiter(host.limits.snapshotRate, host.clock)
    this.#feed = new SessionFeed(host)
  }

  /** Result of a call. @throws RpcError */
  async answer(by: HostCaller, method: string, params: unknown): Promise<unknown> {
    const known = hostMethods.get(method)
    if (!known) throw rpcError('method_not_found', `there is no method ${clip(method, 100)} in the Host API`)
    if (!by.permissions.includes(method)) {
      throw rpcError('capability_denied', `${method} is not granted; declare it in [permissions] requires`, {
        method,
        required: [known.consent],
        granted: [...new Set(by.permissions.flatMap(one => hostMethods.get(one)?.consent ?? []))].sort(),
      })
    }
    this.#calls.take(limited(CALLS_PER_SECOND, CALLS.requests, `host_api.${method}`))
    if (!isParameters(params)) throw rpcError('invalid_params', 'parameters must be an object')
    const own = this.#own[method]
    if (own) return this.#faultless(() => own(by, params ?? {}))
    const provided = known.route === undefined ? this.provisions.methodOf(method) : undefined
    if (provided) return this.#provided(by, provided, params ?? {})
    return this.#ask(method.startsWith('resources/') ? by.publisher : by.caller, method, known, params ?? {})
  }

  /** Calls the handler of the plugin that owns the provision. */
  #provided({ extension, signal }: HostCaller, answer: (call: HostCall) => Promise<unknown>, params: object) {
    return this.#faultless(async () => (await answer({ extension, signal, params: { ...params } })) ?? {})
  }

  /** Converts every error to an {@link RpcError}. */
  async #faultless<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (error instanceof RpcError) throw error
      if (!(error instanceof Fault)) this.host.log.error('a method of the host API failed', { error: messageOf(error) })
      throw failed(error)
    }
  }

  /** Calls the route of a method as the calling process. */
  #route(by: HostCaller, method: string, params: object): Promise<unknown> {
    const known = hostMethods.get(method)
    if (!known) throw rpcError('method_not_found', `there is no method ${method}`)
    return this.#ask(by.caller, method, known, params)
  }

  /** Stores files given as bytes before the prompt, and deletes them if the prompt is refused. */
  async #prompt(by: HostCaller, params: object): Promise<unknown> {
    const files = filesOf(params)
    const stored: string[] = []
    try {
      const attachments: string[] = []
      for (const file of files) {
        const id = typeof file === 'string' ? file : await this.#upload(by, params, file)
        attachments.push(id)
        if (typeof file !== 'string') stored.push(id)
      }
      return await this.#route(by, 'sessions/prompt', { ...params, ...(files.length > 0 ? { attachments } : {}) })
    } catch (error) {
      for (const attachment_id of stored)
        await this.#send(by.caller, 'sessions/prompt', `DELETE ${ATTACHMENTS}/{attachment_id}`, {
          ...placeOf(params),
          attachment_id,
        }).catch(() => {})
      throw error
    }
  }

  async #upload(by: HostCaller, params: object, file: PromptFile): Promise<string> {
    const form = formOf(file, `svc-${this.host.ids.hex(24)}`)
    const reply = await this.#send(by.caller, 'sessions/prompt', `POST ${ATTACHMENTS}`, placeOf(params), form)
    return (reply as { attachment: { id: string } }).attachment.id
  }

  async #secret(by: HostCaller, params: object): Promise<unknown> {
    const { name } = checkedParams(SecretParams, params)
    return { name, value: (await by.secret(name)) ?? null }
  }

  async #publish(by: HostCaller, params: unknown): Promise<unknown> {
    const checked = checkedParams(SnapshotParams, params)
    const { requests } = this.host.limits.snapshotRate
    await this.#snapshots.pass(by, limited(requests, requests, 'resources.snapshot'))
    const { source_version: sourceVersion, session_nonce: nonce, records } = checked
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
      rpcError('method_unavailable', `${method}: this daemon has no subsystem for it: ${area}`, {
        method,
        area,
      })
    if (route === undefined) throw unavailable()
    return this.#send(as, method, route, params, undefined, unavailable)
  }

  async #send(
    as: Actor,
    method: string,
    route: NonNullable<HostMethod['route']>,
    params: object,
    more: { readonly headers: Readonly<Record<string, string>>; readonly body: Uint8Array } | undefined = undefined,
    unavailable = () => rpcError('method_unavailable', `${method}: this daemon has no route that answers it`),
  ): Promise<unknown> {
    const request = { ...toRequest(route, params), ...more }
    const { status, body, headers } = await this.host.needs.request(request, as).catch(error => {
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

/** The scope of a record; a link to a workspace publishes there by default. */
const scopeOf = (kind: RecordScope['kind'], id: string | undefined): RecordScope => (id ? { kind, id } : { kind })

/** The parameters that identify a session. */
const placeOf = (params: object): object => {
  const { workspace_id, session_id } = params as { readonly workspace_id?: unknown; readonly session_id?: unknown }
  return { workspace_id, session_id }
}

const isParameters = (params: unknown): params is object | undefined =>
  params === undefined || (typeof params === 'object' && params !== null && !Array.isArray(params))

/** Parameters named in the path go there, all others into the query of a GET or the body of other methods. */
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

/** The RPC error of a fault; details of other errors stay in the daemon's log. */
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
