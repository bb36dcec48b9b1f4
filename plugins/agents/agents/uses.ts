import type { ProviderUse } from '../providers/api.js'
import type { AgentDefinition } from './api.js'
import { splitCommand } from './definition/command.js'
import type { Resolution } from './runtime.js'

/** What a definition uses of a provider; nothing when none is resolved. */
export function useOf({ name, command }: AgentDefinition, { provider }: Resolution): ProviderUse[] {
  if (!provider) return []
  const words = command === undefined ? [] : splitCommand(command)
  return [{ provider: provider.name, by: name, command: 'wrong' in words ? undefined : words[0] }]
}
