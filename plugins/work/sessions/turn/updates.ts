import { isDeepStrictEqual } from 'node:util'
import * as v from 'valibot'
import { clip } from '../../../../kernel/kit/text.js'
import type { Redact } from '../../../../kernel/plugin.js'
import { AvailableCommands, type SessionUpdate, ToolCallFields, UpdateParams } from '../acp/schemas.js'
import { ENVELOPE_HEAD } from '../agent/briefing.js'
import { boundText, boundValue } from '../journal/bounds.js'
import type { SessionLog } from '../journal/session-log.js'
import { NO_USAGE, useOf, withEvent } from '../journal/usage.js'
import type { SessionHooks } from '../points.js'
import { type TerminalOutput, TerminalOutputs, withOutputs } from './terminal-output.js'
import type { ToolCall, ToolCalls } from './tool-calls.js'

/** Characters of one chunk of text that are kept. */
const MAX_CHUNK = 1024 * 1024
const MAX_COMMANDS = 200
/** A context that shrinks below this part of its size was compacted; a context below the minimum is too small to tell. */
const COMPACTED = 0.7
const MIN_CONTEXT = 2000
/** Words of an agent's program that are no part of an answer, though they come as one. */
const NOTICES: readonly RegExp[] = [/^\s*(?:Warning: )?Model metadata for .{1,300} not found\./]

/** A slash command that the agent offers. */
export interface AgentCommand {
  readonly name: string
  readonly description: string
  readonly input?: { readonly hint: string }
}

/** What updates belong to: the turn that runs, or the one that ran last when an agent says something afterwards. */
export interface UpdateTarget {
  readonly turnId: string
  readonly calls: ToolCalls
  /** Something came: its kind, and words for a person. */
  touched(kind: string, detail: string): void
  /** A tool call has its result. */
  toolEnded(call: ToolCall): void
}

/** Turns what an agent tells of its work into events; repetitions and what nobody needs are left out. */
export class Updates {
  commands: readonly AgentCommand[] = []
  /** A title that the agent gave to the session. */
  title: string | undefined
  readonly #printed = new TerminalOutputs()
  #plan: unknown
  #usage: unknown
  /** Tokens of the context of which the agent told last. */
  #context: number | undefined
  /** The message that the agent wrote last, where it tells one from another, and whether its line is over. */
  #message: { readonly id: unknown; readonly isEnded: boolean } | undefined

  constructor(
    private readonly owner: { readonly id: string; readonly log: SessionLog },
    private readonly context: {
      readonly kernel: { readonly redact: Pick<Redact, 'value'> }
      readonly points: Pick<SessionHooks, 'used'>
    },
    private readonly acpSessionId: () => string | undefined,
    /** What a terminal of the session printed. */
    private readonly outputOf: (terminalId: string) => TerminalOutput | undefined = () => undefined,
  ) {}

  /** Takes the parameters of one `session/update`. Never throws for what an agent sends. */
  take(params: unknown, target: UpdateTarget): void {
    const parsed = v.safeParse(UpdateParams, params)
    // Texts come in pieces, and secrets may be split between them: the log looks for these. All else is whole, and is cut later.
    if (parsed.success)
      this.#dispatch(
        isText(parsed.output.update) ? parsed.output.update : this.context.kernel.redact.value(parsed.output.update),
        target,
      )
    else target.touched('unknown', 'an update that cannot be read')
  }

  /** Tells of use alone, where nothing more can be written down: whoever holds the session to a limit has to know. */
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
        // Some name a session after the first text that they got, which is not the person's.
        if (typeof update.title === 'string' && !update.title.startsWith(ENVELOPE_HEAD))
          this.title = clip(update.title, 200)
        break
      default:
        target.touched(clip(update.sessionUpdate, 100), '')
    }
  }

  /** Ends what belongs to a turn: one event with the use of tokens, if the agent told of any. */
  endTurn(turnId: string): void {
    if (this.#usage !== undefined)
      this.owner.log.append({ type: 'usage', turnId, content: this.#content({ usage: this.#usage }) })
    this.#usage = undefined
    this.#plan = undefined
    this.#message = undefined
  }

  /** What an agent remembers only gets less when it is shortened: the protocol has no word for that. */
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
    // Blank text is nothing that a person sees.
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
      // Results are what a restart must not lose.
      const sync = event.type === 'tool_result'
      this.owner.log.append({ ...event, content: this.#content(event.content) }, { sync })
    }
    if (target.calls.ended) target.toolEnded(target.calls.ended)
    target.touched('tool_call', target.calls.get(parsed.output.toolCallId)?.title ?? '')
  }

  /** A call that is over, with what its terminals printed: afterwards they are released. */
  #withOutput(fields: ToolCallFields, calls: ToolCalls): ToolCallFields {
    if (fields.status !== 'completed' && fields.status !== 'failed') return fields
    const content = fields.content ?? calls.get(fields.toolCallId)?.fields.content
    const printed = withOutputs(content, id => this.outputOf(id) ?? this.#printed.get(id))
    // Secrets may have been split between pieces.
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
