import {
  type ClientConnection,
  client,
  methods,
  PROTOCOL_VERSION,
  type PromptRequest,
  RequestError,
} from '@agentclientprotocol/sdk'
import * as v from 'valibot'
import { clip } from '../../../../kernel/kit/text.js'
import { type Clock, messageOf, type Redact, within } from '../../../../kernel/plugin.js'
import type { PermissionMode } from '../../../agents/agents/api.js'
import { keep, OutputEnd, type ProcessHandle } from '../../../platform/processes/api.js'
import { redactText } from '../../../platform/redaction/api.js'
import { AgentChoices } from '../choices/agent-choices.js'
import type { Choice } from '../choices/options.js'
import { linkOf } from '../protocol/link.js'
import { InitializeResult, PromptResult, SessionResult, UpdateParams } from '../protocol/schemas.js'
import type { ClientMethods } from '../requests/client-methods.js'
import type { AgentGuards } from '../requests/guards.js'
import { AcpSettings } from '../settings.js'
import { type Block, promptBlocks } from './blocks.js'
import { AgentFailure, type FailureKind, type LastWords } from './failure.js'
import { ASKING, MODE_NAMES } from './modes.js'
import { stoppedGroups } from './pulse.js'

const STDERR_BYTES = 16 * 1024
const JUNK_LINES = 20
/** Milliseconds to wait for the last output of a process in its pipe. */
const DRAIN_MS = 500
const SET_MODE_MS = 10_000

/** Settings that limit the start requests to an agent, in milliseconds. */
type StartBound = 'initializeTimeout' | 'newSessionTimeout'

/** Reason for which an agent runs without MCP servers. */
export type LeftOut = { readonly transport: 'stdio' | 'http' } | { readonly refusal: string }

/** Parameters of a process that has been spawned. */
export interface AgentStart extends Readonly<Record<StartBound, number>> {
  /** Owner of the process, for people. */
  readonly owner: string
  readonly handle: ProcessHandle
  readonly clock: Clock
  readonly cwd: string
  readonly addDirs: readonly string[]
  readonly mcpServers: readonly unknown[]
  readonly mode: PermissionMode
  /** Additional IDs of modes in which the agent asks, besides the common ones. */
  readonly askingModes: readonly string[]
  /** Client capabilities that are not offered to the agent. */
  readonly withholds: readonly string[]
  /** MCP transports that the agent supports, where it advertises more than that. */
  readonly mcpTransports: readonly string[] | undefined
  /** An agent that offers no asking mode is not started under a guard. */
  readonly guards: Pick<AgentGuards, 'first'>
  readonly version: string
  /** Agent-assigned ID of the earlier session that is to be loaded. */
  readonly load: string | undefined
  /** The methods that the agent may call. */
  readonly methods: ClientMethods
  /** Receives the parameters of each `session/update`, in order; not called while an old session is replayed. */
  update(params: unknown): void
  room(): Promise<void>
  activity(): void
  /** The agent violated the protocol or flooded the connection. */
  fault(error: Error): void
  /** Names of MCP servers that the agent runs without, and the reason. */
  leftOut(servers: readonly string[], why: LeftOut): void
  /** A request was refused because too many are in progress. */
  refused(why: string): void
  log(text: string, fields: Readonly<Record<string, unknown>>): void
  readonly redact: Redact
  /** Instructions for the login, for an agent that needs one; undefined where they are unknown. */
  readonly login: string | undefined
  /** The names of secrets withheld from the agent, for a person whose login fails. */
  readonly withheld: () => string | undefined
}

/** State of a connected agent. */
export interface AgentSession {
  readonly acpSessionId: string
  readonly loaded: boolean
  /** Reason for which a wanted `session/load` did not happen. */
  readonly loadFailure: string | undefined
  readonly supportsLoad: boolean
  readonly modes: readonly string[]
  readonly prompts: { readonly image: boolean; readonly audio: boolean; readonly embeddedContext: boolean }
}

/** One live agent process and its ACP connection. */
export class AgentProcess {
  readonly #stderr = new OutputEnd(STDERR_BYTES)
  readonly #junk: string[] = []
  readonly #connection: ClientConnection
  /** Resolves once with the failure that ended the process, when no more output comes; never after {@link stop}. */
  readonly ended: Promise<AgentFailure>
  #session: AgentSession | undefined
  readonly choices = new AgentChoices()
  #isReplaying = false
  /** A cancel was requested for the running prompt. */
  #isCancelRequested = false
  #isStopped = false
  #breakOffFailure: AgentFailure | undefined

  private constructor(private readonly start: AgentStart) {
    const { handle } = start
    keep(handle.stderr, {
      push: chunk => {
        this.#stderr.push(chunk)
        start.activity()
      },
    })
    const link = linkOf(handle.stdout, handle.stdin, {
      owner: start.owner,
      update: params => {
        if (isOfAnother(params, this.#session?.acpSessionId)) return
        this.choices.note(params)
        if (!this.#isReplaying) start.update(params)
      },
      room: start.room,
      activity: start.activity,
      junk: line => this.#takeJunk(line),
      refused: start.refused,
    })
    this.#connection = start.methods.register(client({ name: 'svc' })).connect(link)
    this.ended = this.#watch(() => link.failure())
  }

  /** Performs the handshake and opens the session. Throws {@link AgentFailure}, after the process was stopped. */
  static async connect(start: AgentStart): Promise<AgentProcess> {
    const agent = new AgentProcess(start)
    try {
      agent.#session = await agent.#handshake()
      return agent
    } catch (error) {
      await agent.stop({ graceMs: 200, termMs: 1000 })
      if (error instanceof AgentFailure) error.lastWords = agent.lastWords
      throw error
    }
  }

  get session(): AgentSession {
    if (!this.#session) throw new Error('the agent is not connected yet')
    return this.#session
  }

  /** Sets a model or an option value of the agent. Throws the agent's refusal. */
  async choose(choice: Choice): Promise<void> {
    const { acpSessionId: sessionId } = this.session
    const request = this.#connection.agent.request<unknown>(choice.method, { sessionId, ...choice.params })
    const answer = await within(this.start.clock, SET_MODE_MS, request).catch(error => {
      throw new Error(describe(error, this.start.redact), { cause: error })
    })
    this.choices.took(choice, answer)
  }

  get handle(): ProcessHandle {
    return this.start.handle
  }

  get lastWords(): LastWords {
    return { stderr: this.#stderr.lines(), junk: [...this.#junk] }
  }

  /** Runs one turn. Resolves with the agent's stop reason; throws {@link AgentFailure}. */
  async prompt(
    texts: readonly string[],
    files: readonly Block[] = [],
    meta?: Readonly<Record<string, string>>,
  ): Promise<string> {
    const prompt = promptBlocks(texts, files) as PromptRequest['prompt']
    this.#isCancelRequested = false
    const { acpSessionId: sessionId } = this.session
    try {
      const request = { sessionId, prompt, ...(meta && { _meta: meta }) }
      const answer: unknown = await this.#connection.agent.request(methods.agent.session.prompt, request)
      const { stopReason } = v.parse(v.fallback(PromptResult, { stopReason: 'end_turn' }), answer)
      if (stopReason !== 'cancelled' || this.#isCancelRequested) return stopReason
      // Some agents whose main process was killed still send a stop reason before they exit.
      const failure = await within(this.start.clock, 2 * DRAIN_MS, this.ended).catch(() => undefined)
      if (failure) throw failure
      return stopReason
    } catch (error) {
      if (this.#connection.signal.aborted) throw await this.ended
      const failure = refused('prompt_failure', undefined, error, this.start.redact, this.start.login)
      throw failure.wantsLogin ? failure.withHint(this.start.withheld()) : failure
    }
  }

  /** Requests the end of the running turn. The agent decides when to comply. */
  async cancel(): Promise<void> {
    this.#isCancelRequested = true
    const { acpSessionId: sessionId } = this.session
    await this.#connection.agent.notify(methods.agent.session.cancel, { sessionId }).catch(() => {})
  }

  /** Ends the process and its group; does not reject when the process is already gone. */
  async stop(options?: { readonly graceMs?: number; readonly termMs?: number }): Promise<void> {
    this.#isStopped = true
    await this.handle.stop(options)
    this.#connection.close(new Error('the session was stopped'))
  }

  async #handshake(): Promise<AgentSession> {
    const { start } = this
    const request = async <T>(kind: FailureKind, method: string, params: unknown, bound: StartBound): Promise<T> => {
      const ms = start[bound]
      let isAnswered = false
      const answer = this.#connection.agent.request<T>(method, params).finally(() => {
        isAnswered = true
      })
      try {
        return await within(start.clock, ms, answer)
      } catch (error) {
        if (!isAnswered) throw new AgentFailure(kind, `${method}: ${this.#noAnswerText(bound)}`, error)
        if (!this.#connection.signal.aborted) throw refused(kind, method, error, start.redact, start.login)
        const failure = await this.ended
        throw new AgentFailure('startup_failure', `${method}: ${failure.message}`, failure)
      }
    }
    const isSupported = (capability: string) => !start.withholds.includes(capability)
    const initializeReply = await request(
      'handshake_failure',
      methods.agent.initialize,
      {
        protocolVersion: PROTOCOL_VERSION,
        clientInfo: { name: 'svc', version: start.version },
        clientCapabilities: {
          ...(isSupported('fs') && { fs: { readTextFile: true, writeTextFile: true } }),
          ...(isSupported('terminal') && { terminal: true }),
          ...(isSupported('elicitation') && { elicitation: { form: {} } }),
        },
      },
      'initializeTimeout',
    )
    const initialized = v.safeParse(InitializeResult, initializeReply)
    if (!initialized.success) throw new AgentFailure('handshake_failure', 'initialize: the reply is not an object')
    const { protocolVersion, agentCapabilities } = initialized.output
    if (protocolVersion !== PROTOCOL_VERSION) {
      const versions = `${protocolVersion}, this daemon ${PROTOCOL_VERSION}`
      throw new AgentFailure('handshake_failure', `the agent speaks version ${versions} of the protocol`)
    }
    const supportsLoad = agentCapabilities?.loadSession === true
    const servers = reachable(start.mcpServers, agentCapabilities?.mcpCapabilities?.http === true, start.mcpTransports)
    for (const [transport, names] of servers.leftOut) start.leftOut(names, { transport })
    let usableServers = servers.usable
    // An agent that refuses MCP servers is tried once more without them, and gets none from then on.
    const openSession = async (kind: FailureKind, method: string, params: object): Promise<unknown> => {
      const folders = {
        cwd: start.cwd,
        ...(start.addDirs.length > 0 && { additionalDirectories: start.addDirs }),
        ...params,
      }
      try {
        return await request(kind, method, { ...folders, mcpServers: usableServers }, 'newSessionTimeout')
      } catch (error) {
        if (usableServers.length === 0 || !refusesServers(error)) throw error
        const sessionReply = await request(kind, method, { ...folders, mcpServers: [] }, 'newSessionTimeout')
        start.leftOut(usableServers.map(serverName), { refusal: messageOf(error) })
        usableServers = []
        return sessionReply
      }
    }
    let loadFailure = start.load !== undefined && !supportsLoad ? 'the agent cannot load sessions' : undefined
    let sessionReply: unknown
    let acpSessionId: string | undefined
    if (start.load !== undefined && supportsLoad) {
      // Replayed updates are in the journal already.
      this.#isReplaying = true
      try {
        sessionReply = await openSession('load_session_failure', methods.agent.session.load, { sessionId: start.load })
        acpSessionId = start.load
      } catch (error) {
        // A process that has exited cannot open a new session.
        if (this.#connection.signal.aborted) throw new AgentFailure('load_session_failure', messageOf(error), error)
        loadFailure = messageOf(error)
      } finally {
        this.#isReplaying = false
      }
    }
    if (acpSessionId === undefined) {
      sessionReply = await openSession('startup_failure', methods.agent.session.new, {})
      acpSessionId = v.safeParse(SessionResult, sessionReply).success
        ? v.parse(SessionResult, sessionReply).sessionId
        : undefined
      if (!acpSessionId) throw new AgentFailure('startup_failure', 'session/new: the answer has no sessionId')
    }
    const modes = v.safeParse(SessionResult, sessionReply)
    const modeIds = (modes.success ? modes.output.modes?.availableModes : undefined)?.map(({ id }) => id) ?? []
    const currentModeId = modes.success ? modes.output.modes?.currentModeId : undefined
    if (modes.success) this.choices.opened(modes.output)
    this.#checkAsks(modeIds)
    await this.#chooseMode(acpSessionId, modeIds, currentModeId, start.mode)
    const { image = false, audio = false, embeddedContext = false } = agentCapabilities?.promptCapabilities ?? {}
    return {
      acpSessionId,
      loaded: start.load !== undefined && acpSessionId === start.load && loadFailure === undefined,
      loadFailure,
      supportsLoad,
      modes: modeIds,
      prompts: { image, audio, embeddedContext },
    }
  }

  #noAnswerText(bound: StartBound): string {
    const stopNote = stoppedGroups().has(this.handle.pid) ? '; its process was stopped by a signal (state T)' : ''
    return `no answer within ${this.start[bound] / 1000} s (setting ${AcpSettings[bound].path})${stopNote}`
  }

  /** Closes the connection for a reason of the daemon's own; {@link ended} resolves with that reason. */
  breakOff(kind: FailureKind, message: string): void {
    this.#breakOffFailure ??= this.#failure(kind, message)
    this.#connection.close(this.#breakOffFailure)
  }

  /** Throws {@link AgentFailure} for an agent under a guard that has no mode in which it asks. */
  checkAsks(): void {
    this.#checkAsks(this.session.modes)
  }

  /** Switches the agent to its own mode for a permission mode. */
  changeMode(mode: PermissionMode): Promise<void> {
    return this.#chooseMode(this.session.acpSessionId, this.session.modes, undefined, mode)
  }

  /** Sets one of the agent's own modes. Throws the agent's refusal. */
  async setMode(modeId: string): Promise<void> {
    const { acpSessionId: sessionId } = this.session
    const request = this.#connection.agent.request(methods.agent.session.setMode, { sessionId, modeId })
    await within(this.start.clock, SET_MODE_MS, request).catch(error => {
      throw new Error(describe(error, this.start.redact), { cause: error })
    })
  }

  async #chooseMode(
    sessionId: string,
    modeIds: readonly string[],
    currentModeId: string | undefined,
    mode: PermissionMode,
  ): Promise<void> {
    const names = mode === 'approve-all' ? MODE_NAMES[mode] : [...this.start.askingModes, ...MODE_NAMES[mode]]
    const modeId = names.find(name => modeIds.includes(name))
    if (modeId === undefined || modeId === currentModeId) return
    const request = this.#connection.agent.request(methods.agent.session.setMode, { sessionId, modeId })
    await within(this.start.clock, SET_MODE_MS, request).catch(error => {
      const why = describe(error, this.start.redact)
      const guardedBy = this.start.guards.first?.by
      if (guardedBy !== undefined)
        throw new AgentFailure(
          'startup_failure',
          `${guardedBy} must approve each operation, but the agent did not accept the mode ${modeId}, in which it asks: ${why}`,
          error,
        )
      this.start.log('the agent did not accept the mode', { mode: modeId, error: why })
    })
  }

  /** An agent without modes is trusted to ask; an agent with modes must offer one in which it asks. */
  #checkAsks(modeIds: readonly string[]): void {
    const guardedBy = this.start.guards.first?.by
    const askingModes = [...this.start.askingModes, ...ASKING]
    if (guardedBy === undefined || modeIds.length === 0 || askingModes.some(mode => modeIds.includes(mode))) return
    throw new AgentFailure(
      'startup_failure',
      `${guardedBy} must approve each operation, but the agent has no mode in which it asks (${modeIds.join(', ')})`,
    )
  }

  async #watch(linkFailure: () => Error | undefined): Promise<AgentFailure> {
    const { handle, clock } = this.start
    const stderrRead = new Promise(resolve => handle.stderr.once('close', resolve))
    const exit = handle.exited.then(async ({ code, signal }) => {
      await within(clock, DRAIN_MS, Promise.all([this.#connection.closed, stderrRead])).catch(() => {})
      this.#connection.close(new Error('the agent ended'))
      if (code === null) return this.#failure('process_exit', `the agent process ended by ${signal}`)
      return this.#failure('process_exit', this.#withLastWords(`the agent process ended with code ${code}`))
    })
    const connectionEnd = this.#connection.closed.then(async () => {
      if (this.#breakOffFailure) return this.#breakOffFailure
      // A process that ends closes its pipes shortly before it exits.
      const exitFailure = await within(clock, DRAIN_MS, exit).catch(() => undefined)
      const failure = linkFailure()
      if (failure) {
        this.start.fault(failure)
        return this.#failure('protocol_failure', failure.message)
      }
      return exitFailure ?? this.#failure('transport_failure', this.#withLastWords('the agent closed the connection'))
    })
    return Promise.race([connectionEnd, exit.then(failure => (linkFailure() ? connectionEnd : failure))])
  }

  /** True once {@link stop} was called: the end of the process is then no failure. */
  get stopping(): boolean {
    return this.#isStopped
  }

  #failure(kind: FailureKind, message: string): AgentFailure {
    const failure = new AgentFailure(kind, message)
    failure.lastWords = this.lastWords
    return failure
  }

  #withLastWords(text: string): string {
    const reason = this.start.redact.text(reasonIn(this.#stderr.lines()), 500)
    return reason ? `${text}: ${reason}` : text
  }

  #takeJunk(line: string): void {
    this.#junk.push(this.start.redact.text(line, 500))
    if (this.#junk.length > JUNK_LINES) this.#junk.shift()
    else
      this.start.log('a line on stdout is not a message of the protocol', {
        line: redactText(clip(this.#junk.at(-1) ?? '', 200)),
      })
  }
}

/** Whether an update belongs to another session. One without an ID, or before the ID is known, does not. */
function isOfAnother(params: unknown, ownId: string | undefined): boolean {
  const parsed = v.safeParse(UpdateParams, params)
  const id = parsed.success ? parsed.output.sessionId : undefined
  return ownId !== undefined && id !== undefined && id !== ownId
}

/** The name of an MCP server in the form of the protocol. */
const serverName = (server: unknown): string => String((Object(server) as { name?: unknown }).name)

type Transport = 'stdio' | 'http'

/**
 * Splits MCP servers into reachable ones and, by transport, the names of the others.
 * @param overHttp the agent advertises servers over HTTP
 * @param transports the transports that work, where the agent advertises more than it supports
 */
function reachable(servers: readonly unknown[], overHttp: boolean, transports: readonly string[] = ['stdio', 'http']) {
  const leftOut = new Map<Transport, string[]>()
  const usable = servers.filter(server => {
    const transport = (Object(server) as { type?: unknown }).type === 'http' ? 'http' : 'stdio'
    if (transports.includes(transport) && (transport === 'stdio' || overHttp)) return true
    leftOut.set(transport, [...(leftOut.get(transport) ?? []), serverName(server)])
    return false
  })
  return { usable, leftOut }
}

const REASON_CHARACTERS = 700
/** JSON-RPC code of ACP: authentication required. */
const LOGIN_WANTED = -32000

/** Text of an error response: its message, the reason in its data, and its code. */
function describe(error: unknown, redact: Redact): string {
  if (!(error instanceof RequestError)) return messageOf(error)
  const reason = reasonOf(error.data)
  const message = reason === undefined || error.message.includes(reason) ? error.message : `${error.message}: ${reason}`
  const text = `${redact.text(redactText(message), REASON_CHARACTERS)} (${error.code})`
  return error.code === LOGIN_WANTED ? `the agent requires a login: ${text}` : text
}

/** JSON-RPC code: invalid parameters. */
const INVALID_PARAMS = -32602

/** Whether MCP servers may be the reason of a refusal: it names them, or the parameters that contain them. */
function refusesServers(failure: unknown): boolean {
  if (!(failure instanceof AgentFailure) || failure.wantsLogin) return false
  const { cause } = failure
  return cause instanceof RequestError && (cause.code === INVALID_PARAMS || /mcp/i.test(failure.message))
}

/**
 * The failure of a request that the agent refused.
 * @param login instructions for the login, shown when the agent needs one; undefined where they are unknown
 */
function refused(
  kind: FailureKind,
  subject: string | undefined,
  error: unknown,
  redact: Redact,
  login: string | undefined,
): AgentFailure {
  const wantsLogin = error instanceof RequestError && error.code === LOGIN_WANTED
  const message = `${subject === undefined ? '' : `${subject}: `}${describe(error, redact)}`
  const failure = new AgentFailure(kind, wantsLogin && login !== undefined ? `${message}; ${login}` : message, error)
  failure.wantsLogin = wantsLogin
  return failure
}

/** Words that mark a line as an error message. */
const TELLING =
  /(?:error|exception|fatal|panic|cannot|could not|unable|failed|failure|denied|invalid|unauthori[sz]ed|not found|no such|missing|required)/i
/** Lines that frame an error without its reason: stack frames, brackets, carets, the Node version at the end. */
const FRAME =
  /^\s*(?:at\s|\^|[{}[\]()~^,;|]*\s*$|Node\.js v|node:internal|code:\s|errno:|syscall:|requireStack|throw\s)/

/** The stderr line that best explains why a process ended; empty when there is none. */
function reasonIn(stderr: string): string {
  const lines = stderr
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '' && !FRAME.test(line))
  return lines.findLast(line => TELLING.test(line)) ?? lines.at(-1) ?? ''
}

/** Members of an error's `data` in which agents put the reason. */
const SPOKEN = ['message', 'details', 'detail', 'reason', 'error'] as const

/** The reason in the `data` of a JSON-RPC error; undefined when it has none. */
function reasonOf(data: unknown, depth = 0): string | undefined {
  if (typeof data === 'string') return data.trim() || undefined
  if (typeof data !== 'object' || data === null || depth > 2) return undefined
  for (const name of SPOKEN) {
    const reason = reasonOf((data as Record<string, unknown>)[name], depth + 1)
    if (reason !== undefined) return reason
  }
  return undefined
}
