import type { K } from '../needs.js'

/** Owner of the guards, and their description for people. */
const OWNER = 'network'
const RESTRAINT = 'the restraint of turns that other agents begin'

/**
 * Makes agents ask for permission in turns started by messages, even agents that may do anything: only requests can be
 * refused.
 */
export class Guarding {
  /** Sessions whose agents must ask. */
  readonly #guarded = new Set<string>()

  constructor(private readonly kernel: K) {}

  /**
   * Called before a prompt is given to an agent; undefined if nothing has to change first. The guard stays until a
   * different kind of prompt.
   */
  before(sessionId: string, isOfMessage: boolean): Promise<undefined> | undefined {
    if (!isOfMessage && !this.#guarded.has(sessionId)) return undefined
    if (isOfMessage) this.#guarded.add(sessionId)
    else this.#guarded.delete(sessionId)
    const guard = isOfMessage ? { by: RESTRAINT, isRequired: false } : undefined
    return this.kernel.needs.sessions.guard(sessionId, OWNER, guard).then(() => undefined)
  }

  forget(sessionId: string): void {
    this.#guarded.delete(sessionId)
  }
}
