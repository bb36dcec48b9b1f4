import * as v from 'valibot'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import type { Recorded } from '../../../work/sessions/api.js'
import { AttentionAsked, AttentionExpired } from '../api.js'
import { oneLine } from '../dispatch/happening.js'
import type { K } from '../needs.js'

/** Journal entry of a question that waits for a person. */
const Pending = v.object({
  request_id: v.string(),
  status: v.literal('pending'),
  note: v.optional(v.string()),
  question: v.optional(v.string()),
  title: v.optional(v.string()),
  command: v.optional(v.string()),
})

/** The journal entry of an expired question. */
const Expired = v.object({ request_id: v.string(), resolved_by: v.literal('timeout') })

/** Writes events for questions of agents, which otherwise appear only in the journals of their sessions. */
export class QuestionEvents {
  constructor(private readonly kernel: K) {}

  recorded({ sessionId, content }: Recorded): Promise<void> | undefined {
    if (content.resolved_by === 'timeout' && v.is(Expired, content)) return this.#expired(sessionId, content.request_id)
    if (content.status !== 'pending' || !v.is(Pending, content)) return undefined
    const { request_id: id, note, question, title, command: commandText } = content
    const session = this.kernel.needs.sessions.current?.get(sessionId)
    if (!session) return undefined
    const isQuestion = note === 'clarification'
    const who = session.name || session.agentName
    const text = isQuestion ? `${who} asks: ${question}` : `${who} wants to: ${title}`
    const payload = {
      item_id: `question:${sessionId}:${id}`,
      kind: isQuestion ? ('question' as const) : ('permission' as const),
      title: oneLine(text, 200),
      ...(commandText !== undefined && commandText !== title && { detail: oneLine(commandText, 500) }),
      session_id: sessionId,
      agent_name: session.agentName,
      workspace_id: session.workspaceId,
      command: isQuestion
        ? command('session clarify', sessionId)
        : command('session approve', sessionId, '--request', id),
    }
    const about = { scope: session.workspaceId, subject: sessionId }
    return this.kernel.db.tx(t => void this.kernel.needs.events.emit(t, AttentionAsked, payload, about))
  }

  #expired(sessionId: string, id: string): Promise<void> | undefined {
    const { events, sessions } = this.kernel.needs
    const session = sessions.current?.get(sessionId)
    if (!session) return undefined
    const item = `question:${sessionId}:${id}`
    const announcement = events.latest({ name: AttentionAsked.name, subject: sessionId })?.payload as
      | { readonly item_id: string; readonly title: string }
      | undefined
    const payload = {
      item_id: item,
      title: announcement?.item_id === item ? announcement.title : `a question of ${session.name || session.agentName}`,
      session_id: sessionId,
      agent_name: session.agentName,
      workspace_id: session.workspaceId,
    }
    const about = { scope: session.workspaceId, subject: sessionId }
    return this.kernel.db.tx(t => void events.emit(t, AttentionExpired, payload, about))
  }
}
