import { shown } from '../../../../kernel/kit/text.js'
import { ASKING, MODE_NAMES } from '../agent/modes.js'
import { SessionErrors } from '../api.js'
import type { LiveSession } from '../lifecycle/live-session.js'

/** Modes in which an agent runs whatever it wants: the permission mode says so then. */
const UNASKED: ReadonlySet<string> = new Set(MODE_NAMES['approve-all'].filter(mode => mode !== 'acceptEdits'))
/** In it an agent changes nothing. */
const PLAN = 'plan'

/**
 * Gives the agent of a session another mode of its own, until its process ends or the permission mode changes.
 * @throws Fault `agent_mode_invalid` (409)
 */
export async function changeAgentMode(live: LiveSession | undefined, mode: string): Promise<void> {
  const running = live?.binding.running
  if (!running) throw SessionErrors.agent_mode_invalid('the agent has no process; its first prompt starts it')
  const { agent, permissions, guards } = running
  const { modes } = agent.session
  if (!modes.includes(mode)) {
    throw SessionErrors.agent_mode_invalid(
      `the agent has no mode ${shown(mode)}, only: ${modes.map(one => shown(one)).join(', ')}`,
    )
  }
  const guard = guards.first?.by
  if (guard !== undefined && mode !== PLAN && !ASKING.includes(mode)) {
    throw SessionErrors.agent_mode_invalid(
      `${guard} has to be asked before each operation, and in the mode ${shown(mode)} the agent does not ask`,
    )
  }
  if (UNASKED.has(mode) && permissions.mode !== 'approve-all') {
    throw SessionErrors.agent_mode_invalid(
      `in the mode ${shown(mode)} the agent asks nothing; the session has permissions ${permissions.mode}`,
    )
  }
  await agent.setMode(mode)
}
