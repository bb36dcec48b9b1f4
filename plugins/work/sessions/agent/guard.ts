import { messageOf } from '../../../../kernel/plugin.js'
import type { RunningAgent } from './launch.js'

/** What has to be asked before each operation of an agent, in every mode. It may come and go while the agent runs. */
export interface AgentGuard {
  /** For people: `the required hook guard`. */
  by: string | undefined
  /** Why the process cannot be kept asking by a guard that came after its start; undefined: the guard holds. */
  unheld?: string | undefined
}

/**
 * Puts a running agent under another guard, or under none: it gets the mode in which it asks, or back the one that it had. A process
 * that cannot be kept asking goes on, and ends with the first edit for which it did not ask.
 */
export async function changeGuard(running: RunningAgent, by: string | undefined): Promise<void> {
  const { agent, permissions, guard, cannotAsk } = running
  if (guard.by === by) return
  const before = running.asksIn(permissions.mode)
  guard.by = by
  guard.unheld = by === undefined ? undefined : cannotAsk
  if (guard.unheld !== undefined) return
  try {
    agent.checkAsks()
    const mode = running.asksIn(permissions.mode)
    if (mode !== before) await agent.changeMode(mode)
  } catch (error) {
    guard.unheld = messageOf(error)
  }
}
