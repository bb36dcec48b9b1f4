import type { EffectiveRuntime } from '../../schemas/agents.js'
import { BUILT_IN_PROVIDER, type Provider, type ProvidersApi } from '../providers/api.js'
import type { AgentDefinition } from './api.js'

/** Which provider runs a definition and where that choice came from, or why none does. */
export type Resolution =
  | { readonly provider: Provider; readonly source: 'agent' | 'defaults' | 'command' | 'detected' }
  | { readonly provider?: undefined; readonly problem: string; readonly install?: string | undefined }

/** Resolves any number of definitions against what was installed when it was made. */
export type Resolver = (definition: AgentDefinition) => Resolution

/** Behaviour 4.3: the definition's own provider, its own command, `defaults.provider`, then the first one detected (decision 19). */
export async function resolverOf(providers: ProvidersApi): Promise<Resolver> {
  const fallback = await fallbackOf(providers)
  const own: Resolution = { provider: providers.builtIn, source: 'command' }
  const named = new Map<string, Resolution>(
    providers.list().map(provider => [provider.name, { provider, source: 'agent' } as const]),
  )
  return ({ provider: name, command }) => {
    if (name !== undefined) return named.get(name) ?? unknownProvider(name, [...named.keys()])
    return command === undefined ? fallback : own
  }
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

const unknownProvider = (name: string, known: readonly string[]): Resolution => ({
  problem: `provider ${JSON.stringify(name)} is not in the catalog; known are ${known.join(', ')}`,
})

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
