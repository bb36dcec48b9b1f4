import type { SessionUse, SessionUses } from '../../sessions/api.js'
import type { Amounts } from './amounts.js'
import type { Hold } from './ledger.js'

/** Tokens that are counted of one word of an agent, at most: sums stay numbers that the database can hold. */
const MOST_TOKENS = 1e15

/** Of what an agent has told. */
export interface Told {
  readonly tokens: boolean
  readonly cost: boolean
}

/** What agents told last of their use, and of what in the turn that runs. */
export class AgentUses {
  readonly #last = new Map<string, SessionUse>()
  readonly #fresh = new Map<string, Told>()

  constructor(private readonly uses: () => Pick<SessionUses, 'of'>) {}

  get(session: string): SessionUse | undefined {
    return this.#last.get(session)
  }

  /** Asks for what a session of which nothing is known here has used before. */
  async learn(session: string): Promise<void> {
    if (this.#last.has(session)) return
    const use = await this.uses().of(session)
    if (!this.#last.has(session)) this.#last.set(session, use)
  }

  note(session: string, use: SessionUse): void {
    const before = this.#last.get(session)
    // What one word leaves out is what it was.
    this.#last.set(session, { tokens: use.tokens ?? before?.tokens ?? null, cost: use.cost ?? before?.cost ?? null })
    const fresh = this.#fresh.get(session)
    this.#fresh.set(session, {
      tokens: fresh?.tokens === true || use.tokens !== null,
      cost: fresh?.cost === true || use.cost !== null,
    })
  }

  /** What the holder of a run has used since that was counted last. */
  since({ sessionId, told, countedAt }: Hold, now: number): Amounts {
    const use = this.get(sessionId) ?? told
    return {
      tokens: Math.min(MOST_TOKENS, grown(told.tokens, use.tokens)),
      cost: grown(told.cost, use.cost),
      wall_ms: Math.max(0, now - countedAt),
    }
  }

  /** Of what the agent told in the turn that has ended. */
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

/** What was added to what an agent told; a count that became smaller began anew. */
const grown = (before: number | null, now: number | null): number =>
  now === null ? 0 : before === null || now < before ? now : now - before
