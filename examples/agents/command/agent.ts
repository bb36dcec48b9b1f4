import { randomUUID } from 'node:crypto'
import { Readable, Writable } from 'node:stream'
import {
  type AgentContext,
  agent,
  methods,
  ndJsonStream,
  PROTOCOL_VERSION,
  type PromptRequest,
  type PromptResponse,
  RequestError,
} from '@agentclientprotocol/sdk'

/** Bytes of output that the client keeps: the end of it. */
const OUTPUT_LIMIT_BYTES = 256 * 1024
/** A script begins with the interpreter that runs it. */
const SCRIPT = /^#!(\/[\w./-]+)\n/

interface Session {
  readonly cwd: string
  running?: AbortController
}

/** Runs the shell script that a prompt is, in a terminal of the client, which may refuse it and keeps the output. */
class CommandAgent {
  readonly #sessions = new Map<string, Session>()
  #hasTerminals = false

  initialize(terminal: boolean | undefined) {
    this.#hasTerminals = terminal === true
    return {
      protocolVersion: PROTOCOL_VERSION,
      agentInfo: { name: 'svc-command-agent', title: 'Command', version: '1.0.0' },
      agentCapabilities: {},
      authMethods: [],
    }
  }

  create(cwd: string): string {
    const id = randomUUID()
    this.#sessions.set(id, { cwd })
    return id
  }

  async prompt(
    { sessionId, prompt }: PromptRequest,
    client: AgentContext,
    signal: AbortSignal,
  ): Promise<PromptResponse> {
    const session = this.#sessions.get(sessionId)
    if (!session) throw RequestError.sessionNotFound(sessionId)
    // Only the prompt itself counts: what else an agent is told does not begin with an interpreter.
    const script = prompt.map(block => (block.type === 'text' ? block.text : '')).findLast(text => SCRIPT.test(text))
    if (script === undefined)
      throw refused('command_missing', 'the prompt is no script; its first line has to name a shell, as #!/bin/sh does')
    if (!this.#hasTerminals) throw refused('terminal_missing', 'the client runs no commands')
    const controller = new AbortController()
    session.running = controller
    signal.addEventListener('abort', () => controller.abort(), { once: true })
    try {
      return await this.#run(sessionId, session, script, client, controller.signal)
    } finally {
      delete session.running
    }
  }

  cancel(sessionId: string): void {
    this.#sessions.get(sessionId)?.running?.abort()
  }

  async #run(
    sessionId: string,
    { cwd }: Session,
    script: string,
    client: AgentContext,
    signal: AbortSignal,
  ): Promise<PromptResponse> {
    const [, shell = '/bin/sh'] = SCRIPT.exec(script) ?? []
    const text = script.slice(script.indexOf('\n') + 1)
    const toolCallId = `run-${randomUUID()}`
    const update = (more: object) =>
      client.notify(methods.client.session.update, { sessionId, update: { toolCallId, ...more } as never })
    // What a script ends with is what it is for; a closing brace alone says nothing.
    const title = text.split('\n').findLast(line => /\w/.test(line)) ?? shell
    const head = { title: title.slice(0, 200), kind: 'execute', rawInput: { command: shell, args: ['-c', text] } }
    await update({ sessionUpdate: 'tool_call', status: 'pending', ...head })
    const terminal = await client
      .createTerminal({ sessionId, command: shell, args: ['-c', text], cwd, outputByteLimit: OUTPUT_LIMIT_BYTES })
      .catch(async error => {
        await update({ sessionUpdate: 'tool_call_update', status: 'failed' })
        throw refused('command_refused', error instanceof Error ? error.message : String(error))
      })
    const stop = () => void terminal.kill().catch(() => {})
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
    try {
      const content = [{ type: 'terminal', terminalId: terminal.id }]
      await update({ sessionUpdate: 'tool_call_update', status: 'in_progress', content })
      const { exitCode, signal: killed } = await terminal.waitForExit()
      const { output } = await terminal.currentOutput()
      await update({ sessionUpdate: 'tool_call_update', status: exitCode === 0 ? 'completed' : 'failed' })
      if (output !== '')
        await client.notify(methods.client.session.update, {
          sessionId,
          update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: output } },
        })
      if (signal.aborted) return { stopReason: 'cancelled' }
      if (exitCode !== 0) throw refused('command_failed', `the command ended with ${killed ?? `exit code ${exitCode}`}`)
      return { stopReason: 'end_turn' }
    } finally {
      await terminal.release().catch(() => {})
    }
  }
}

const refused = (code: string, message: string) => RequestError.internalError({ code }, message)

const commandAgent = new CommandAgent()
const connection = agent({ name: 'svc-command-agent' })
  .onRequest(methods.agent.initialize, ({ params }) => commandAgent.initialize(params.clientCapabilities?.terminal))
  .onRequest(methods.agent.session.new, ({ params }) => ({ sessionId: commandAgent.create(params.cwd) }))
  .onRequest(methods.agent.session.prompt, ({ params, client, signal }) => commandAgent.prompt(params, client, signal))
  // Handlers are tried in this order: cancel after prompt, so that it cannot overtake one that was sent before it.
  .onNotification(methods.agent.session.cancel, ({ params }) => commandAgent.cancel(params.sessionId))
  .connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>))

// The end of stdin closes the connection; the client is gone, and nothing else would end this process.
connection.closed.then(() => process.exit(0))
