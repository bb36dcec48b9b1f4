import {
  type AgentContext,
  methods,
  type PlanEntryStatus,
  type SessionUpdate,
  type ToolCall,
  type ToolCallContent,
} from '@agentclientprotocol/sdk'
import { remember, type Session } from './sessions.js'

/** What the client sees of a turn: every update goes out at once and, if a later load needs it, into the history. */
export class Transcript {
  constructor(
    private readonly client: AgentContext,
    private readonly session: Session,
  ) {}

  /** Ends with a blank line, for clients join the chunks of a turn into one text. */
  say(text: string): Promise<void> {
    return this.send({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: `${text}\n\n` } })
  }

  /** A plan update always carries all entries; those before `current` are done. */
  plan(steps: readonly string[], current: number): Promise<void> {
    const statusOf = (index: number): PlanEntryStatus => {
      return index < current ? 'completed' : index === current ? 'in_progress' : 'pending'
    }
    const entries = steps.map((content, index) => ({ content, priority: 'medium' as const, status: statusOf(index) }))
    return this.send({ sessionUpdate: 'plan', entries })
  }

  async open(head: Omit<ToolCall, 'status'>): Promise<OpenToolCall> {
    await this.send({ sessionUpdate: 'tool_call', ...head, status: 'pending' })
    return new OpenToolCall(this, head)
  }

  async send(update: SessionUpdate): Promise<void> {
    remember(this.session.history, update)
    await this.client.notify(methods.client.session.update, { sessionId: this.session.id, update })
  }
}

/** A tool call on its way: pending, in_progress, then completed or failed. */
export class OpenToolCall {
  #content: ToolCallContent[]

  constructor(
    private readonly transcript: Transcript,
    readonly head: Omit<ToolCall, 'status'>,
  ) {
    this.#content = head.content ?? []
  }

  begin(...content: ToolCallContent[]): Promise<void> {
    return this.#update('in_progress', content)
  }

  end(status: 'completed' | 'failed', text: string): Promise<void> {
    return this.#update(status, [{ type: 'content', content: { type: 'text', text } }])
  }

  /** The content of an update replaces the one before, so each carries all there is. */
  #update(status: 'in_progress' | 'completed' | 'failed', added: ToolCallContent[]): Promise<void> {
    this.#content = [...this.#content, ...added]
    const { toolCallId } = this.head
    return this.transcript.send({ sessionUpdate: 'tool_call_update', toolCallId, status, content: this.#content })
  }
}
