import { shown } from '../../../../kernel/kit/text.js'
import type { PermissionMode } from '../../../agents/agents/api.js'
import { ASKING, MODE_NAMES } from '../agent/modes.js'
import { SessionErrors } from '../api.js'
import type { LiveSession } from '../lifecycle/live-session.js'

/** Modes in which an agent runs whatever it wants: the permission mode says so then. */
const UNASKED: ReadonlySet<string> = new Set(MODE_NAMES['approve-all'].filter(mode => mode !== 'acceptEdits'))
/** In it an agent changes nothing. */
const PLAN = 'plan'

/**
 * Checks that the agent of a session can be given another mode of its own under the permissions that the session has or gets.
 * @returns what gives it that mode, until its process ends or the permission mode changes.
 * @throws Fault `agent_mode_invalid` (409)
 */
export function checkedAgentMode(
  live: LiveSession | undefined,
  mode: string,
  asked?: PermissionMode,
): () => Promise<void> {
  const running = live?.binding.running
  if (!running) throw SessionErrors.agent_mode_invalid('the agent has no process; its first prompt starts it')
  const { agent, guards } = running
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
  const permissions = asked ?? running.permissions.mode
  if (UNASKED.has(mode) && permissions !== 'approve-all') {
    throw SessionErrors.agent_mode_invalid(
      `in the mode ${shown(mode)} the agent asks nothing; the session has permissions ${permissions}`,
    )
  }
  return () => agent.setMode(mode)
}
