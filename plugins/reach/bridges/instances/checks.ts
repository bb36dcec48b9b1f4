import { command } from '../../../../kernel/kit/commands/command-line.js'
import type { DiagnosticItem } from '../../../../schemas/kernel/diagnostic.js'
import { finding } from '../../../desk/daemon/api.js'
import type { Health } from './health.js'
import type { Instances } from './instances.js'

/** Items per report; the last item mentions the rest. */
const LISTED = 50

/** The doctor's items: instances that wait for a secret, work partially or were given up. */
export function bridgeItems(instances: Instances, health: Health): DiagnosticItem[] {
  const enabled = instances.list().filter(instance => instance.enabled)
  const items = enabled.flatMap((instance): DiagnosticItem[] => {
    const { id, displayName, platform, status } = instance
    if (status === 'ready') return []
    const [problem] = health.of(instance, instances.state(id)).diagnostics ?? []
    if (status === 'starting' && !problem) return []
    return [
      finding({
        id: `bridges.${id}`,
        code:
          status === 'auth_required' ? 'bridge_auth_required' : `bridge_${status === 'error' ? 'error' : 'degraded'}`,
        category: 'bridges',
        severity: status === 'degraded' || status === 'starting' ? 'warning' : 'error',
        title: `Bridge ${displayName} (${platform}) is ${status}`,
        message: problem?.message ?? `the bridge is ${status}`,
        suggested_command: problem?.next_action ?? command('bridge verify', id),
        evidence: { bridge_id: id, status },
      }),
    ]
  })
  if (items.length === 0) {
    if (enabled.length === 0) return []
    const message = `${enabled.length} ${enabled.length === 1 ? 'bridge serves its platform' : 'bridges serve their platforms'}`
    return [
      finding({
        id: 'runtime.bridges',
        code: 'bridge_ready',
        category: 'bridges',
        severity: 'info',
        title: 'Bridges',
        message,
      }),
    ]
  }
  const rest = items.length - LISTED
  const last = items[LISTED - 1]
  if (rest <= 0 || !last) return items
  return [...items.slice(0, LISTED - 1), { ...last, message: `${last.message}; and ${rest} more` }]
}

/** The item for a report that failed. */
export const unavailable = (message: string): DiagnosticItem =>
  finding({
    id: 'runtime.bridges',
    code: 'bridge_health_unavailable',
    category: 'bridges',
    severity: 'error',
    title: 'The health of bridges cannot be read',
    message,
    suggested_command: command('bridge list'),
  })
