import { isDeepStrictEqual } from 'node:util'
import * as v from 'valibot'
import { clip } from '../../../../kernel/kit/text.js'
import type { Redact } from '../../../../kernel/plugin.js'
import {
  AvailableCommands,
  type SessionUpdate,
  type TerminalOutput,
  TerminalOutputs,
  ToolCallFields,
  UpdateParams,
  withOutputs,
} from '../../acp/api.js'
import { ENVELOPE_HEAD } from '../agent/launch.js'
import { boundText, boundValue } from '../journal/bounds.js'
import type { SessionLog } from '../journal/session-log.js'
import { NO_USAGE, useOf, withEvent } from '../journal/usage.js'
import type { SessionHooks } from '../points.js'
import type { ToolCall, ToolCalls } from './tool-calls.js'

/** Characters kept of one text chunk. */
const MAX_CHUNK = 1024 * 1024
const MAX_COMMANDS = 200
/** A context that shrinks below this share of its size was compacted; below the minimum a context is too small to tell. */
const COMPACTED = 0.7
const MIN_CONTEXT = 2000
/** Notices of agent programs that arrive as part of an answer. */
const NOTICES: readonly RegExp[] = [/^\s*(?:Warning: )?Model metadata for .{1,300} not found\./]

/** A slash command that the agent offers. */
export interface AgentCommand {
  readonly name: string
  readonly description: string
  readonly input?: { readonly hint: string }
}

/** The turn of an update: the running one, or the last one when an agent sends updates afterwards. */
export interface UpdateTarget {
  readonly turnId: string
  readonly calls: ToolCalls
  /** Called for each activity, with its kind and words for a person. */
  touched(kind: string, detail: string): void
  /** A tool call has its result. */
  toolEnded(call: ToolCall): void
}

/** Turns updates of an agent into events; repetitions and updates without a reader are left out. */
export class Updates {
  commands: readonly AgentCommand[] = []
  /** The title that the agent gave to the session. */
  title: string | undefined
  readonly #printed = new TerminalOutputs()
  #plan: unknown
  #usage: unknown
  /** Last reported tokens of the context. */
  #context: number | undefined
  /** The message of the last chunk, where the agent tells messages apart, and whether its line has ended. */
  #message: { readonly id: unknown; readonly isEnded: boolean } | undefined

  constructor(
    private readonly owner: { readonly id: string; readonly log: SessionLog },
    private readonly context: {
      readonly kernel: { readonly redact: Pick<Redact, 'value'> }
      readonly points: Pick<SessionHooks, 'used'>
    },
    private readonly acpSessionId: () => string | undefined,
    /** Output of a terminal of the session. */
    private readonly outputOf: (terminalId: string) => TerminalOutput | undefined = () => undefined,
  ) {}

  /** Processes the parameters of one `session/update`. Never throws for input of an agent. */
  take(params: unknown, target: UpdateTarget): void {
    const parsed = v.safeParse(UpdateParams, params)
    // Text arrives in chunks that may split a secret, so the log redacts it. All other values are whole; they are cut later.
    if (parsed.success)
      this.#dispatch(
        isText(parsed.output.update) ? parsed.output.update : this.context.kernel.redact.value(parsed.output.update),
        target,
      )
    else target.touched('unknown', 'an update that cannot be read')
  }

  /** Reports usage when the journal is full: token and cost limits still need it. */
  count(params: unknown): void {
    const parsed = v.safeParse(UpdateParams, params)
    if (parsed.success && parsed.output.update.sessionUpdate === 'usage_update') this.#tellUse(parsed.output.update)
  }

  #dispatch(update: SessionUpdate, target: UpdateTarget): void {
    switch (update.sessionUpdate) {
      case 'agent_message_chunk':
        this.#text('agent_message', update, target)
        break
      case 'agent_thought_chunk':
        this.#text('thought', update, target)
        break
      case 'tool_call':
      case 'tool_call_update':
        this.#toolCall(update, target)
        break
      case 'plan':
        this.#planned(update, target)
        break
      case 'usage_update':
        this.#used(update, target)
        target.touched('usage', '')
        break
      case 'available_commands_update':
        this.#offered(update)
        break
      case 'session_info_update':
        // Some agents derive the title from the first text, which is the envelope and not the person's prompt.
        if (typeof update.title === 'string' && !update.title.startsWith(ENVELOPE_HEAD))
          this.title = clip(update.title, 200)
        break
      default:
        target.touched(clip(update.sessionUpdate, 100), '')
    }
  }

  /** Writes the token usage of a turn as one event, if the agent reported any. */
  endTurn(turnId: string): void {
    if (this.#usage !== undefined)
      this.owner.log.append({ type: 'usage', turnId, content: this.#content({ usage: this.#usage }) })
    this.#usage = undefined
    this.#plan = undefined
    this.#message = undefined
  }

  /** ACP has no update for a compaction; a context that shrinks is the only sign. */
  #used({ used, size, cost }: SessionUpdate, { turnId }: UpdateTarget): void {
    this.#tellUse({ used, size, cost })
    const before = this.#context
    if (typeof used === 'number') this.#context = used
    if (typeof used === 'number' && before !== undefined && before >= MIN_CONTEXT && used < before * COMPACTED) {
      const content = {
        before,
        after: used,
        reason: 'agent',
        strategy: 'agent',
        text: 'the agent has shortened its context',
      }
      this.owner.log.append({ type: 'session.compaction_fired', turnId, content: this.#content(content) })
    }
    this.#usage = boundValue({ used, size, cost })
  }

  #tellUse({ used, size, cost }: Readonly<Record<string, unknown>>): void {
    const { used: reported } = this.context.points
    if (!reported.isUsed()) return
    const usage = boundValue({ used, size, cost })
    void reported.call(this.owner.id, useOf(withEvent(NO_USAGE, { type: 'usage', content: { usage } })))
  }

  #text(type: 'agent_message' | 'thought', update: SessionUpdate, target: UpdateTarget): void {
    const { content } = update
    const block = typeof content === 'object' && content !== null ? (content as Record<string, unknown>) : {}
    const isPlain = typeof block.text === 'string' && (block.type === 'text' || block.type === undefined)
    if (!isPlain) {
      this.owner.log.append({ type, turnId: target.turnId, content: this.#content({ block: boundValue(block) }) })
      target.touched(type, '')
      return
    }
    const text = boundText(String(block.text), MAX_CHUNK)
    if (type === 'agent_message' && NOTICES.some(notice => notice.test(text))) {
      const content = { warning: 'agent_notice', text: text.trim() }
      this.owner.log.append({ type: 'runtime_warning', turnId: target.turnId, content: this.#content(content) })
      target.touched('notice', '')
      return
    }
    const between = type === 'agent_message' ? this.#between(update.messageId, text) : ''
    this.owner.log.appendText(type, target.turnId, between + text, this.#content({}))
    // Blank text is not visible to a person.
    target.touched(text.trim() === '' ? 'blank' : type, '')
  }

  /** Separator of two consecutive messages, which would otherwise share a line. */
  #between(id: unknown, text: string): string {
    const before = this.#message
    if (text !== '') this.#message = { id, isEnded: text.endsWith('\n') }
    const isOther = before !== undefined && id !== undefined && id !== null && before.id !== id
    return isOther && !before.isEnded && text !== '' ? '\n\n' : ''
  }

  #toolCall(update: SessionUpdate, target: UpdateTarget): void {
    const parsed = v.safeParse(ToolCallFields, update)
    if (!parsed.success) {
      target.touched('tool_call', 'a tool call without an id')
      return
    }
    // Text after a tool call begins a new line.
    this.#message = undefined
    this.#printed.note(update._meta)
    const events = target.calls.take(target.turnId, this.#withOutput(parsed.output, target.calls))
    for (const event of events) {
      // A restart must not lose results.
      const sync = event.type === 'tool_result'
      this.owner.log.append({ ...event, content: this.#content(event.content) }, { sync })
    }
    if (target.calls.ended) target.toolEnded(target.calls.ended)
    target.touched('tool_call', target.calls.get(parsed.output.toolCallId)?.title ?? '')
  }

  /** A finished call with the output of its terminals, which may be released afterwards. */
  #withOutput(fields: ToolCallFields, calls: ToolCalls): ToolCallFields {
    if (fields.status !== 'completed' && fields.status !== 'failed') return fields
    const content = fields.content ?? calls.get(fields.toolCallId)?.fields.content
    const printed = withOutputs(content, id => this.outputOf(id) ?? this.#printed.get(id))
    // Chunks of output may have split a secret.
    return printed ? { ...fields, content: this.context.kernel.redact.value(printed) } : fields
  }

  #planned(update: SessionUpdate, target: UpdateTarget): void {
    const entries = boundValue(update.entries)
    target.touched('plan', '')
    if (isDeepStrictEqual(entries, this.#plan)) return
    this.#plan = entries
    this.owner.log.append({ type: 'plan', turnId: target.turnId, content: this.#content({ entries }) })
  }

  #offered(update: SessionUpdate): void {
    const parsed = v.safeParse(AvailableCommands, update)
    if (!parsed.success) return
    this.commands = (parsed.output.availableCommands ?? [])
      .slice(0, MAX_COMMANDS)
      .map(({ name, description, input }) => ({
        name: clip(name, 200),
        description: clip(description, 1000),
        ...(input && { input: { hint: clip(input.hint, 200) } }),
      }))
  }

  #content(content: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
    const id = this.acpSessionId()
    return id === undefined ? content : { session_id: id, ...content }
  }
}

const isText = ({ sessionUpdate }: SessionUpdate): boolean =>
  sessionUpdate === 'agent_message_chunk' || sessionUpdate === 'agent_thought_chunk'
