import { messageOf } from '../../../../kernel/plugin.js'
import type { SessionGuard } from '../api.js'
import type { RunningAgent } from './launch.js'

/**
 * The guards of an agent, one per owner. A guard makes the agent ask before each operation; guards can change while the agent runs.
 */
export class AgentGuards {
  readonly #byOwner = new Map<string, SessionGuard>()
  /** Reason for which the process cannot be made to ask for a guard set after its start; undefined: the guards hold. */
  unheld: string | undefined

  constructor(given: Readonly<Record<string, string>> = {}) {
    for (const [owner, by] of Object.entries(given)) this.#byOwner.set(owner, { by, isRequired: true })
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

/**
 * Sets or removes a guard of an owner on a running agent, and switches the agent to its asking mode or back. A process that cannot
 * be made to ask continues; under a required guard it ends at the first edit for which it did not ask.
 */
export async function changeGuard(
  running: RunningAgent,
  owner: string,
  guard: SessionGuard | undefined,
): Promise<void> {
  const { agent, permissions, guards, cannotAsk } = running
  const before = running.asksIn(permissions.mode)
  const wasUnheld = guards.unheld
  guards.set(owner, guard)
  guards.unheld = guards.first === undefined ? undefined : (wasUnheld ?? cannotAsk)
  if (guards.unheld !== undefined) return
  try {
    agent.checkAsks()
    const mode = running.asksIn(permissions.mode)
    if (mode !== before) await agent.changeMode(mode)
  } catch (error) {
    if (guards.first) guards.unheld = messageOf(error)
  }
}
