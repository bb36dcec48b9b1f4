import type { ProviderUse } from '../providers/api.js'
import type { AgentDefinition } from './api.js'
import { splitCommand } from './definition/command.js'
import type { Resolution } from './runtime.js'

/** The provider's use by a definition; none without a provider. */
export function useOf({ name, command }: AgentDefinition, { provider }: Resolution): ProviderUse[] {
  if (!provider) return []
  const words = command === undefined ? [] : splitCommand(command)
  return [{ provider: provider.name, by: name, command: 'wrong' in words ? undefined : words[0] }]
}
