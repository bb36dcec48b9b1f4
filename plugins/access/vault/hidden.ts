import { SecretSet } from '../../../kernel/kit/secret-set.js'

/** Values that are no longer stored and still hidden: a process may hold one, and a server may still take it. */
const MAX_RETIRED = 1000

/** The values of all secrets, kept out of what leaves the daemon. */
export class HiddenValues {
  readonly source = new SecretSet()
  readonly #shown = new Map<string, { readonly version: number; readonly forget: () => void }>()
  readonly #retired: (() => void)[] = []

  /**
   * Hides a value that is about to be stored or is stored already.
   * @returns has it shown again; for a value that was not stored
   * @throws Fault `secret_too_short`, `secret_too_long`
   */
  hide(ref: string, value: string, short: boolean): () => void {
    return this.source.hide(value, { name: ref, short })
  }

  /** Whether this version is hidden. */
  has(ref: string, version: number): boolean {
    return this.#shown.get(ref)?.version === version
  }

  /** From now on this is the version of a secret; the one before is retired. */
  keep(ref: string, version: number, forget: () => void): void {
    const before = this.#shown.get(ref)
    const isNewer = !before || before.version < version
    if (isNewer) this.#shown.set(ref, { version, forget })
    const retired = isNewer ? before?.forget : forget
    if (retired) this.#retire(retired)
  }

  /** A secret that is stored no more. */
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
