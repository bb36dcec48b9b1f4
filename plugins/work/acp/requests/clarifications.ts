import { command } from '../../../../kernel/kit/commands/command-line.js'
import { type Clock, type Ids, iso, type Timer } from '../../../../kernel/plugin.js'
import type {
  AnswerClarificationBody,
  AnswerClarificationReply,
  AskClarificationReply,
  Clarification,
} from '../../../../schemas/sessions.js'
import { AcpErrors } from '../errors.js'
import { type ElicitationParams, type Field, fieldsOf, fieldValue, type PersonAnswer } from '../questions/form.js'
import type { EventContent } from './content.js'
import { bounded } from './question.js'

export { ElicitationParams } from '../questions/form.js'

/** Pending questions of one session, and remembered answered ones. */
const MAX_PENDING = 16
const MAX_REMEMBERED = 64

/** The response to the agent. */
export type ElicitationOutcome =
  | { readonly action: 'accept'; readonly content: Readonly<Record<string, unknown>> }
  | { readonly action: 'decline' | 'cancel' }

/** A question to the person of a session that does not come from its agent. */
export interface PutQuestion {
  /** The asking party, as the person sees it. */
  readonly by: string
  readonly question: string
  readonly choices?: readonly string[] | undefined
  readonly timeoutMs: number
  /** Withdraws the question. */
  readonly signal: AbortSignal
}

/** The end of a question: an answer of a person, a timeout, or the end of the turn. */
type End = { readonly by: 'person'; readonly answer: PersonAnswer } | { readonly by: 'timeout' | 'cancel' | 'declined' }

/** Default of `timeoutMs`: the timeout of the agent's questions. */
interface Asks extends Omit<PutQuestion, 'timeoutMs' | 'signal'> {
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
  /** Form of the answer, besides a choice or a text. */
  readonly form?: Pick<Clarification, 'type' | 'optional' | 'multiple' | 'position' | 'total'>
  /** Reason for which an answer is invalid; undefined: it is valid. */
  readonly problem?: (answer: PersonAnswer) => string | undefined
}

interface Waiting extends Clarification {
  readonly turnId: string
  readonly problem: Asks['problem']
  end(how: End): void
}

/** The session as its clarifications see it. */
export interface ClarificationContext {
  readonly sessionId: string
  readonly agentName: string
  readonly clock: Clock
  readonly ids: Ids
  /** Milliseconds that a question waits for a person; then the agent continues without an answer. */
  readonly timeoutMs: number
  turnId(): string | undefined
  record(turnId: string, content: EventContent): void
  /** Writes a warning into the journal. */
  warn(turnId: string, content: EventContent): void
  /** A question of this turn expired. */
  expired(turnId: string): void
}

/** The questions of an agent that a person answers in words, as opposed to permission requests. */
export class Clarifications {
  readonly #waiting = new Map<string, Waiting>()
  readonly #answered = new Set<string>()

  constructor(private readonly context: ClarificationContext) {}

  get pending(): readonly (Clarification & { readonly turnId: string })[] {
    return [...this.#waiting.values()].map(({ end: _end, problem: _problem, ...shown }) => shown)
  }

  /** `elicitation/create`: a form, whose fields are asked one after the other. @param signal withdraws it */
  async ask(params: ElicitationParams, signal?: AbortSignal): Promise<ElicitationOutcome> {
    const turnId = this.context.turnId()
    if (turnId === undefined) return { action: 'decline' }
    const fields = fieldsOf(params)
    if (typeof fields === 'string') return this.#refuse(turnId, fields)
    if (this.#waiting.size >= MAX_PENDING) return this.#refuse(turnId, `${MAX_PENDING} questions wait already`)
    if (fields.length === 0) return this.#confirm(turnId, params.message, signal)
    const content: Record<string, unknown> = {}
    for (const [at, field] of fields.entries()) {
      const question = wordsOf(params.message, field, at + 1, fields.length)
      const { how } = await this.#wait(turnId, { ...question, by: 'the agent', ...(signal && { signal }) })
      if (how.by !== 'person') return { action: how.by === 'cancel' ? 'cancel' : 'decline' }
      const answer = fieldValue(field, how.answer)
      if ('value' in answer && answer.value !== undefined) content[field.name] = answer.value
      if (this.context.turnId() !== turnId) return { action: 'cancel' }
    }
    return { action: 'accept', content }
  }

  /**
   * Asks a question that does not come from the agent; the reply has `fallback` after a timeout or the end of the turn. Throws
   * `clarification_idle` (409) without a running turn, whose stream would show the question, and `clarification_crowded` (409).
   */
  async put(question: PutQuestion): Promise<AskClarificationReply> {
    const turnId = this.context.turnId()
    if (turnId === undefined) throw AcpErrors.clarification_idle()
    if (this.#waiting.size >= MAX_PENDING) throw AcpErrors.clarification_crowded()
    const { how, request_id } = await this.#wait(turnId, question)
    if (how.by === 'person') {
      const { choices, text } = how.answer
      return { request_id, choice: choices?.[0] ?? null, text, fallback: false, resolved_by: 'person' }
    }
    const resolved_by = how.by === 'declined' ? 'person' : how.by
    return { request_id, choice: null, text: '', fallback: true, resolved_by }
  }

  /** A person's answer. Throws `clarification_not_found` (404), `clarification_answered` (409), `clarification_invalid` (400). */
  answer(id: string, body: AnswerClarificationBody): AnswerClarificationReply {
    const waiting = this.#waiting.get(id)
    if (!waiting)
      throw this.#answered.has(id) ? AcpErrors.clarification_answered() : AcpErrors.clarification_not_found()
    if (body.decline === true) {
      waiting.end({ by: 'declined' })
      return { choice: null, text: '', fallback: true }
    }
    const personAnswer = givenIn(waiting, body)
    const problem = waiting.problem?.(personAnswer)
    if (problem !== undefined) throw AcpErrors.clarification_invalid(problem)
    waiting.end({ by: 'person', answer: personAnswer })
    return { choice: personAnswer.choices?.[0] ?? null, text: personAnswer.text, fallback: false }
  }

  /** Cancels the pending questions of a turn that ends. */
  endTurn(): void {
    for (const waiting of [...this.#waiting.values()]) waiting.end({ by: 'cancel' })
  }

  /** A form without fields becomes a yes-or-no question. */
  async #confirm(turnId: string, question: string, signal: AbortSignal | undefined): Promise<ElicitationOutcome> {
    const asks = { by: 'the agent', question, choices: ['yes', 'no'], ...(signal && { signal }) }
    const { how } = await this.#wait(turnId, asks)
    if (how.by !== 'person') return { action: how.by === 'cancel' ? 'cancel' : 'decline' }
    const isYes = how.answer.choices?.[0] === 0 || how.answer.text.toLowerCase() === 'yes'
    return isYes ? { action: 'accept', content: {} } : { action: 'decline' }
  }

  /** Declines a question that cannot be shown, with a warning. */
  #refuse(turnId: string, why: string): ElicitationOutcome {
    const text = `a question of the agent was declined without being asked: ${why}`
    this.context.warn(turnId, { warning: 'clarification_declined', text })
    return { action: 'decline' }
  }

  #wait(
    turnId: string,
    { by, choices, timeoutMs = this.context.timeoutMs, signal, form = {}, problem, ...asks }: Asks,
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
        if (how.by === 'timeout') this.context.expired(turnId)
        for (const old of this.#answered) if (this.#answered.size > MAX_REMEMBERED) this.#answered.delete(old)
        const resolved_by = how.by === 'declined' ? 'person' : how.by
        record(turnId, { note: 'clarification', request_id, status: 'resolved', resolved_by, ...saidOf(how) })
        resolve({ how, request_id })
      }
      const listed = choices && { choices: [...choices] }
      const clarification = { request_id, question, session_id: sessionId, agent_name: agentName, ...listed, ...form }
      const deadline = iso(now + timeoutMs)
      this.#waiting.set(request_id, { ...clarification, asked_at: iso(now), deadline, turnId, problem, end })
      timer = clock.timeout(timeoutMs, () => end({ by: 'timeout' }), { unref: true })
      const among = choices ? ` (${choices.join(' / ')})` : ''
      const text = `${by} asks: ${question}${among}; answer it: ${command('session clarify', sessionId)}`
      const details = { status: 'pending', asked_by: by, question, ...listed, ...form, text, expires_at: deadline }
      record(turnId, { note: 'clarification', request_id, ...details })
      signal?.addEventListener('abort', withdraw, { once: true })
      if (signal?.aborted) withdraw()
    })
  }
}

/** A field of a form as a question. */
function wordsOf(message: string, field: Field, position: number, total: number): Omit<Asks, 'by'> {
  const { type, label, choices, isRequired } = field
  const labels = choices?.map(choice => choice.label)
  const isAlone = total === 1
  return {
    question: isAlone ? message : `${message}\n${label}`,
    ...(labels && { choices: labels }),
    form: {
      ...(type !== 'choice' && type !== 'choices' && { type }),
      ...(!isRequired && { optional: true }),
      ...(type === 'choices' && { multiple: true }),
      ...(!isAlone && { position, total }),
    },
    problem: reply => {
      const answer = fieldValue(field, reply)
      return 'problem' in answer ? answer.problem : undefined
    },
  }
}

/** Validates the answer of a person. Throws `clarification_invalid` (400). */
function givenIn(
  { choices = [], optional }: Clarification,
  { choice_index: index, choice_indexes: indexes, text = '', skip = false }: AnswerClarificationBody,
): PersonAnswer {
  const places = indexes ?? (index === null || index === undefined ? null : [index])
  if (skip) {
    if (optional !== true) throw AcpErrors.clarification_invalid('this question cannot be skipped')
    return { choices: null, text: '', isSkipped: true }
  }
  if (places === null) {
    if (text.trim() === '') throw AcpErrors.clarification_invalid('give choice_index or text')
    return { choices: null, text: text.trim(), isSkipped: false }
  }
  if (places.some(choiceIndex => choices[choiceIndex] === undefined)) {
    throw AcpErrors.clarification_invalid(`choice_index is 0 to ${choices.length - 1}`)
  }
  return { choices: places, text: places.map(choiceIndex => choices[choiceIndex]).join(', '), isSkipped: false }
}

/** The journal form of the end of a question. */
function saidOf(how: End): EventContent {
  if (how.by === 'declined') return { text: 'declined' }
  if (how.by !== 'person') return {}
  if (how.answer.isSkipped) return { text: 'skipped', answer: '' }
  const text = bounded(how.answer.text)
  return { text: `answered: ${text}`, answer: text }
}
