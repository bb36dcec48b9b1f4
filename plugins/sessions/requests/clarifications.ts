import * as v from 'valibot'
import { type Clock, type Ids, iso, type Timer } from '../../../kernel/plugin.js'
import type {
  AnswerClarificationBody,
  AnswerClarificationReply,
  AskClarificationReply,
  Clarification,
} from '../../../schemas/sessions.js'
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

/** A question that somebody beside the agent puts to the person of a session. */
export interface PutQuestion {
  /** Who asks, for the person. */
  readonly by: string
  readonly question: string
  readonly choices?: readonly string[] | undefined
  readonly timeoutMs: number
  /** Takes the question away. */
  readonly signal: AbortSignal
}

/** Without `timeoutMs`: as long as those of the agent. */
type Asks = Pick<PutQuestion, 'by' | 'question' | 'choices'> & Partial<PutQuestion>

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
    const labels = values?.map(({ label }) => label)
    const { how } = await this.#wait(turnId, { by: 'the agent', question: message, choices: labels })
    if (how.by !== 'person') return { action: how.by === 'timeout' ? 'decline' : 'cancel' }
    if (name === undefined) return { action: 'accept', content: {} }
    const { choice, text } = how.given
    const value =
      choice === null
        ? (values?.find(one => one.label === text || one.value === text)?.value ?? text)
        : values?.[choice]?.value
    return { action: 'accept', content: { [name]: property?.type === 'boolean' ? value === 'true' : value } }
  }

  /**
   * Puts a question of somebody else; `fallback` where nobody answered in time, or the turn ended. Throws `clarification_idle` (409)
   * where no turn runs in whose stream it could be shown, and `clarification_crowded` (409).
   */
  async put(question: PutQuestion): Promise<AskClarificationReply> {
    const turnId = this.context.turnId()
    if (turnId === undefined) throw SessionErrors.clarification_idle()
    if (this.#waiting.size >= MAX_PENDING) throw SessionErrors.clarification_crowded()
    const { how, request_id } = await this.#wait(turnId, question)
    if (how.by !== 'person') return { request_id, choice: null, text: '', fallback: true, resolved_by: how.by }
    return { request_id, ...how.given, fallback: false, resolved_by: 'person' }
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

  #wait(
    turnId: string,
    { by, choices, timeoutMs = this.context.timeoutMs, signal, ...asks }: Asks,
  ): Promise<{ how: End; request_id: string }> {
    const { clock, ids, sessionId, agentName, record } = this.context
    const request_id = ids.id('clq')
    const question = bounded(asks.question)
    const now = clock.now()
    return new Promise(resolve => {
      let timer: Timer | undefined
      const withdraw = () => end({ by: 'cancel' })
      const end = (how: End) => {
        if (!this.#waiting.delete(request_id)) return
        timer?.cancel()
        signal?.removeEventListener('abort', withdraw)
        this.#answered.add(request_id)
        for (const old of this.#answered) if (this.#answered.size > MAX_REMEMBERED) this.#answered.delete(old)
        const said =
          how.by === 'person' ? { text: `answered: ${bounded(how.given.text)}`, answer: bounded(how.given.text) } : {}
        record(turnId, { note: 'clarification', request_id, status: 'resolved', resolved_by: how.by, ...said })
        resolve({ how, request_id })
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
      const text = `${by} asks: ${question}${among}; answer it: svc session clarify ${sessionId}`
      const told = { status: 'pending', asked_by: by, question, text, expires_at: deadline }
      record(turnId, { note: 'clarification', request_id, ...told })
      signal?.addEventListener('abort', withdraw, { once: true })
      if (signal?.aborted) withdraw()
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
