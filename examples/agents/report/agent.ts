import { statSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { Readable, Writable } from 'node:stream'
import {
  type AgentContext,
  agent,
  type ClientCapabilities,
  type InitializeResponse,
  methods,
  ndJsonStream,
  PROTOCOL_VERSION,
  type PromptRequest,
  type PromptResponse,
  RequestError,
} from '@agentclientprotocol/sdk'
import { newSession, remember, type Session, SessionStore, stateDirectory } from './sessions.js'
import { Turn } from './turn.js'

/** The state of one connection: what the client can do, and the sessions it has open. */
class ReportAgent {
  readonly #sessions = new Map<string, Session>()
  readonly #turns = new Set<Promise<unknown>>()
  #capabilities: ClientCapabilities = {}

  constructor(private readonly store: SessionStore) {}

  initialize(capabilities: ClientCapabilities = {}): InitializeResponse {
    this.#capabilities = capabilities
    return {
      protocolVersion: PROTOCOL_VERSION,
      agentInfo: { name: 'svc-report-agent', title: 'Workspace report', version: '1.0.0' },
      agentCapabilities: { loadSession: true },
      authMethods: [],
    }
  }

  create(cwd: string): Session {
    const session = newSession(requireDirectory(cwd))
    this.#sessions.set(session.id, session)
    this.store.save(session)
    return session
  }

  /** Opens a stored session again and replays it. The answer to `session/load` has to come after the last update. */
  async load(id: string, cwd: string, client: AgentContext): Promise<void> {
    requireDirectory(cwd)
    if (this.#sessions.get(id)?.running) throw turnRunning(id)
    const session = this.store.load(id, cwd)
    if (!session) throw RequestError.sessionNotFound(id)
    this.#sessions.set(id, session)
    for (const update of [...session.history]) {
      await client.notify(methods.client.session.update, { sessionId: id, update })
    }
  }

  async prompt(
    { sessionId, prompt }: PromptRequest,
    client: AgentContext,
    signal: AbortSignal,
  ): Promise<PromptResponse> {
    const session = this.#sessions.get(sessionId)
    if (!session) throw RequestError.sessionNotFound(sessionId)
    if (session.running) throw turnRunning(sessionId)
    requireDirectory(session.cwd)
    const controller = new AbortController()
    // Before the first await: a session/cancel that follows at once has to find the turn.
    session.running = controller
    session.turns++
    // The request itself can be cancelled as well, and the connection can close.
    signal.addEventListener('abort', () => controller.abort(), { once: true })
    if (signal.aborted) controller.abort()
    for (const content of prompt) {
      const isConversation = content.type === 'text' || content.type === 'resource_link'
      if (isConversation) remember(session.history, { sessionUpdate: 'user_message_chunk', content })
    }
    this.store.save(session)

    const turn = new Turn(client, this.#capabilities, session, controller).run(prompt)
    this.#turns.add(turn)
    try {
      return { stopReason: await turn }
    } catch (error) {
      if (controller.signal.aborted) return { stopReason: 'cancelled' }
      throw error
    } finally {
      delete session.running
      this.#turns.delete(turn)
      this.store.save(session)
    }
  }

  /** A notification, so there is nobody to tell when no turn runs. */
  cancel(sessionId: string): void {
    this.#sessions.get(sessionId)?.running?.abort()
  }

  async close(): Promise<void> {
    for (const { running } of this.#sessions.values()) running?.abort()
    await Promise.allSettled(this.#turns)
  }
}

function requireDirectory(cwd: string): string {
  if (!isAbsolute(cwd)) {
    throw RequestError.invalidParams({ code: 'cwd_not_absolute' }, 'cwd has to be an absolute path')
  }
  if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory()) {
    throw RequestError.invalidParams({ code: 'cwd_not_a_directory' }, 'cwd has to be a directory that exists')
  }
  return cwd
}

function turnRunning(sessionId: string): RequestError {
  const hint = 'a turn is running in this session; wait for its end or send session/cancel'
  return RequestError.invalidRequest({ code: 'turn_running', sessionId }, hint)
}

const reportAgent = new ReportAgent(new SessionStore(stateDirectory(process.env)))
const connection = agent({ name: 'svc-report-agent' })
  .onRequest(methods.agent.initialize, ({ params }) => reportAgent.initialize(params.clientCapabilities))
  .onRequest(methods.agent.session.new, ({ params }) => ({ sessionId: reportAgent.create(params.cwd).id }))
  .onRequest(methods.agent.session.load, async ({ params, client }) => {
    await reportAgent.load(params.sessionId, params.cwd, client)
    return {}
  })
  .onRequest(methods.agent.session.prompt, ({ params, client, signal }) => reportAgent.prompt(params, client, signal))
  // Handlers are tried in this order, one tick each: cancel after prompt, so that it cannot overtake one sent before it.
  .onNotification(methods.agent.session.cancel, ({ params }) => reportAgent.cancel(params.sessionId))
  // stdout belongs to the protocol; whatever there is to log goes to stderr.
  .connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>))

// The end of stdin closes the connection; the client is gone, and nobody else would end this process.
connection.closed.then(() => reportAgent.close()).then(() => process.exit(0))
