import type { Heartbeat, Soul } from '../../../schemas/agents/sidecars.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import { finding } from '../../desk/daemon/api.js'
import { SIDECARS } from './locations.js'

/** Items of one report. */
const LISTED = 50

/** One item per invalid sidecar, or one that all are valid. */
export function brokenSidecars(all: readonly (Heartbeat | Soul)[]): DiagnosticItem[] {
  const about = { category: 'agents' }
  if (all.length === 0) {
    const message = 'all personas and heartbeat policies are valid'
    return [
      finding({
        ...about,
        id: 'sidecars',
        code: 'sidecars_ok',
        severity: 'info',
        title: 'Personas and heartbeats',
        message,
      }),
    ]
  }
  return all.slice(0, LISTED).map(({ agent_name: agent = '', source_path: path = '', diagnostics = [] }) => {
    const wrong = diagnostics.find(({ severity }) => severity === 'error')
    const which = wrong?.owner_surface === 'agent.soul' ? 'soul' : 'heartbeat'
    const effect =
      which === 'soul' ? 'no session of the agent starts until it is fixed' : 'the policy is off until it is fixed'
    return finding({
      ...about,
      id: `sidecars:${path}`,
      code: `${which}_invalid`,
      severity: 'warning',
      title: `The ${which === 'soul' ? 'persona' : 'heartbeat policy'} of ${agent} is not valid`,
      message: `${path}${wrong?.line === undefined ? '' : `:${wrong.line}`}: ${wrong?.message}; ${effect}`,
      suggested_command: SIDECARS[which].inspect(agent),
      evidence: { path, code: wrong?.code ?? '' },
    })
  })
}
