import { type Actor, iso } from '../../../../kernel/plugin.js'
import { SessionErrors } from '../api.js'
import { OWN_OPTIONS } from './options.js'
import type { PendingPermission, PermissionContext } from './permission-context.js'
import type { Decision } from './permission-rules.js'
import { bounded, questionContent, type WholeQuestion } from './question.js'
import type { AskedQuestion, QuestionEnd, SessionQuestion } from './session-question.js'

/** Questions of one session that wait at the same time. */
const MAX_WAITING = 16

/** How an end is written down where no person's answer says it more exactly. */
const ENDS: { readonly [E in QuestionEnd]: { readonly decision: Decision | 'cancelled'; readonly by: string } } = {
  allowed: { decision: 'allow-once', by: 'person' },
  rejected: { decision: 'reject-once', by: 'person' },
  expired: { decision: 'reject-once', by: 'timeout' },
  withdrawn: { decision: 'cancelled', by: 'cancel' },
}

interface Waiting extends PendingPermission {
  readonly asker: SessionQuestion
  /** A person's answer on its way to whoever asked. */
  given?: Decision | undefined
}

/** Questions that the daemon puts to a person for a session, shown and answered beside those of its agent. */
export class OwnQuestions {
  readonly #waiting = new Map<string, Waiting>()

  /** @param expired called with the turn whose question nobody answered in time */
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

  /** Undefined where no turn runs, whose stream would show it, or where too many wait. */
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

  /** Hands a person's answer to whoever asked, which ends the question; resolves to whether it was allowed. */
  async answer(id: string, decision: Decision, actor: Actor): Promise<boolean> {
    const waiting = this.#waiting.get(id)
    if (!waiting || waiting.given) throw SessionErrors.permission_not_found()
    waiting.given = decision
    try {
      await waiting.asker.decide(decision, actor)
      return decision.startsWith('allow')
    } finally {
      waiting.given = undefined
    }
  }

  /** The turn is over: nobody follows it any more. */
  endTurn(): void {
    for (const waiting of [...this.#waiting.values()]) this.#end(waiting, 'withdrawn')
  }

  #end({ requestId, turnId, given, question: { title, kind } }: Waiting, how: QuestionEnd): void {
    this.#waiting.delete(requestId)
    if (how === 'expired') this.expired(turnId)
    const { decision, by } = ENDS[how]
    const exact = given?.split('-')[0] === decision.split('-')[0] ? given : decision
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
