/** Makes an agent ask before each operation in every permission mode, so that a plugin can refuse; the mode decides afterwards. */
export interface SessionGuard {
  /** Name of the guard for people: `the required hook lint`. */
  readonly by: string
  /** Whether the process ends at the first edit without a request. Otherwise only the transcript records that edit. */
  readonly isRequired: boolean
}

/**
 * The guards of an agent, one per owner. A guard makes the agent ask before each operation; guards can change while the agent runs.
 */
export class AgentGuards {
  readonly #byOwner = new Map<string, SessionGuard>()
  /** Reason for which the process cannot be made to ask for a guard set after its start; undefined: the guards hold. */
  unheld: string | undefined

  constructor(required: Readonly<Record<string, string>> = {}) {
    for (const [owner, by] of Object.entries(required)) this.#byOwner.set(owner, { by, isRequired: true })
  }

  of(owner: string): SessionGuard | undefined {
    return this.#byOwner.get(owner)
  }

  set(owner: string, guard: SessionGuard | undefined): void {
    if (guard) this.#byOwner.set(owner, guard)
    else this.#byOwner.delete(owner)
  }

  /** The guard that is named in messages: required guards first, then by name of the owner. */
  get first(): SessionGuard | undefined {
    const order = ([name, { isRequired }]: [string, SessionGuard]) => `${isRequired ? 0 : 1} ${name}`
    return [...this.#byOwner].sort((a, b) => (order(a) < order(b) ? -1 : 1))[0]?.[1]
  }

  /** The first guard without which the agent may not act, for people. */
  get required(): string | undefined {
    return this.first?.isRequired ? this.first.by : undefined
  }
}
