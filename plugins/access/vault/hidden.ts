import { SecretSet } from '../../../kernel/kit/secret-set.js'

/** Most former values that stay hidden: a process may still hold one, and a server may still accept it. */
const MAX_RETIRED = 1000

/** The values of all secrets, hidden from the output of the daemon. */
export class HiddenValues {
  readonly source = new SecretSet()
  readonly #shown = new Map<string, { readonly version: number; readonly forget: () => void }>()
  readonly #retired: (() => void)[] = []

  /**
   * Hides a value that is stored or about to be stored.
   * @returns reveals the value again, in case it was not stored
   * @throws Fault `secret_too_short`, `secret_too_long`
   */
  hide(ref: string, value: string, short: boolean): () => void {
    return this.source.hide(value, { name: ref, short })
  }

  /** Whether this version of a secret is hidden. */
  has(ref: string, version: number): boolean {
    return this.#shown.get(ref)?.version === version
  }

  /** Sets the current version of a secret; the former one is retired. */
  keep(ref: string, version: number, forget: () => void): void {
    const before = this.#shown.get(ref)
    const isNewer = !before || before.version < version
    if (isNewer) this.#shown.set(ref, { version, forget })
    const retired = isNewer ? before?.forget : forget
    if (retired) this.#retire(retired)
  }

  /** Retires the value of a deleted secret. */
  drop(ref: string): void {
    const before = this.#shown.get(ref)
    this.#shown.delete(ref)
    if (before) this.#retire(before.forget)
  }

  #retire(forget: () => void): void {
    this.#retired.push(forget)
    if (this.#retired.length > MAX_RETIRED) this.#retired.shift()?.()
  }
}
