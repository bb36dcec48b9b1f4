import type { EffectiveRuntime } from '../../schemas/agents.js'
import { BUILT_IN_PROVIDER, type Provider, type ProvidersApi } from '../providers/api.js'
import type { AgentDefinition } from './api.js'

/** Which provider runs a definition and where that choice came from, or why none does. */
export type Resolution =
  | { readonly provider: Provider; readonly source: 'agent' | 'defaults' | 'command' | 'detected' }
  | { readonly provider?: undefined; readonly problem: string; readonly install?: string | undefined }

/** Resolves any number of definitions against what was installed when it was made. */
export type Resolver = (definition: AgentDefinition) => Resolution

/** Provider of an agent: the definition's own, its own command, `defaults.provider`, else the first one detected. */
export async function resolveProvider(definition: AgentDefinition, providers: ProvidersApi): Promise<Resolution> {
  return ownResolution(definition, providers) ?? (await fallbackOf(providers))
}

/** The same for many definitions: what is installed is looked at once. */
export async function resolverOf(providers: ProvidersApi): Promise<Resolver> {
  const fallback = await fallbackOf(providers)
  return definition => ownResolution(definition, providers) ?? fallback
}

function ownResolution({ provider: name, command }: AgentDefinition, providers: ProvidersApi): Resolution | undefined {
  if (name === undefined) return command === undefined ? undefined : { provider: providers.builtIn, source: 'command' }
  const provider = providers.get(name)
  if (provider) return { provider, source: 'agent' }
  const known = providers.list().map(entry => entry.name)
  return { problem: `provider ${JSON.stringify(name)} is not in the catalog; known are ${known.join(', ')}` }
}

async function fallbackOf(providers: ProvidersApi): Promise<Resolution> {
  if (providers.preferred) return { provider: providers.preferred, source: 'defaults' }
  const candidates = providers.list().filter(provider => provider.name !== BUILT_IN_PROVIDER)
  for (const provider of candidates) if (await providers.detected(provider)) return { provider, source: 'detected' }
  const commands = candidates.map(provider => provider.argv[0])
  return {
    problem: `it names no command, and no provider is installed (looked for ${commands.join(', ') || 'none'})`,
    install: candidates.find(provider => provider.install)?.install,
  }
}

/** The wire's member `effective_runtime`; model and effort come from the definition alone, for the catalog has no models yet. */
export function effectiveRuntime(definition: AgentDefinition, resolution: Resolution): EffectiveRuntime | null {
  if (!resolution.provider) return null
  const { model, reasoningEffort: effort } = definition
  return {
    provider: resolution.provider.name,
    ...(model === undefined ? {} : { model }),
    ...(effort === undefined ? {} : { reasoning_effort: effort as EffectiveRuntime['reasoning_effort'] }),
    sources: {
      provider: resolution.source,
      ...(model === undefined ? {} : { model: 'agent' }),
      ...(effort === undefined ? {} : { reasoning_effort: 'agent' }),
    },
  }
}
