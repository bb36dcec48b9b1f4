import { messageOf } from '../../../../kernel/plugin.js'
import type { SessionGuard } from '../api.js'
import type { RunningAgent } from './launch.js'

/** What has to be asked before each operation of an agent, one guard for each owner. They may come and go while the agent runs. */
export class AgentGuards {
  readonly #byOwner = new Map<string, SessionGuard>()
  /** Why the process cannot be kept asking by a guard that came after its start; undefined: the guards hold. */
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

  /** The one that is named where one has to be: the required ones come first, then the names of owners decide. */
  get first(): SessionGuard | undefined {
    const order = ([name, { isRequired }]: [string, SessionGuard]) => `${isRequired ? 0 : 1} ${name}`
    return [...this.#byOwner].sort((a, b) => (order(a) < order(b) ? -1 : 1))[0]?.[1]
  }

  /** The first one without which the agent may not act, for people. */
  get required(): string | undefined {
    return this.first?.isRequired ? this.first.by : undefined
  }
}

/**
 * Puts a running agent under a guard of an owner, or takes that away: it gets the mode in which it asks, or back the one that it had.
 * A process that cannot be kept asking goes on; under a required guard it ends with the first edit for which it did not ask.
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
