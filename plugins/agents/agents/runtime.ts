import type { EffectiveRuntime } from '../../../schemas/agents.js'
import { BUILT_IN_PROVIDER, type Provider, type ProvidersApi } from '../providers/api.js'
import type { AgentDefinition } from './api.js'

/** The provider of a definition with the source of that choice, or the reason why there is none. */
export type Resolution =
  | { readonly provider: Provider; readonly source: 'agent' | 'defaults' | 'command' | 'detected' }
  | { readonly provider?: undefined; readonly problem: string; readonly install?: string | undefined }

/** Resolves definitions against the programs that were installed when it was created. */
export type Resolver = (definition: AgentDefinition) => Resolution

/** Provider of an agent: the definition's own, its own command, `defaults.provider`, else the first one detected. */
export async function resolveProvider(definition: AgentDefinition, providers: ProvidersApi): Promise<Resolution> {
  return ownResolution(definition, providers) ?? (await fallbackOf(providers))
}

/** As {@link resolveProvider} for many definitions, with one detection. */
export async function resolverOf(providers: ProvidersApi): Promise<Resolver> {
  const fallback = await fallbackOf(providers)
  return definition => ownResolution(definition, providers) ?? fallback
}

function ownResolution({ provider: name, command }: AgentDefinition, providers: ProvidersApi): Resolution | undefined {
  if (name === undefined) {
    if (command === undefined) return undefined
    return { provider: providers.get(BUILT_IN_PROVIDER) ?? providers.builtIn, source: 'command' }
  }
  const provider = providers.get(name)
  if (provider) return { provider, source: 'agent' }
  const known = providers.list().map(entry => entry.name)
  return { problem: `provider ${JSON.stringify(name)} is not in the catalog; choose ${known.join(', ')}` }
}

async function fallbackOf(providers: ProvidersApi): Promise<Resolution> {
  if (providers.preferred) return { provider: providers.preferred, source: 'defaults' }
  const candidates = providers.list().filter(provider => provider.name !== BUILT_IN_PROVIDER)
  const installed: Provider[] = []
  for (const provider of candidates) if (await providers.detected(provider)) installed.push(provider)
  const [provider] = installed.sort((a, b) => loginRank(a, providers) - loginRank(b, providers))
  if (provider) return { provider, source: 'detected' }
  const commands = candidates.flatMap(({ needsEndpoint, argv: [command] }) => (needsEndpoint ? [] : command))
  return {
    problem: `it has no command, and no provider is installed (looked for ${commands.join(', ') || 'none'})`,
    install: candidates.find(provider => provider.install)?.install,
  }
}

/** Sort key: logged-in providers first, those known to be logged out last; otherwise in catalog order. */
function loginRank(provider: Provider, providers: ProvidersApi): number {
  const isLoggedIn = providers.isLoggedIn(provider)
  return isLoggedIn === undefined ? 1 : isLoggedIn ? 0 : 2
}

/** The model of a definition and its source: the definition, or the provider's entry. */
export function modelOf({ model: own }: AgentDefinition, { model: preferred }: Provider) {
  if (own !== undefined) return { model: own, source: 'agent' as const }
  return preferred === undefined ? undefined : { model: preferred, source: 'provider' as const }
}

/** The reasoning effort for a model: the definition's own, or the operator's setting for the model. */
export function effortOf({ reasoningEffort: own }: AgentDefinition, { curated }: Provider, model: string) {
  if (own !== undefined) return { effort: own, source: 'agent' as const }
  const effort = curated?.find(({ id }) => id === model)?.default_reasoning_effort
  return effort === undefined ? undefined : { effort, source: 'model' as const }
}

/** The member `effective_runtime` of the wire form. */
export function effectiveRuntime(definition: AgentDefinition, resolution: Resolution): EffectiveRuntime | null {
  const { provider } = resolution
  if (!provider) return null
  const model = modelOf(definition, provider)
  const effort = effortOf(definition, provider, model?.model ?? '')
  return {
    provider: provider.name,
    ...(model && { model: model.model }),
    ...(effort && { reasoning_effort: effort.effort as EffectiveRuntime['reasoning_effort'] }),
    sources: {
      provider: resolution.source,
      ...(model && { model: model.source }),
      ...(effort && { reasoning_effort: effort.source }),
    },
  }
}
