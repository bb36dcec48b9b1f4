import { SkillShadowed } from './api.js'
import type { Candidate } from './candidate.js'
import type { K } from './needs.js'
import type { Resolved } from './resolve.js'

/** Remembered pairs of skills; beyond this all are reported again. */
const MAX_KNOWN = 20_000
/** Events per lookup. */
const MAX_EVENTS = 200

/** Remembers since when a skill shadows another one; each pair is reported once per run of the daemon. */
export class Shadows {
  /** Epoch milliseconds by the two paths. */
  readonly #since = new Map<string, number>()
  /** How often all times were forgotten; each time they change. */
  clears = 0

  constructor(private readonly kernel: K) {}

  /** Emits `skill.shadowed` for new pairs. */
  async notice(skills: readonly Resolved[]): Promise<void> {
    const found: { readonly loser: Candidate; readonly winner: Candidate }[] = []
    const now = this.kernel.clock.now()
    for (const { winner, shadowed } of skills) {
      for (const loser of shadowed) {
        const key = keyOf(loser, winner)
        if (this.#since.has(key)) continue
        if (this.#since.size >= MAX_KNOWN) {
          this.#since.clear()
          this.clears++
        }
        this.#since.set(key, now)
        found.push({ loser, winner })
      }
    }
    if (found.length === 0) return
    const { db, needs, actor } = this.kernel
    await db.tx(t => {
      for (const { loser, winner } of found.slice(0, MAX_EVENTS)) {
        const payload = {
          name: loser.name,
          path: loser.path,
          tier: loser.tier,
          winning_path: winner.path,
          winning_tier: winner.tier,
        }
        needs.events.emit(t, SkillShadowed, payload, { actor, subject: loser.name })
      }
    })
  }

  /** Epoch milliseconds; for the winner itself: now. */
  since(loser: Candidate, winner: Candidate): number {
    return this.#since.get(keyOf(loser, winner)) ?? this.kernel.clock.now()
  }
}

const keyOf = (loser: Candidate, winner: Candidate) => JSON.stringify([loser.path, winner.path])
