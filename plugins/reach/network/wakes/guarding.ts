import type { K } from '../needs.js'

/** Owner of the guards, and what they are for people. */
const OWNER = 'network'
const RESTRAINT = 'the restraint of turns that other agents begin'

/** Keeps agents asking in turns that messages began, also those that may do everything: only what is asked can be refused. */
export class Guarding {
  /** Sessions whose agents are kept asking. */
  readonly #guarded = new Set<string>()

  constructor(private readonly kernel: K) {}

  /** A prompt is about to be given to an agent; undefined: nothing has to change before. It stays guarded until a prompt of another kind. */
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
