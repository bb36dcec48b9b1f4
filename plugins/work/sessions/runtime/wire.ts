import type { ConfigOption, SessionRuntime } from '../../../../schemas/sessions.js'
import type { AgentOptions } from '../../acp/api.js'
import type { SessionRow } from '../table.js'
import { effectiveOf, effortToWire, ownModelOf, providerOf } from './selection.js'

/** The member `config_options`; absent when the agent offers no options. */
export function configOptions({ config }: AgentOptions): { readonly config_options?: ConfigOption[] } {
  if (config.length === 0) return {}
  return {
    config_options: config.map(({ id, kind, label, description, current, values }) => ({
      id,
      kind,
      ...(label && { label }),
      ...(description && { description }),
      ...(current !== undefined && { current: String(current) }),
      ...(kind === 'select' && { values }),
    })),
  }
}

/** The runtime that the agent of a session reports. */
export function effectiveToWire(row: SessionRow): NonNullable<SessionRuntime['effective']> {
  const model = ownModelOf(row)
  const { unmet: _unmet, reasoning_effort: effort, ...effective } = effectiveOf(row) ?? { unmet: [] }
  return {
    provider: providerOf(row),
    ...(model && { model }),
    ...effective,
    ...effortToWire(effort),
  }
}
