import { command } from '../../../../kernel/kit/commands/command-line.js'
import { type Actor, iso } from '../../../../kernel/plugin.js'
import type { InboxQuestion } from '../../../../schemas/sessions.js'
import type { AskedQuestion, QuestionEnd, SessionsApi } from '../../sessions/api.js'
import type { K } from '../needs.js'
import type { Approvals, Status, Waiting } from './approvals.js'

/** A person's answer in a session's stream. */
type Decision = Parameters<Parameters<SessionsApi['ask']>[1]['decide']>[0]

const ENDS: { readonly [S in Status]: QuestionEnd } = {
  pending: 'withdrawn',
  approved: 'allowed',
  rejected: 'rejected',
  canceled: 'withdrawn',
  timed_out: 'expired',
}

/** Shows waiting calls among the questions of their session's agent, for the followers of the session to answer. */
export class Asking {
  readonly #shown = new Map<string, AskedQuestion>()

  /** @param decide applies a person's answer and ends the wait */
  constructor(
    private readonly needs: K['needs'],
    private readonly approvals: Approvals,
    private readonly decide: (waiting: Waiting, decision: Decision, actor: Actor) => Promise<void>,
  ) {}

  /** Shows a call during a turn of its session; again if the earlier turn is over. */
  show(waiting: Waiting): void {
    const { id, by, expiresAt } = waiting
    if (by.sessionId === undefined || this.#shown.get(id)?.isOpen()) return
    const question = this.needs.sessions.ask(by.sessionId, {
      id,
      kind: KIND,
      title: titleOf(waiting),
      expiresAt,
      decide: (decision, actor) => this.decide(waiting, decision, actor),
    })
    if (!question) return
    if (!this.#shown.has(id)) {
      this.approvals.onEnd(waiting, status => {
        this.#shown.get(id)?.end(ENDS[status])
        this.#shown.delete(id)
      })
    }
    this.#shown.set(id, question)
  }

  /** Calls without an open question in a stream, because their turn is over. */
  inbox(): InboxQuestion[] {
    return this.approvals.pending().flatMap(waiting => {
      const { id, by, since, expiresAt } = waiting
      const session = by.sessionId === undefined ? undefined : this.needs.sessions.get(by.sessionId)
      if (!session || this.#shown.get(id)?.isOpen()) return []
      return [
        {
          session_id: session.id,
          ...(session.name !== '' && { session_name: session.name }),
          agent_name: session.agentName,
          workspace_id: session.workspaceId,
          workspace_path: this.needs.workspaces.get(session.workspaceId)?.rootDir ?? '',
          interaction_id: id,
          turn_id: '',
          kind: KIND,
          title: titleOf(waiting),
          answer: command('tool approve', id),
          created_at: iso(since),
          expires_at: iso(expiresAt),
        },
      ]
    })
  }
}

const KIND = 'call'

const titleOf = ({ tool, input }: Waiting) => `${tool.id} (${tool.risk}) ${JSON.stringify(input)}`
