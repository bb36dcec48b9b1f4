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

/** Bounds of a server whose declaration names none. */
const TIMES = { start_timeout: 60_000, call_timeout: 120_000 } as const
type Bound = keyof typeof TIMES
const MAX_PAGES = 20
/** A server that was started and that nobody has called for so long is ended; the next call starts it again. */
const IDLE_MS = 10 * 60_000
/** The first pause after a failure; it doubles up to the longest one. */
const LONGEST_PAUSE_MS = 60_000
/** A stream that ended is followed by a new one or by its answer within this time, unless the server is gone. */
const CHECK_AFTER_MS = 1000
const CHECK_MS = 5000
/** Between two lists of the tools of a server that says that they changed. */
const LIST_PAUSE_MS = 1000

/** What is known of a server: every transition is one assignment of {@link Connection.#state}. */
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
      /** It was lost, or refused at once, over HTTP: a call may ask again without the pause, which costs next to nothing. */
      readonly isCheap: boolean
    }
  | { readonly is: 'closed' }
interface Ready {
  readonly is: 'ready'
  readonly client: Client
  readonly reached: Reached
  /** Calls that have no answer yet. A session that the server refused is closed after the last of them. */
  calls: number
  /** Why it was given up although calls had no answer yet. */
  lost?: string
  isChecking?: boolean
}

/** The server refused the session that a call named, so it did not execute the call: the next use starts a new session. */
export class SessionRefused extends Error {}

/** Why the tools of a server cannot be called. */
export type Reason =
  | 'mcp_unreachable'
  | 'mcp_auth_unconfigured'
  | 'mcp_auth_required'
  | 'mcp_auth_expired'
  | 'mcp_auth_invalid'
  | 'mcp_auth_refresh_failed'

/** The result of a call, as the server gave it. */
export interface CallResult {
  readonly content: readonly unknown[]
  readonly structuredContent?: unknown
  readonly isError: boolean
}

export interface ConnectionWorld {
  readonly clock: Clock
  readonly ids: Ids
  readonly version: string
  /** Starts or reaches the server; its secrets are resolved then. */
  reach(server: Server, confined: Confined | undefined): Promise<Reached>
  /** It told of its tools, for the first time or anew. */
  listed(key: string, told: readonly unknown[]): void
  /** What it told of its tools the last time, where that is kept. */
  kept(key: string): readonly unknown[] | undefined
  log(text: string, fields: Readonly<Record<string, unknown>>): void
}

/** One server: reached when somebody needs it, kept, and reached again after a pause when it was lost. */
export class Connection {
  #state: State = { is: 'idle' }
  #tools: ToolList | undefined
  #attempts = 0
  #calls = 0
  /** The server was lost, or started anew, since it told of its tools: they may be others now. */
  #isStale = false
  #idle: { cancel(): void } | undefined
  /** It refused the handshake of the first line of the protocol, and speaks the second one alone. */
  #isLater = false
  /** Its tools are being listed because it said that they changed, or were a moment ago; `again`: it said so since. */
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

  /** Calls that have no answer yet. */
  get calls(): number {
    return this.#calls
  }

  get state(): 'idle' | 'starting' | 'ready' | 'failed' | 'closed' {
    return this.#state.is
  }

  /** Why it cannot be used; undefined while nothing speaks against it. */
  get failure(): { readonly reason: Reason; readonly why: string } | undefined {
    return this.#state.is === 'failed' ? this.#state : undefined
  }

  /** As it told of them last. */
  get known(): ToolList | undefined {
    return this.#tools
  }

  /** Its list of tools is missing, or may be an old one, and nothing speaks against asking for it. */
  get isUnknown(): boolean {
    return (this.#tools === undefined || this.#isStale) && this.failure === undefined
  }

  /** Its tools. @throws Fault `mcp_unreachable` and those of logins */
  async tools(): Promise<ToolList> {
    const ready = await this.#ready()
    return this.#tools ?? (await this.#list(ready.client))
  }

  /** Asks a server over HTTP again that was lost, once its pause is over: nothing has to be started for it. */
  async refresh(): Promise<void> {
    if (this.server.declaration.url === undefined || this.#state.is !== 'failed' || this.#isPaused()) return
    await this.tools()
  }

  /** As {@link tools}, of a server that still answers: one over HTTP may have ended unnoticed. */
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
        // The member of `_meta` that MCP keeps for it.
        ...(traceparent !== undefined && { _meta: { traceparent } }),
      }
      // Members of the input may have to be headers too, which only the schema of the input tells.
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
      // What lacks a scope for this call reaches others.
      if (isOfLogin(error) && error.details?.scope !== undefined) throw error
      if (isOfLogin(error)) {
        this.#fail(error.code, error.message)
        throw error
      }
      // A login that cannot be renewed now: the connection is as good as before.
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

  /** Ends it for good. */
  async close(): Promise<void> {
    const before = this.#state
    this.#state = { is: 'closed' }
    this.#idle?.cancel()
    if (before.is === 'ready') await before.client.close().catch(() => {})
    if (before.is === 'starting') await before.done.then(({ client }) => client.close()).catch(() => {})
  }

  /** It may be tried at once, whatever the pause: something was done about it. A connection that works stays. */
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
   * Most servers speak the first line of the protocol, whose handshake costs no request more; the answer of one that does not speak it
   * says so, and is remembered.
   */
  async #connect(): Promise<Ready> {
    if (this.#isLater) return this.#connectBy(LATER_LINE)
    try {
      return await this.#connectBy(undefined)
    } catch (refusal) {
      // Set by the attempt.
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
      // What was the second line alone may be another release of the server by now.
      this.#isLater = pin === undefined && client.getServerCapabilities() === undefined && isOfLaterLine(error)
      if (error instanceof Fault) throw error
      const words = reached?.lastWords()
      throw this.#unreachable('mcp_unreachable', `${wordsOf(error)}${words ? `; ${words}` : ''}`, error)
    }
  }

  /** On the second line of the protocol a server tells of changes to whoever asks it to. Without it, its tools are those of the start. */
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
    const told: unknown[] = []
    let cursor: unknown
    for (let page = 0; page < MAX_PAGES; page++) {
      const params = typeof cursor === 'string' ? { cursor } : {}
      const reply: Record<string, unknown> = await client.request({ method: 'tools/list', params }, AnyResult, {
        timeout: this.#bound('start_timeout'),
      })
      if (!Array.isArray(reply.tools)) throw new Error('its answer to tools/list has no list of tools')
      told.push(...reply.tools)
      cursor = reply.nextCursor
      if (cursor === undefined) break
    }
    this.#tools = toolsOf(this.server.name, told)
    this.#isStale = false
    this.world.listed(this.#key, told)
    return this.#tools
  }

  /** Its tools changed: they are listed once, and once more after a pause when it says so again, however often it does. */
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
        // It may have been started anew meanwhile: what it said since counts for the one that runs now.
        if (listing.again && this.#state.is === 'ready') void this.#listAnew(this.#state.client).catch(() => {})
      }
      this.world.clock.timeout(LIST_PAUSE_MS, go, { unref: true })
    }
  }

  /** Ends a program that was started, once nobody has called it for a while. Its tools stay known. */
  #rest(): void {
    this.#idle?.cancel()
    if (this.server.declaration.command === undefined || this.#state.is !== 'ready') return
    this.#idle = this.world.clock.timeout(IDLE_MS, () => void this.rest(), { unref: true })
  }

  /** Ends a program that nobody calls now; the next call starts it again. */
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

  /** Calls that have no answer yet fail: nothing can bring their answers any more. */
  #lose(ready: Ready, why: string): void {
    ready.lost ??= why
    if (this.#state !== ready) return void ready.client.close().catch(() => {})
    const isOverHttp = ready.reached.trouble !== undefined
    this.#isStale = isOverHttp
    this.#fail('mcp_unreachable', why, isOverHttp)
  }

  /** The session counts no more; its other calls may still be answered. The next use starts a new one. */
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
   * A stream of events is over. A server that ended takes the answers of its calls along without a word, so it is asked whether it
   * is there.
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
        ready.lost ??= 'it was started anew'
        this.#leave(ready)
        // What was sent to the new server is refused soon and made again; what the old one took with it has no answer any more.
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

/** Tools are judged one by one, so a list with a bad one among them is taken as it is. */
const AnyResult = v.looseObject({})

/** The client ends a request by itself after a time; a bound of ours comes first. */
const NEVER_MS = 2 * 3_600_000

/** As `work` ends; `late` where it does not end in time. */
const bounded = <T>(clock: Clock, ms: number, work: Promise<T>, late: () => Error): Promise<T> =>
  new Promise((resolve, reject) => {
    const timer = clock.timeout(ms, () => reject(late()), { unref: true })
    work.finally(() => timer.cancel()).then(resolve, reject)
  })

/** What an error says, with its cause: `fetch` says no more than that it failed. */
function wordsOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : undefined
  const why = cause && (messageOf(cause) || String((cause as NodeJS.ErrnoException).code ?? ''))
  return why ? `${messageOf(error)}: ${why}` : messageOf(error)
}

const isOfLogin = (error: unknown): error is Fault => error instanceof Fault && error.code.startsWith('mcp_auth_')

/** Schemas of servers are checked where tools are called, by one validator for all; what answers say is not. */
const noValidator: jsonSchemaValidator = {
  getValidator: () => input => ({ valid: true, data: input as never, errorMessage: undefined }),
}
