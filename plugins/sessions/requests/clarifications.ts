import * as v from 'valibot'
import { type Clock, type Ids, iso, type Timer } from '../../../kernel/plugin.js'
import type { AnswerClarificationBody, AnswerClarificationReply, Clarification } from '../../../schemas/sessions.js'
import { SessionErrors } from '../api.js'
import type { EventContent } from '../events.js'
import { bounded } from './question.js'

/** Questions of one session that wait at the same time, and answered ones that are remembered. */
const MAX_PENDING = 16
const MAX_REMEMBERED = 64
const MAX_CHOICES = 50

/** A question of one property; what is not of that form is not put to a person. */
const Property = v.object({
  type: v.optional(v.string()),
  enum: v.optional(v.array(v.string())),
  oneOf: v.optional(v.array(v.object({ const: v.string(), title: v.optional(v.string()) }))),
})
export const ElicitationParams = v.object({
  mode: v.optional(v.string()),
  message: v.string(),
  requestedSchema: v.optional(
    v.object({ properties: v.optional(v.record(v.string(), Property)), required: v.optional(v.array(v.string())) }),
  ),
})
export type ElicitationParams = v.InferOutput<typeof ElicitationParams>

/** What the agent is answered. */
export type ElicitationOutcome =
  | { readonly action: 'accept'; readonly content: Readonly<Record<string, unknown>> }
  | { readonly action: 'decline' | 'cancel' }

type Given = { readonly choice: number | null; readonly text: string }

/** How a question ends: by a person, by its deadline, or with its turn. */
type End = { readonly by: 'person'; readonly given: Given } | { readonly by: 'timeout' | 'cancel' }

interface Waiting extends Clarification {
  readonly turnId: string
  end(how: End): void
}

/** What clarifications need of their session. */
export interface ClarificationContext {
  readonly sessionId: string
  readonly agentName: string
  readonly clock: Clock
  readonly ids: Ids
  /** Milliseconds that a question waits for a person; then the agent goes on without an answer. */
  readonly timeoutMs: number
  turnId(): string | undefined
  record(turnId: string, content: EventContent): void
}

/** The questions that an agent puts to a person in words, beside those for permission. */
export class Clarifications {
  readonly #waiting = new Map<string, Waiting>()
  readonly #answered = new Set<string>()

  constructor(private readonly context: ClarificationContext) {}

  get pending(): readonly (Clarification & { readonly turnId: string })[] {
    return [...this.#waiting.values()].map(({ end: _end, ...shown }) => shown)
  }

  /** `elicitation/create`. */
  async ask({ mode = 'form', message, requestedSchema }: ElicitationParams): Promise<ElicitationOutcome> {
    const turnId = this.context.turnId()
    const { properties = {}, required = [] } = requestedSchema ?? {}
    const names = required.length > 0 ? required : Object.keys(properties)
    const [name, another] = names
    const property = name === undefined ? undefined : properties[name]
    if (mode !== 'form' || another !== undefined || turnId === undefined) return { action: 'decline' }
    if ((name !== undefined && !property) || this.#waiting.size >= MAX_PENDING) return { action: 'decline' }
    const values = valuesOf(property)
    const how = await this.#wait(
      turnId,
      message,
      values?.map(({ label }) => label),
    )
    if (how.by !== 'person') return { action: how.by === 'timeout' ? 'decline' : 'cancel' }
    if (name === undefined) return { action: 'accept', content: {} }
    const { choice, text } = how.given
    const value =
      choice === null
        ? (values?.find(one => one.label === text || one.value === text)?.value ?? text)
        : values?.[choice]?.value
    return { action: 'accept', content: { [name]: property?.type === 'boolean' ? value === 'true' : value } }
  }

  /** A person's answer. Throws `clarification_not_found` (404), `clarification_answered` (409), `clarification_invalid` (400). */
  answer(id: string, { choice_index: index = null, text = '' }: AnswerClarificationBody): AnswerClarificationReply {
    const waiting = this.#waiting.get(id)
    if (!waiting)
      throw this.#answered.has(id) ? SessionErrors.clarification_answered() : SessionErrors.clarification_not_found()
    const { choices } = waiting
    if (index === null && text.trim() === '') throw SessionErrors.clarification_invalid('give choice_index or text')
    if (index !== null && choices?.[index] === undefined) {
      throw SessionErrors.clarification_invalid(`choice_index is 0 to ${(choices?.length ?? 0) - 1}`)
    }
    const given = { choice: index, text: index === null ? text.trim() : (choices?.[index] ?? '') }
    waiting.end({ by: 'person', given })
    return { ...given, fallback: false }
  }

  /** The turn is over, or about to be. */
  endTurn(): void {
    for (const waiting of [...this.#waiting.values()]) waiting.end({ by: 'cancel' })
  }

  #wait(turnId: string, message: string, choices: readonly string[] | undefined): Promise<End> {
    const { clock, ids, sessionId, agentName, timeoutMs, record } = this.context
    const request_id = ids.id('clq')
    const question = bounded(message)
    const now = clock.now()
    return new Promise(resolve => {
      let timer: Timer | undefined
      const end = (how: End) => {
        if (!this.#waiting.delete(request_id)) return
        timer?.cancel()
        this.#answered.add(request_id)
        for (const old of this.#answered) if (this.#answered.size > MAX_REMEMBERED) this.#answered.delete(old)
        const said =
          how.by === 'person' ? { text: `answered: ${bounded(how.given.text)}`, answer: bounded(how.given.text) } : {}
        record(turnId, { note: 'clarification', request_id, status: 'resolved', resolved_by: how.by, ...said })
        resolve(how)
      }
      const asked = {
        request_id,
        question,
        session_id: sessionId,
        agent_name: agentName,
        ...(choices && { choices: [...choices] }),
      }
      const deadline = iso(now + timeoutMs)
      this.#waiting.set(request_id, { ...asked, asked_at: iso(now), deadline, turnId, end })
      timer = clock.timeout(timeoutMs, () => end({ by: 'timeout' }), { unref: true })
      const among = choices ? ` (${choices.join(' / ')})` : ''
      const text = `the agent asks: ${question}${among}; answer it: svc session clarify ${sessionId}`
      record(turnId, { note: 'clarification', request_id, status: 'pending', question, text, expires_at: deadline })
    })
  }
}

/** What can be chosen; undefined where a text is wanted. */
function valuesOf(property: v.InferOutput<typeof Property> | undefined) {
  const values =
    property?.oneOf?.map(({ const: value, title }) => ({ value, label: title ?? value })) ??
    property?.enum?.map(value => ({ value, label: value })) ??
    (property === undefined || property.type === 'boolean'
      ? [
          { value: 'true', label: 'yes' },
          { value: 'false', label: 'no' },
        ]
      : undefined)
  return values?.slice(0, MAX_CHOICES).map(({ value, label }) => ({ value, label: bounded(label, 200) }))
}
