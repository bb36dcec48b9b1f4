import type { Client, jsonSchemaValidator } from '@modelcontextprotocol/client'
import * as v from 'valibot'
import { backoff } from '../../../../kernel/kit/backoff.js'
import { type Clock, Fault, type Ids, messageOf } from '../../../../kernel/plugin.js'
import { durationMs } from '../../../../schemas/duration.js'
import { McpErrors } from '../errors.js'
import type { Server } from '../sources/declaration.js'
import { type Confined, confinedKey } from './confining.js'
import { isOfLaterLine, isOfNoLine, LATER_LINE } from './line.js'
import type { Reached } from './reach.js'
import { type ToolList, toolsOf } from './tools.js'
import { troubleOf } from './trouble.js'

/** Default timeouts of a server. */
const TIMES = { start_timeout: 60_000, call_timeout: 120_000 } as const
type Bound = keyof typeof TIMES
const MAX_PAGES = 20
/** Milliseconds without a call after which a started server is stopped; the next call restarts it. */
const IDLE_MS = 10 * 60_000
/** Maximum of the back-off after failures, in milliseconds. */
const LONGEST_PAUSE_MS = 60_000
/**
 * Milliseconds after the end of a stream before the server is checked: a live server sends the answer or opens a new
 * stream within this time.
 */
const CHECK_AFTER_MS = 1000
const CHECK_MS = 5000
/** Milliseconds between two listings of the tools of a server that reports changes. */
const LIST_PAUSE_MS = 1000

/** State of a connection; every transition is one assignment of {@link Connection.#state}. */
type State =
  | { readonly is: 'idle' }
  | { readonly is: 'starting'; readonly done: Promise<Ready> }
  | Ready
  | {
      readonly is: 'failed'
      readonly reason: Reason
      readonly why: string
      readonly attempt: number
      readonly againAt: number
      /**
       * Whether a call may retry without a pause: over HTTP, after a loss or an immediate refusal, a retry costs almost
       * nothing.
       */
      readonly isCheap: boolean
    }
  | { readonly is: 'closed' }
interface Ready {
  readonly is: 'ready'
  readonly client: Client
  readonly reached: Reached
  /** Calls without an answer. A session that the server refused is closed after the last of them. */
  calls: number
  /** Why the connection was given up during calls. */
  lost?: string
  isChecking?: boolean
}

/** The server refused the session of a call without executing the call; the next use starts a new session. */
export class SessionRefused extends Error {}

/** Why the tools of a server cannot be called. */
export type Reason =
  | 'mcp_unreachable'
  | 'mcp_auth_unconfigured'
  | 'mcp_auth_required'
  | 'mcp_auth_expired'
  | 'mcp_auth_invalid'
  | 'mcp_auth_refresh_failed'

/** Result of a call, as sent by the server. */
export interface CallResult {
  readonly content: readonly unknown[]
  readonly structuredContent?: unknown
  readonly isError: boolean
}

export interface ConnectionWorld {
  readonly clock: Clock
  readonly ids: Ids
  readonly version: string
  /** Starts or connects to the server and resolves its secrets. */
  reach(server: Server, confined: Confined | undefined): Promise<Reached>
  /** Called with each list of its tools. */
  listed(key: string, listedTools: readonly unknown[]): void
  /** The cached list of its tools, if any. */
  kept(key: string): readonly unknown[] | undefined
  log(text: string, fields: Readonly<Record<string, unknown>>): void
}

/** Connection to one server: opened on demand, kept open, and reopened with back-off after a loss. */
export class Connection {
  #state: State = { is: 'idle' }
  #tools: ToolList | undefined
  #attempts = 0
  #calls = 0
  /** Whether the list of tools may be outdated, because the server was lost or restarted since. */
  #isStale = false
  #idle: { cancel(): void } | undefined
  /** Whether the server refused the handshake of the first protocol version and supports only the second one. */
  #isLater = false
  /**
   * Set while the tools are listed after a change, and during the pause after it; `again`: another change was reported
   * since.
   */
  #listing: { again: boolean } | undefined
  readonly #key: string

  constructor(
    readonly server: Server,
    private readonly world: ConnectionWorld,
    readonly confined: Confined | undefined,
  ) {
    this.#key = confinedKey(server.key, confined)
    const kept = world.kept(this.#key)
    this.#tools = kept && toolsOf(server.name, kept)
  }

  /** Calls without an answer. */
  get calls(): number {
    return this.#calls
  }

  get state(): 'idle' | 'starting' | 'ready' | 'failed' | 'closed' {
    return this.#state.is
  }

  /** Why it cannot be used; undefined if no failure is known. */
  get failure(): { readonly reason: Reason; readonly why: string } | undefined {
    return this.#state.is === 'failed' ? this.#state : undefined
  }

  /** The last list of its tools. */
  get known(): ToolList | undefined {
    return this.#tools
  }

  /** Whether the list of tools is missing or outdated, and no failure prevents a request for it. */
  get isUnknown(): boolean {
    return (this.#tools === undefined || this.#isStale) && this.failure === undefined
  }

  /** Its tools. @throws Fault `mcp_unreachable` and those of logins */
  async tools(): Promise<ToolList> {
    const ready = await this.#ready()
    return this.#tools ?? (await this.#list(ready.client))
  }

  /** Retries a lost HTTP server after its pause: nothing has to be started for that. */
  async refresh(): Promise<void> {
    if (this.server.declaration.url === undefined || this.#state.is !== 'failed' || this.#isPaused()) return
    await this.tools()
  }

  /** As {@link tools}, after a check that the server still answers: an HTTP server may have ended unnoticed. */
  async probe(): Promise<ToolList> {
    this.retry()
    if (this.#state.is === 'ready') await this.#check(this.#state)
    return this.tools()
  }

  /** @throws Fault `mcp_unreachable`, `mcp_call_failed` and those of logins; {@link SessionRefused} */
  async call(tool: string, input: unknown, signal: AbortSignal, traceparent?: string): Promise<CallResult> {
    const ready = await this.#ready()
    const { client } = ready
    const late = new AbortController()
    const timer = this.world.clock.timeout(this.#bound('call_timeout'), () => late.abort(), { unref: true })
    this.#calls++
    ready.calls++
    try {
      const params = {
        name: tool,
        arguments: input as Record<string, unknown>,
        // MCP reserves this member of `_meta` for trace contexts.
        ...(traceparent !== undefined && { _meta: { traceparent } }),
      }
      // Some members of the input also have to be sent as headers, which only the input schema shows.
      const inputSchema = this.#tools?.tools.find(({ name }) => name === tool)?.inputSchema ?? {}
      const result = await client.callTool(params, {
        toolDefinition: { name: tool, inputSchema: { ...inputSchema, type: 'object' } },
        signal: AbortSignal.any([signal, late.signal]),
        timeout: NEVER_MS,
      })
      const { content, structuredContent, isError } = result
      return { content, ...(structuredContent !== undefined && { structuredContent }), isError: isError === true }
    } catch (error) {
      signal.throwIfAborted()
      if (late.signal.aborted) {
        const said = ready.reached.lastWords()
        const why = `no answer within ${this.#named('call_timeout')}${said && `; ${said}`}`
        throw McpErrors.mcp_call_failed(`${this.server.name} ${tool}: ${why}`, { next: this.#raise('call_timeout') })
      }
      // A missing scope affects only this call, so the connection stays usable.
      if (isOfLogin(error) && error.details?.scope !== undefined) throw error
      if (isOfLogin(error)) {
        this.#fail(error.code, error.message)
        throw error
      }
      // The login cannot be renewed now, but the connection itself still works.
      if (error instanceof Fault && error.code === 'mcp_unreachable') throw error
      const trouble = ready.reached.trouble?.(error)
      if (trouble === 'session') {
        this.#leave(ready)
        throw new SessionRefused(messageOf(error), { cause: error })
      }
      if (trouble) this.#lose(ready, wordsOf(error))
      if (ready.lost !== undefined) throw this.#unreachable('mcp_unreachable', ready.lost)
      const { is } = this.#state
      if (is === 'failed') throw this.#unreachable(this.#state.reason, this.#state.why)
      throw McpErrors.mcp_call_failed(`${this.server.name} ${tool}: ${messageOf(error)}`, { cause: error })
    } finally {
      timer.cancel()
      this.#calls--
      ready.calls--
      if (this.#state !== ready) this.#closeUnused(ready)
      this.#rest()
    }
  }

  /** Closes the connection permanently. */
  async close(): Promise<void> {
    const before = this.#state
    this.#state = { is: 'closed' }
    this.#idle?.cancel()
    if (before.is === 'ready') await before.client.close().catch(() => {})
    if (before.is === 'starting') await before.done.then(({ client }) => client.close()).catch(() => {})
  }

  /** Clears the back-off after a person fixed something. A working connection stays. */
  retry(): void {
    if (this.#state.is === 'failed') this.#state = { is: 'idle' }
    this.#attempts = 0
  }

  #ready(): Promise<Ready> {
    const state = this.#state
    switch (state.is) {
      case 'ready':
        return Promise.resolve(state)
      case 'starting':
        return state.done
      case 'closed':
        return Promise.reject(this.#unreachable('mcp_unreachable', 'it was removed'))
      case 'failed':
        if (!state.isCheap && this.#isPaused()) return Promise.reject(this.#unreachable(state.reason, state.why))
        return this.#start()
      default:
        return this.#start()
    }
  }

  #isPaused(): boolean {
    return this.#state.is === 'failed' && this.world.clock.monotonic() < this.#state.againAt
  }

  #start(): Promise<Ready> {
    const done = this.#connect()
    this.#state = { is: 'starting', done }
    done.then(
      ready => {
        if (this.#state.is !== 'starting') return void ready.client.close().catch(() => {})
        this.#state = ready
        this.#attempts = 0
        this.#rest()
      },
      error => {
        if (this.#state.is !== 'starting') return
        const isCheap = error instanceof Fault && troubleOf(error.cause, undefined, false) === 'refused'
        this.#fail(error instanceof Fault ? error.code : '', messageOf(error), isCheap)
      },
    )
    return done
  }

  /**
   * The first protocol version is tried first, because its handshake needs no extra request; a server without it says
   * so in its answer, which is remembered.
   */
  async #connect(): Promise<Ready> {
    if (this.#isLater) return this.#connectBy(LATER_LINE)
    try {
      return await this.#connectBy(undefined)
    } catch (refusal) {
      // The failed attempt has set `#isLater`.
      if (!this.#isLater) throw refusal
      return await this.#connectBy(LATER_LINE).catch(error => {
        throw isOfNoLine(Object(error).cause) ? refusal : error
      })
    }
  }

  async #connectBy(pin: string | undefined): Promise<Ready> {
    const { clock, version } = this.world
    const { Client } = await import('@modelcontextprotocol/client')
    let reached: Reached | undefined
    const client = new Client(
      { name: 'svc', version },
      { jsonSchemaValidator: noValidator, ...(pin !== undefined && { versionNegotiation: { mode: { pin } } }) },
    )
    try {
      reached = await this.world.reach(this.server, this.confined)
      const { transport } = reached
      client.onclose = () => this.#ended(client)
      reached.onStreamOver = limit => this.#streamOver(client, limit)
      const begin = async () => {
        await client.connect(transport, { timeout: NEVER_MS })
        client.setNotificationHandler('notifications/tools/list_changed', () => this.#listAnew(client))
        await this.#list(client)
      }
      const late = () => new Error(`it did not start within ${this.#named('start_timeout')}`)
      await bounded(clock, this.#bound('start_timeout'), begin(), late)
      if (pin !== undefined) this.#listen(client)
      return { is: 'ready', client, reached, calls: 0 }
    } catch (error) {
      await client.close().catch(() => {})
      // The server may have been upgraded, so the choice of the second version is reset unless the error confirms it.
      this.#isLater = pin === undefined && client.getServerCapabilities() === undefined && isOfLaterLine(error)
      if (error instanceof Fault) throw error
      const words = reached?.lastWords()
      throw this.#unreachable('mcp_unreachable', `${wordsOf(error)}${words ? `; ${words}` : ''}`, error)
    }
  }

  /**
   * In the second protocol version a server reports changes only to subscribers. Without a subscription, the tools of
   * the start are used.
   */
  #listen(client: Client): void {
    if (client.getServerCapabilities()?.tools?.listChanged !== true) return
    const again = (how: string) => {
      if (how === 'local') return
      const retry = () => {
        if (this.#state.is !== 'ready' || this.#state.client !== client) return
        this.#listen(client)
        void this.#listAnew(client).catch(() => {})
      }
      this.world.clock.timeout(LONGEST_PAUSE_MS, retry, { unref: true })
    }
    client.listen({ toolsListChanged: true }, { timeout: CHECK_MS }).then(
      subscription => void subscription.closed.then(again),
      () => again('refused'),
    )
  }

  async #list(client: Client): Promise<ToolList> {
    const listedTools: unknown[] = []
    let cursor: unknown
    for (let page = 0; page < MAX_PAGES; page++) {
      const params = typeof cursor === 'string' ? { cursor } : {}
      const reply: Record<string, unknown> = await client.request({ method: 'tools/list', params }, AnyResult, {
        timeout: this.#bound('start_timeout'),
      })
      if (!Array.isArray(reply.tools)) throw new Error('its answer to tools/list has no list of tools')
      listedTools.push(...reply.tools)
      cursor = reply.nextCursor
      if (cursor === undefined) break
    }
    this.#tools = toolsOf(this.server.name, listedTools)
    this.#isStale = false
    this.world.listed(this.#key, listedTools)
    return this.#tools
  }

  /** Lists changed tools once, and once more after a pause if further changes were reported, however many. */
  async #listAnew(client: Client): Promise<void> {
    if (this.#listing) {
      this.#listing.again = true
      return
    }
    const listing = { again: false }
    this.#listing = listing
    try {
      await this.#list(client)
    } finally {
      const go = () => {
        this.#listing = undefined
        // The server may have been restarted meanwhile: a later report counts for the running connection.
        if (listing.again && this.#state.is === 'ready') void this.#listAnew(this.#state.client).catch(() => {})
      }
      this.world.clock.timeout(LIST_PAUSE_MS, go, { unref: true })
    }
  }

  /** Schedules the stop of an idle started program. Its tools stay known. */
  #rest(): void {
    this.#idle?.cancel()
    if (this.server.declaration.command === undefined || this.#state.is !== 'ready') return
    this.#idle = this.world.clock.timeout(IDLE_MS, () => void this.rest(), { unref: true })
  }

  /** Stops a started program without calls; the next call restarts it. */
  async rest(): Promise<void> {
    if (this.server.declaration.command === undefined || this.#state.is !== 'ready' || this.#calls > 0) return
    const { client } = this.#state
    this.#idle?.cancel()
    this.#state = { is: 'idle' }
    await client.close().catch(() => {})
  }

  #ended(client: Client): void {
    const state = this.#state
    if (state.is !== 'ready' || state.client !== client) return
    const words = state.reached.lastWords()
    this.#lose(state, `it has ended${words ? `; ${words}` : ''}`)
  }

  /** Fails all calls without an answer, since it can no longer arrive. */
  #lose(ready: Ready, why: string): void {
    ready.lost ??= why
    if (this.#state !== ready) return void ready.client.close().catch(() => {})
    const isOverHttp = ready.reached.trouble !== undefined
    this.#isStale = isOverHttp
    this.#fail('mcp_unreachable', why, isOverHttp)
  }

  /** Abandons the session; its other calls may still be answered. The next use starts a new one. */
  #leave(ready: Ready): void {
    if (this.#state !== ready) return
    this.#isStale = true
    this.#state = { is: 'idle' }
    this.#closeUnused(ready)
  }

  #closeUnused({ calls, client }: Ready): void {
    if (calls === 0) void client.close().catch(() => {})
  }

  /**
   * Handles the end of an event stream. A server that crashed loses the answers of its calls silently, so it is
   * checked.
   */
  #streamOver(client: Client, limit: Error | undefined): void {
    const ready = this.#state
    if (ready.is !== 'ready' || ready.client !== client) return
    if (limit) this.#lose(ready, limit.message)
    if (limit || ready.isChecking) return
    ready.isChecking = true
    const check = () => void this.#check(ready)
    this.world.clock.timeout(CHECK_AFTER_MS, check, { unref: true })
  }

  async #check(ready: Ready): Promise<void> {
    const { client, reached } = ready
    try {
      const options = { timeout: CHECK_MS }
      if (this.#state === ready)
        await (client.getProtocolEra() === 'modern' ? client.discover(options) : client.ping(options))
    } catch (error) {
      const trouble = reached.trouble?.(error)
      if (trouble === 'session') {
        ready.lost ??= 'it was restarted'
        this.#leave(ready)
        // The server has restarted and no longer knows the session. New requests are refused and repeated in a new session;
        // calls that the old process had accepted never get an answer, so closing the client later fails them.
        const giveUp = () => void client.close().catch(() => {})
        this.world.clock.timeout(CHECK_MS, giveUp, { unref: true })
      } else if (trouble) this.#lose(ready, wordsOf(error))
    } finally {
      ready.isChecking = false
    }
  }

  #fail(code: string, why: string, isCheap = false): void {
    const before = this.#state
    const attempt = ++this.#attempts
    const pause = Math.min(
      backoff(attempt + 4, () => this.world.ids.random()),
      LONGEST_PAUSE_MS,
    )
    const reason = code.startsWith('mcp_auth_') ? (code as Reason) : 'mcp_unreachable'
    this.#state = { is: 'failed', reason, why, attempt, againAt: this.world.clock.monotonic() + pause, isCheap }
    if (before.is === 'ready') void before.client.close().catch(() => {})
    this.world.log('an MCP server cannot be used', { server: this.server.name, why })
  }

  #bound(bound: Bound): number {
    return durationMs(this.server.declaration[bound] ?? '') ?? TIMES[bound]
  }

  /** `60 s (start_timeout of the server)` */
  #named(bound: Bound): string {
    return `${this.#bound(bound) / 1000} s (${bound} of the server)`
  }

  #raise(bound: Bound): string {
    return `raise ${bound} of the server ${this.server.name} in ${this.server.source.where}`
  }

  #unreachable(reason: Reason, why: string, cause?: unknown): Fault {
    return McpErrors[reason](`${this.server.name} (${this.server.source.where}): ${why}`, {
      cause,
      details: { server: this.server.name },
    })
  }
}

/** Tools are checked one by one, so a list with an invalid tool is accepted. */
const AnyResult = v.looseObject({})

/** Disables the client library's own timeout; the configured timeout applies. */
const NEVER_MS = 2 * 3_600_000

/** Result of `work`; `late` on timeout. */
const bounded = <T>(clock: Clock, ms: number, work: Promise<T>, late: () => Error): Promise<T> =>
  new Promise((resolve, reject) => {
    const timer = clock.timeout(ms, () => reject(late()), { unref: true })
    work.finally(() => timer.cancel()).then(resolve, reject)
  })

/** Message of an error with its cause: that of a failed `fetch` has no detail. */
function wordsOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : undefined
  const why = cause && (messageOf(cause) || String((cause as NodeJS.ErrnoException).code ?? ''))
  return why ? `${messageOf(error)}: ${why}` : messageOf(error)
}

const isOfLogin = (error: unknown): error is Fault => error instanceof Fault && error.code.startsWith('mcp_auth_')

/** Schemas of servers are checked on each call by one shared validator; results are not checked. */
const noValidator: jsonSchemaValidator = {
  getValidator: () => input => ({ valid: true, data: input as never, errorMessage: undefined }),
}
