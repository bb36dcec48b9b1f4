import { canonicalJson } from '../../../kernel/kit/canonical.js'
import type { Setting } from '../../../kernel/plugin.js'

/** What was in force of each setting when it was looked at last. */
export class InForce {
  /** JSON by path. */
  readonly #seen = new Map<string, string>()

  constructor(
    private known: readonly Setting[],
    private readonly get: (entry: Setting) => unknown,
  ) {
    this.#look(known)
  }

  /**
   * Whether something has changed since, with the same settings.
   * @param anew settings that have come or have another owner; of the others nothing has changed then
   */
  hasChanged(known: readonly Setting[], anew: readonly Setting[]): boolean {
    // A start adopts the settings of one plugin after the other: to look at all each time would take a tenth of it.
    const changed = this.#look(anew.length > 0 ? anew : known)
    const isSame = anew.length === 0 && known === this.known
    this.known = known
    return isSame && changed
  }

  #look(entries: readonly Setting[]): boolean {
    let changed = false
    for (const entry of entries) {
      const value = canonicalJson({ value: this.get(entry) })
      changed ||= this.#seen.get(entry.path) !== value
      this.#seen.set(entry.path, value)
    }
    return changed
  }
}
