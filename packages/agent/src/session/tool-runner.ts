import {
  type AgentContext,
  type ClientCapabilities,
  methods,
  type PermissionOption,
  type RequestPermissionRequest,
  type SessionUpdate,
  type ToolCallContent,
  type ToolCallLocation,
} from '@agentclientprotocol/sdk/unstable'
import type { WantedCall } from '../endpoint/model-call.js'
import { reasonOf, shortened } from '../text.js'
import type { Input, Tool, ToolContext, ToolResult } from '../tools/tool.js'
import { runCommand } from '../workspace/command.js'
import { Files } from '../workspace/files.js'
import { Refused } from '../workspace/paths.js'
import { boundedInput } from './messages.js'
import type { Session } from './session.js'

/** Characters of a result or of arguments that the client is shown. */
const MAX_SHOWN = 16_000

const OPTIONS: readonly PermissionOption[] = [
  { optionId: 'allow-once', name: 'Allow once', kind: 'allow_once' },
  { optionId: 'allow-always', name: 'Allow for this session', kind: 'allow_always' },
  { optionId: 'reject-once', name: 'Reject once', kind: 'reject_once' },
  { optionId: 'reject-always', name: 'Reject for this session', kind: 'reject_always' },
]

/** The result of a call, for the turn. */
export interface CallResult extends ToolResult {
  /** The call was not carried out. */
  readonly refused: boolean
  /** The call may have changed something. */
  readonly changed: boolean
}

/** Runs the calls of one turn and reports each to the client. */
export class ToolRunner {
  readonly #files: Files

  constructor(
    private readonly client: AgentContext,
    private readonly capabilities: ClientCapabilities,
    private readonly session: Session,
    private readonly controller: AbortController,
    private readonly maxOutput: number,
  ) {
    this.#files = new Files(client, capabilities, session.id, session.roots, session.read, controller.signal)
  }

  /** Rejects only with the reason of the signal. The call is closed at the client in every case. */
  async run(tool: Tool | undefined, call: WantedCall): Promise<CallResult> {
    const input = (typeof call.input === 'object' && call.input !== null ? call.input : {}) as Input
    const kind = tool?.kind ?? 'other'
    const head = {
      toolCallId: call.id,
      title: shortened(tool?.title(input) ?? `Unknown tool ${call.name}`, 240),
      kind,
      // Clients look for the name of a shell command's member.
      rawInput: boundedInput(input, MAX_SHOWN),
    }
    await this.#update({ sessionUpdate: 'tool_call', ...head, status: 'pending' })
    let shown: ToolCallContent[] = []
    let locations: ToolCallLocation[] = []
    const end = (status: 'completed' | 'failed', text: string) => {
      const content = { type: 'content' as const, content: { type: 'text' as const, text: shortened(text, MAX_SHOWN) } }
      // A diff already shows a completed edit; a refused edit must not look as if it had been made.
      const isDiff = status === 'completed' && shown.some(({ type }) => type === 'diff')
      const kept = isDiff ? shown : [content]
      return this.#update({ sessionUpdate: 'tool_call_update', toolCallId: call.id, status, content: kept })
    }
    try {
      if (call.problem !== undefined || !tool) throw new Refused(call.problem ?? 'there is no such tool')
      const show: ToolContext['show'] = async update => {
        shown = update.content ?? shown
        locations = update.locations ?? locations
        await this.#update({ sessionUpdate: 'tool_call_update', toolCallId: call.id, status: 'in_progress', ...update })
      }
      const result = await tool.run(input, {
        files: this.#files,
        signal: this.#signal,
        maxOutput: this.maxOutput,
        show,
        allowed: subject => this.#allowed(subject, { ...head, content: shown, locations }),
        plan: entries => this.#update({ sessionUpdate: 'plan', entries }),
        run: (line, timeoutMs) =>
          runCommand({
            client: this.client,
            capabilities: this.capabilities,
            sessionId: this.session.id,
            line,
            cwd: this.session.cwd,
            timeoutMs,
            signal: this.#signal,
            started: terminalId => show({ content: [{ type: 'terminal', terminalId }] }),
          }),
      })
      this.#signal.throwIfAborted()
      await end(result.failed ? 'failed' : 'completed', result.text)
      return { ...result, refused: false, changed: kind === 'edit' || kind === 'other' }
    } catch (error) {
      if (this.#signal.aborted) {
        await end('failed', 'cancelled').catch(() => {})
        throw this.#signal.reason
      }
      const text = `not done: ${reasonOf(error)}`
      await end('failed', text)
      return { text, failed: true, refused: true, changed: false }
    }
  }

  get #signal(): AbortSignal {
    return this.controller.signal
  }

  /**
   * Asks the client if the mode requires it; a client that cannot ask allows nothing.
   * @throws {Refused} Unless the mode or the person allows it.
   */
  async #allowed(subject: string, toolCall: { readonly toolCallId: string } & Record<string, unknown>): Promise<void> {
    if (this.session.mode === 'plan') {
      throw new Refused('this is plan mode: nothing may be changed or run. Describe what you would do instead')
    }
    if (this.session.mode === 'auto') return
    let decision = this.session.decisions.get(subject)
    if (decision === undefined) {
      const params: RequestPermissionRequest = { sessionId: this.session.id, toolCall, options: [...OPTIONS] }
      const cancellable = { cancellationSignal: this.#signal, stopWaitingOnCancel: true }
      const { outcome } = await this.client
        .request(methods.client.session.requestPermission, params, cancellable)
        .catch(error => {
          this.#signal.throwIfAborted()
          throw new Refused(`no one could be asked: ${reasonOf(error)}`)
        })
      // The client answers `cancelled` when the person cancels the turn, and this may arrive before session/cancel.
      if (outcome.outcome === 'cancelled') this.controller.abort(new Error('cancelled'))
      this.#signal.throwIfAborted()
      // Checked by kind: an option that was not offered allows nothing.
      const chosen = outcome.outcome === 'selected' ? outcome.optionId : ''
      const kind = OPTIONS.find(({ optionId }) => optionId === chosen)?.kind ?? 'reject_once'
      decision = kind.startsWith('allow') ? 'allowed' : 'rejected'
      if (kind.endsWith('always')) this.session.decisions.set(subject, decision)
    }
    if (decision === 'rejected') throw new Refused('the person refused it; ask how to continue, or skip it')
  }

  #update(update: SessionUpdate): Promise<void> {
    return this.client.notify(methods.client.session.update, { sessionId: this.session.id, update })
  }
}
