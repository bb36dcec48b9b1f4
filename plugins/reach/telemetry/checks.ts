import { command } from '../../../kernel/kit/commands/command-line.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import { finding } from '../../desk/daemon/api.js'
import type { TelemetryService } from './service.js'

/** The doctor's item for a collector that does not accept spans. Nothing else is affected. */
export function checks(service: Pick<TelemetryService, 'status'>): DiagnosticItem[] {
  const { traces } = service.status()
  const { state, endpoint = '', error = '', dropped, waiting, failing_since: since } = traces
  const item = { id: 'telemetry.traces', category: 'telemetry', suggested_command: command('telemetry status') }
  if (state === 'broken')
    return [
      finding({
        ...item,
        code: 'telemetry_broken',
        severity: 'warning',
        title: 'Traces are off',
        message: `traces could not be set up: ${error}`,
      }),
    ]
  if (state !== 'failing') return []
  return [
    finding({
      ...item,
      code: 'telemetry_endpoint_failing',
      severity: 'warning',
      title: 'The trace collector reports errors',
      message: `${endpoint} has not accepted spans since ${since}: ${error}; waiting: ${waiting}, dropped: ${dropped}. The rest of the daemon is not affected`,
    }),
  ]
}
