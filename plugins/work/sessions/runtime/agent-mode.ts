import { shown } from '../../../../kernel/kit/text.js'
import type { PermissionMode } from '../../../agents/agents/api.js'
import { ASKING, MODE_NAMES } from '../../acp/api.js'
import { SessionErrors } from '../api.js'
import type { LiveSession } from '../lifecycle/live-session.js'

/** Agent modes without questions; the permission mode has to allow that. */
const UNASKED: ReadonlySet<string> = new Set(MODE_NAMES['approve-all'].filter(mode => mode !== 'acceptEdits'))
/** A mode in which an agent changes nothing. */
const PLAN = 'plan'

/**
 * Checks that the agent can be set to another of its own modes under the current or new permissions of the session.
 * @returns a function that sets the mode; it holds until the process ends or the permission mode changes.
 * @throws Fault `agent_mode_invalid` (409)
 */
export function checkedAgentMode(
  live: LiveSession | undefined,
  mode: string,
  requestedMode?: PermissionMode,
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
      `${guard} must approve each operation, but in the mode ${shown(mode)} the agent does not ask`,
    )
  }
  const permissions = requestedMode ?? running.permissions.mode
  if (UNASKED.has(mode) && permissions !== 'approve-all') {
    throw SessionErrors.agent_mode_invalid(
      `in the mode ${shown(mode)} the agent does not ask, but the session has permissions ${permissions}`,
    )
  }
  return () => agent.setMode(mode)
}
