import type { ProvidersApi } from '../providers/api.js'
import { type AgentDefinition, AgentErrors, type LaunchPlan } from './api.js'
import { splitCommand } from './definition/command.js'
import { notRunnable } from './faults.js'
import { effortOf, modelOf, resolveProvider } from './runtime.js'

/**
 * The plan for starting a definition. Throws `agent_not_runnable` (422) with an install command when no provider can
 * run it, and `agent_invalid` for a command that cannot be split into arguments.
 * @param permissions mode of a definition without one
 */
export async function planOf(
  definition: AgentDefinition,
  providers: ProvidersApi,
  permissions: LaunchPlan['permissions'],
): Promise<LaunchPlan> {
  const { name, command } = definition
  const resolution = await resolveProvider(definition, providers)
  if (!resolution.provider) throw notRunnable(name, resolution)
  const { provider } = resolution
  const base = {
    definition,
    provider: provider.name,
    model: modelOf(definition, provider)?.model ?? '',
    effortFor: (model: string) => effortOf(definition, provider, model)?.effort,
    permissions: definition.permissions ?? permissions,
  }
  if (command !== undefined) {
    const argv = splitCommand(command)
    if ('wrong' in argv) throw AgentErrors.agent_invalid(`agent ${name}: ${argv.wrong}`)
    return { ...base, argv }
  }
  const [program] = provider.argv
  if (program === undefined) {
    throw notRunnable(name, { problem: `provider ${provider.name} requires a command in the agent definition` })
  }
  if (!(await providers.detected(provider))) {
    if (provider.needsEndpoint && provider.baseUrl === undefined) {
      throw notRunnable(name, { problem: `provider ${provider.name} has no endpoint; set one: svc init` })
    }
    const problem = `${program} of provider ${provider.name} is not on the PATH of the daemon`
    throw notRunnable(name, { problem, install: provider.install })
  }
  return { ...base, argv: provider.argv }
}
