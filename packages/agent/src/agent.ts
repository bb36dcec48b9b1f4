import { statSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import {
  type AgentContext,
  type ClientCapabilities,
  type InitializeResponse,
  type McpServer,
  methods,
  PROTOCOL_VERSION,
  type PromptRequest,
  type PromptResponse,
  RequestError,
  type SessionConfigOption,
} from '@agentclientprotocol/sdk/unstable'
import { Endpoint } from './endpoint/endpoint.js'
import { EndpointFailure } from './endpoint/failures.js'
import { callsOf, mended, resultsOf, textOf } from './session/messages.js'
import { isMode, MODES } from './session/modes.js'
import { promptOf } from './session/prompt.js'
import { type Session, transcriptOf } from './session/session.js'
import { newSessionId, type Transcript, TranscriptStore } from './session/transcript-store.js'
import { Turn } from './session/turn.js'
import type { Settings } from './settings.js'
import { reasonOf, shortened } from './text.js'
import { McpServers } from './tools/mcp.js'

/** Milliseconds that opening a session waits for the list of models. */
const MODELS_MS = 1500
const MAX_MODEL = 256
const MAX_SESSIONS = 64

/** The working folders of a session and its MCP servers. */
export interface SessionLocation {
  readonly cwd: string
  readonly mcpServers?: readonly McpServer[] | null
  readonly additionalDirectories?: readonly string[] | null
}

/** The state of one connection: the capabilities of the client, and the open sessions. */
export class SvcAgent {
  readonly #sessions = new Map<string, Session>()
  readonly #turns = new Set<Promise<unknown>>()
  readonly #endpoint: Endpoint
  readonly #store: TranscriptStore
  #capabilities: ClientCapabilities = {}

  constructor(settings: Settings) {
    this.#endpoint = new Endpoint(settings)
    this.#store = new TranscriptStore(settings.stateFolder)
  }

  initialize(capabilities: ClientCapabilities = {}): InitializeResponse {
    this.#capabilities = capabilities
    return {
      protocolVersion: PROTOCOL_VERSION,
      agentInfo: { name: 'svc-agent', title: 'svc agent', version: '1.0.0' },
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { embeddedContext: true, image: true },
        mcpCapabilities: { http: true, sse: true },
        sessionCapabilities: { resume: {}, close: {}, fork: {} },
      },
      authMethods: [],
    }
  }

  async create(location: SessionLocation) {
    this.#store.removeOldest()
    const transcript = {
      id: newSessionId(),
      cwd: location.cwd,
      mode: 'ask',
      model: undefined,
      turns: 0,
      messages: [],
    } as const
    const session = await this.#open(transcript, location)
    this.#store.save(transcriptOf(session))
    return { sessionId: session.id, ...(await this.#offered(session)) }
  }

  /** Reopens a stored session. With a client, the conversation is replayed to it; the response must follow the last update. */
  async load(id: string, location: SessionLocation, client?: AgentContext) {
    if (this.#sessions.get(id)?.running) throw turnRunning(id)
    const stored = await this.#store.load(id)
    if (!stored) throw RequestError.sessionNotFound(id)
    await this.#sessions.get(id)?.mcp.close()
    const session = await this.#open({ ...stored, messages: mended(stored.messages) }, location)
    if (client) await replay(session, client)
    return this.#offered(session)
  }

  /** Opens a new session with a copy of this conversation, which may be open here or only stored. */
  async fork(id: string, location: SessionLocation) {
    const from = this.#sessions.get(id)
    if (from?.running) throw turnRunning(id)
    const stored = from ? transcriptOf(from) : await this.#store.load(id)
    if (!stored) throw RequestError.sessionNotFound(id)
    this.#store.removeOldest()
    const copy = { ...stored, id: newSessionId(), cwd: location.cwd, messages: mended(stored.messages) }
    const session = await this.#open(copy, location)
    this.#store.save(transcriptOf(session))
    return { sessionId: session.id, ...(await this.#offered(session)) }
  }

  async prompt({ sessionId, prompt }: PromptRequest, client: AgentContext, gone: AbortSignal): Promise<PromptResponse> {
    const session = this.#session(sessionId)
    if (session.running) throw turnRunning(sessionId)
    const controller = new AbortController()
    // Before the first await: a session/cancel that follows at once has to find the turn.
    session.running = controller
    session.turns++
    const cancel = () => controller.abort(new Error('cancelled'))
    gone.addEventListener('abort', cancel, { once: true })
    if (gone.aborted) cancel()
    const context = {
      client,
      capabilities: this.#capabilities,
      endpoint: this.#endpoint,
      controller,
      save: () => this.#store.save(transcriptOf(session)),
    }
    const turn = Promise.resolve().then(() => new Turn(context, session).run(promptOf(prompt)))
    this.#turns.add(turn)
    try {
      return { stopReason: await turn }
    } catch (error) {
      if (controller.signal.aborted) return { stopReason: 'cancelled' }
      throw refusal(error)
    } finally {
      gone.removeEventListener('abort', cancel)
      session.running = undefined
      this.#turns.delete(turn)
    }
  }

  /** A notification has no reply: without a running turn it does nothing. */
  cancel(sessionId: string): void {
    this.#sessions.get(sessionId)?.running?.abort(new Error('cancelled'))
  }

  setMode(sessionId: string, modeId: string): void {
    const session = this.#session(sessionId)
    if (!isMode(modeId)) {
      const known = MODES.map(({ id }) => id).join(', ')
      throw RequestError.invalidParams({ code: 'mode_unknown' }, `unknown mode; available modes: ${known}`)
    }
    session.mode = modeId
    this.#store.save(transcriptOf(session))
  }

  /** Accepts any name: only the endpoint knows whether the model exists, and its error appears in the next turn. */
  async setModel(sessionId: string, model: unknown): Promise<{ configOptions: SessionConfigOption[] }> {
    const session = this.#session(sessionId)
    if (typeof model !== 'string' || model.trim() === '' || model.length > MAX_MODEL) {
      throw RequestError.invalidParams({ code: 'model_invalid' }, `a model is a text of 1 to ${MAX_MODEL} characters`)
    }
    session.model = model
    session.blind = false
    session.counted = 0
    this.#store.save(transcriptOf(session))
    const { configOptions } = await this.#offered(session)
    return { configOptions }
  }

  async closeSession(sessionId: string): Promise<void> {
    const session = this.#session(sessionId)
    session.running?.abort(new Error('cancelled'))
    this.#sessions.delete(sessionId)
    await session.mcp.close()
  }

  /** Cancels all turns and closes all MCP servers. */
  async close(): Promise<void> {
    for (const { running } of this.#sessions.values()) running?.abort(new Error('cancelled'))
    await Promise.allSettled(this.#turns)
    await Promise.all([...this.#sessions.values()].map(({ mcp }) => mcp.close()))
  }

  #session(id: string): Session {
    const session = this.#sessions.get(id)
    if (!session) throw RequestError.sessionNotFound(id)
    return session
  }

  async #open(transcript: Transcript, location: SessionLocation): Promise<Session> {
    if (this.#sessions.size >= MAX_SESSIONS && !this.#sessions.has(transcript.id)) {
      throw RequestError.invalidRequest({ code: 'too_many_sessions' }, `${MAX_SESSIONS} sessions are open; close one`)
    }
    const cwd = await folderOf(location.cwd)
    const more = await Promise.all((location.additionalDirectories ?? []).slice(0, 64).map(folderOf))
    const session: Session = {
      ...transcript,
      cwd,
      roots: [...new Set([cwd, ...more])],
      messages: [...transcript.messages],
      blind: false,
      counted: 0,
      read: new Map(),
      decisions: new Map(),
      mcp: new McpServers(location.mcpServers ?? [], cwd),
      running: undefined,
    }
    this.#sessions.set(session.id, session)
    return session
  }

  /** Modes, and the models in both forms that clients support. */
  async #offered(session: Session) {
    const late = new Promise<readonly []>(resolve => setTimeout(resolve, MODELS_MS, []).unref())
    const listed = await Promise.race([this.#endpoint.models(), late])
    const current = session.model ?? (await this.#endpoint.modelName(undefined).catch(() => undefined))
    const ids = [...new Set([...(current === undefined ? [] : [current]), ...listed.map(({ id }) => id)])]
    const option: SessionConfigOption = {
      id: 'model',
      name: 'Model',
      category: 'model',
      type: 'select',
      currentValue: current ?? '',
      options: ids.map(id => ({ value: id, name: id })),
    }
    return {
      modes: { currentModeId: session.mode, availableModes: [...MODES] },
      configOptions: current === undefined ? [] : [option],
      ...(current !== undefined && {
        models: { currentModelId: current, availableModels: ids.map(id => ({ modelId: id, name: id })) },
      }),
    }
  }
}

async function folderOf(folder: string): Promise<string> {
  if (!isAbsolute(folder))
    throw RequestError.invalidParams({ code: 'cwd_not_absolute' }, 'cwd has to be an absolute path')
  const canonical = await realpath(folder).catch(() => undefined)
  if (canonical === undefined || !statSync(canonical).isDirectory()) {
    throw RequestError.invalidParams({ code: 'cwd_not_a_directory' }, 'cwd has to be a folder that exists')
  }
  return canonical
}

/** Replays the messages and tool calls of a loaded session to a client. */
async function replay({ id, messages }: Session, client: AgentContext): Promise<void> {
  const tell = (update: object) =>
    client.notify(methods.client.session.update, { sessionId: id, update } as Parameters<typeof client.notify>[1])
  const results = new Map(messages.flatMap(message => resultsOf(message).map(each => [each.id, each.text] as const)))
  for (const message of messages) {
    const text = textOf(message)
    const sessionUpdate = message.role === 'user' ? 'user_message_chunk' : 'agent_message_chunk'
    if (text !== '') await tell({ sessionUpdate, content: { type: 'text', text } })
    for (const { toolCallId, toolName } of callsOf(message)) {
      const content = { type: 'text', text: shortened(results.get(toolCallId) ?? '', 4000) }
      await tell({
        sessionUpdate: 'tool_call',
        toolCallId,
        title: toolName,
        status: 'completed',
        content: [{ type: 'content', content }],
      })
    }
  }
}

function turnRunning(sessionId: string): RequestError {
  const hint = 'a turn is running in this session; wait for its end or send session/cancel'
  return RequestError.invalidRequest({ code: 'turn_running', sessionId }, hint)
}

/** The error of a failed turn for the client: a readable message and the problem code. */
function refusal(error: unknown): RequestError {
  if (error instanceof RequestError) return error
  if (!(error instanceof EndpointFailure)) return new RequestError(-32603, `the agent failed: ${reasonOf(error)}`)
  const wantsLogin = error.problem === 'unauthorized'
  return new RequestError(wantsLogin ? -32000 : -32603, error.message, { code: error.problem })
}
