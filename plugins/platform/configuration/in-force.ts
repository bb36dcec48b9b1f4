import { canonicalJson } from '../../../kernel/kit/canonical.js'
import type { Setting } from '../../../kernel/plugin.js'

/** Canonical JSON of decoded values, which never change. */
const texts = new WeakMap<object, string>()

/** Canonical JSON of a value; undefined for undefined. */
export function textOf(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const text = texts.get(value) ?? canonicalJson(value)
  texts.set(value, text)
  return text
}

const orders = new WeakMap<readonly Setting[], readonly Setting[]>()

/** Settings by path, sorted once for a list: each change asks for hashes of all values. */
export function inOrder(known: readonly Setting[]): readonly Setting[] {
  const order = orders.get(known) ?? [...known].sort((a, b) => (a.path < b.path ? -1 : 1))
  orders.set(known, order)
  return order
}

/** The values of all settings at the last comparison, to detect changes. */
export class InForce {
  /** JSON by path. */
  readonly #values = new Map<string, string | undefined>()

  constructor(
    private known: readonly Setting[],
    private readonly get: (entry: Setting) => unknown,
  ) {
    this.#refresh(known)
  }

  /**
   * Whether a value has changed since the last call. False when settings came, went or changed owners: their values are then only
   * stored, because a plugin that starts changes no configuration.
   * @param anew settings that are new or have another owner; no other setting changes together with them
   */
  hasChanged(known: readonly Setting[], anew: readonly Setting[]): boolean {
    // A start adopts the settings plugin by plugin: comparing all of them each time would take a tenth of it.
    const changed = this.#refresh(anew.length > 0 ? anew : known)
    const isSame = anew.length === 0 && known === this.known
    this.known = known
    return isSame && changed
  }

  #refresh(entries: readonly Setting[]): boolean {
    let changed = false
    for (const entry of entries) {
      const value = textOf(this.get(entry))
      changed ||= !this.#values.has(entry.path) || this.#values.get(entry.path) !== value
      this.#values.set(entry.path, value)
    }
    return changed
  }
}
