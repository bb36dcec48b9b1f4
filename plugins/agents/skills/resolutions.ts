import type { SkillView } from './api.js'
import type { Candidate } from './candidate.js'
import { type Resolved, type ResolveFacts, resolve } from './resolve.js'

/** Views whose skills are kept; the least recently used one is dropped. */
const MAX_VIEWS = 16

interface Resolution {
  readonly candidates: readonly Candidate[]
  /** As JSON. */
  readonly facts: string
  readonly skills: readonly Resolved[]
}

/** The resolved skills of the latest views. Candidates stay the same objects while their files and records do. */
export class Resolutions {
  readonly #kept = new Map<string, Resolution>()

  /** The same array as in the last call for the view, if candidates and facts are the same. */
  of({ workspace, agent }: SkillView, candidates: readonly Candidate[], facts: ResolveFacts): readonly Resolved[] {
    const view = JSON.stringify([workspace?.id, agent])
    const text = JSON.stringify(facts, (_, value) => (value instanceof Set ? [...value] : value))
    const kept = this.#kept.get(view)
    const resolution =
      kept?.facts === text && isSame(kept.candidates, candidates)
        ? kept
        : { candidates, facts: text, skills: resolve(candidates, facts) }
    // Moved to the end: the map is ordered by last use.
    this.#kept.delete(view)
    this.#kept.set(view, resolution)
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > MAX_VIEWS && oldest !== undefined) this.#kept.delete(oldest)
    return resolution.skills
  }
}

const isSame = (some: readonly Candidate[], others: readonly Candidate[]) =>
  some.length === others.length && some.every((one, at) => one === others[at])
