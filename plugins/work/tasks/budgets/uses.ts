import type { SessionUse, SessionUses } from '../../sessions/api.js'
import type { Amounts } from './amounts.js'
import type { Hold } from './tables.js'

/** Maximum number of tokens counted per report, so that sums fit into a database integer. */
const MOST_TOKENS = 1e15

/** The dimensions that an agent has reported. */
export interface Told {
  readonly tokens: boolean
  readonly cost: boolean
}

/** The latest usage that agents reported, and what they reported in the current turn. */
export class AgentUses {
  readonly #last = new Map<string, SessionUse>()
  readonly #fresh = new Map<string, Told>()

  constructor(private readonly uses: () => Pick<SessionUses, 'of'>) {}

  get(session: string): SessionUse | undefined {
    return this.#last.get(session)
  }

  /** Loads the earlier usage of a session that is not known here. */
  async learn(session: string): Promise<void> {
    if (this.#last.has(session)) return
    const use = await this.uses().of(session)
    if (!this.#last.has(session)) this.#last.set(session, use)
  }

  note(session: string, use: SessionUse): void {
    const before = this.#last.get(session)
    // A report that omits a value leaves it unchanged.
    this.#last.set(session, { tokens: use.tokens ?? before?.tokens ?? null, cost: use.cost ?? before?.cost ?? null })
    const fresh = this.#fresh.get(session)
    this.#fresh.set(session, {
      tokens: fresh?.tokens === true || use.tokens !== null,
      cost: fresh?.cost === true || use.cost !== null,
    })
  }

  /** The usage of a lease holder since the last count. */
  since({ sessionId, told, countedAt }: Hold, now: number): Amounts {
    const use = this.get(sessionId) ?? told
    return {
      tokens: Math.min(MOST_TOKENS, grown(told.tokens, use.tokens)),
      cost: grown(told.cost, use.cost),
      wall_ms: Math.max(0, now - countedAt),
    }
  }

  /** The dimensions that the agent reported in the turn that has ended. */
  turnEnded(session: string): Told {
    const fresh = this.#fresh.get(session) ?? { tokens: false, cost: false }
    this.#fresh.delete(session)
    return fresh
  }

  forget(session: string): void {
    this.#last.delete(session)
    this.#fresh.delete(session)
  }
}

/** Growth of a reported counter. A smaller value means that the counter was reset. */
const grown = (before: number | null, now: number | null): number =>
  now === null ? 0 : before === null || now < before ? now : now - before
