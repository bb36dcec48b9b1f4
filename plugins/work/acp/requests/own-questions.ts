import { type Actor, iso } from '../../../../kernel/plugin.js'
import { AcpErrors } from '../errors.js'
import { OWN_OPTIONS } from './options.js'
import type { AskedQuestion, QuestionEnd, SessionQuestion } from './own-question.js'
import type { PendingPermission, PermissionContext } from './permission-context.js'
import type { Decision } from './permission-rules.js'
import { bounded, questionContent, type WholeQuestion } from './question.js'

/** Maximum pending questions of one session. */
const MAX_WAITING = 16

/** Journal form of each end without a person's answer. */
const ENDS: { readonly [E in QuestionEnd]: { readonly decision: Decision | 'cancelled'; readonly by: string } } = {
  allowed: { decision: 'allow-once', by: 'person' },
  rejected: { decision: 'reject-once', by: 'person' },
  expired: { decision: 'reject-once', by: 'timeout' },
  withdrawn: { decision: 'cancelled', by: 'cancel' },
}

interface Waiting extends PendingPermission {
  readonly asker: SessionQuestion
  /** The person's answer, while the asking party handles it. */
  answer?: Decision | undefined
}

/** The daemon's own questions to a person of a session, shown and answered together with those of its agent. */
export class OwnQuestions {
  readonly #waiting = new Map<string, Waiting>()

  /** @param expired called with the turn of a question that timed out */
  constructor(
    private readonly context: Pick<PermissionContext, 'clock' | 'turnId' | 'record'>,
    private readonly expired: (turnId: string) => void,
  ) {}

  get pending(): readonly PendingPermission[] {
    return [...this.#waiting.values()]
  }

  has(id: string, turnId: string): boolean {
    return this.#waiting.get(id)?.turnId === turnId
  }

  /** Undefined without a running turn, whose stream would show the question, or with too many pending questions. */
  ask(question: SessionQuestion): AskedQuestion | undefined {
    const { clock, record } = this.context
    const turnId = this.context.turnId()
    if (turnId === undefined || this.#waiting.size >= MAX_WAITING) return undefined
    const { id, title, kind, expiresAt } = question
    const whole: WholeQuestion = { title, kind, command: undefined, paths: [], outside: [], diffs: [] }
    const waiting: Waiting = {
      asker: question,
      question: whole,
      requestId: id,
      turnId,
      createdAt: clock.now(),
      expiresAt,
      options: OWN_OPTIONS,
    }
    this.#waiting.set(id, waiting)
    const content = questionContent(id, undefined, whole, OWN_OPTIONS)
    record(turnId, { ...content, status: 'pending', expires_at: iso(expiresAt) })
    const isOpen = () => this.#waiting.get(id) === waiting
    return { isOpen, end: how => (isOpen() ? this.#end(waiting, how) : undefined) }
  }

  /** Passes a person's answer to the asking party, which ends the question; resolves to whether it was allowed. */
  async answer(id: string, decision: Decision, actor: Actor): Promise<boolean> {
    const waiting = this.#waiting.get(id)
    if (!waiting || waiting.answer) throw AcpErrors.permission_not_found()
    waiting.answer = decision
    try {
      await waiting.asker.decide(decision, actor)
      return decision.startsWith('allow')
    } finally {
      waiting.answer = undefined
    }
  }

  /** Withdraws all questions, because the stream of the turn has ended. */
  endTurn(): void {
    for (const waiting of [...this.#waiting.values()]) this.#end(waiting, 'withdrawn')
  }

  #end({ requestId, turnId, answer, question: { title, kind } }: Waiting, how: QuestionEnd): void {
    this.#waiting.delete(requestId)
    if (how === 'expired') this.expired(turnId)
    const { decision, by } = ENDS[how]
    const exact = answer?.split('-')[0] === decision.split('-')[0] ? answer : decision
    this.context.record(turnId, {
      request_id: requestId,
      title: bounded(title),
      kind,
      status: 'resolved',
      decision: exact,
      resolved_by: by,
    })
  }
}
