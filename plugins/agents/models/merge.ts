import { iso } from '../../../kernel/plugin.js'
import type { Model, ModelCost, ModelOrigin, ModelSource as WireSource } from '../../../schemas/providers.js'
import type { CuratedModel, ProviderSettings } from '../../../schemas/settings/entries.js'
import { PRIORITIES, type SourceKind } from './sources/source.js'
import type { ModelRow, SourceRow } from './table.js'

/** Milliseconds after which data of a source is stale. */
export const STALE_MS = 24 * 60 * 60_000

export const priorityOf = (kind: string) => PRIORITIES[kind as SourceKind] ?? 0

/** Whether the last data of a source is unreliable. */
export const isStale = ({ succeeded_at: at, error }: SourceRow, now: number) =>
  at === null || error !== null || now - at > STALE_MS

/** Facts about a model with their source. */
interface Saying {
  readonly origin: ModelOrigin
  readonly facts: CuratedModel
}

/**
 * Merges the models of one provider: for each, the source with the highest priority wins and the others fill in missing
 * facts.
 * @param entry of the provider in the configuration; its models are curated
 */
export function mergeModels(
  provider: string,
  entry: ProviderSettings | undefined,
  rows: readonly ModelRow[],
  sources: ReadonlyMap<string, SourceRow>,
  now: number,
): Model[] {
  const sayings = new Map<string, Saying[]>()
  const say = (id: string, saying: Saying) => sayings.set(id, [...(sayings.get(id) ?? []), saying])
  for (const { source: id, facts } of rows) {
    const source = sources.get(id)
    if (source) say(facts.id, { facts, origin: originOf(source, now) })
  }
  const { curated = [], default: preferred } = entry?.models ?? {}
  const config = { priority: PRIORITIES.config, source_id: `config:${provider}`, source_kind: 'config', stale: false }
  for (const facts of curated) say(facts.id, { facts, origin: config })
  if (preferred && !sayings.has(preferred)) say(preferred, { facts: { id: preferred }, origin: config })
  const chosen = new Set(curated.map(({ id }) => id))
  const models = [...sayings].map(([id, said]) => modelOf(provider, id, said, chosen.has(id)))
  const rank = ({ featured, curated, model_id: id }: Model) => (featured ? 0 : id === preferred ? 1 : curated ? 2 : 3)
  return models.sort((a, b) => rank(a) - rank(b) || (a.model_id < b.model_id ? -1 : 1))
}

function originOf({ id, kind, succeeded_at: at, error, ...row }: SourceRow, now: number): ModelOrigin {
  return {
    priority: priorityOf(kind),
    source_id: id,
    source_kind: kind,
    stale: isStale({ id, kind, succeeded_at: at, error, ...row }, now),
    ...(at !== null && { refreshed_at: iso(at) }),
    ...(error !== null && { last_error: error }),
  }
}

function modelOf(provider: string, id: string, said: readonly Saying[], isCurated: boolean): Model {
  const trusted = said.toSorted((a, b) => b.origin.priority - a.origin.priority)
  const pick = <K extends keyof CuratedModel>(name: K): CuratedModel[K] | undefined =>
    trusted.find(({ facts }) => facts[name] !== undefined && facts[name] !== null)?.facts[name]
  const reports = trusted.filter(({ origin }) => origin.source_kind !== 'config')
  const fresh = reports.filter(({ origin }) => !origin.stale)
  const efforts = trusted.find(({ facts }) => facts.reasoning_efforts !== undefined)
  const refreshed = reports.map(({ origin }) => origin.refreshed_at).find(Boolean)
  const error = reports.map(({ origin }) => origin.last_error).find(Boolean)
  const cost = costOf(pick)
  const name = pick('display_name')
  const release = pick('release_date')
  const context = pick('context_window')
  const input = pick('max_input_tokens')
  const output = pick('max_output_tokens')
  const effort = pick('default_reasoning_effort')
  return {
    provider_id: provider,
    model_id: id,
    // The configuration alone does not show that the model exists.
    availability_state: fresh.length > 0 ? 'available' : reports.length > 0 ? 'stale' : 'unknown',
    available: fresh.length > 0 ? true : null,
    curated: isCurated,
    featured: pick('featured') === true,
    hidden: pick('hidden') === true,
    deprecated: pick('deprecated') === true,
    stale: reports.length > 0 && fresh.length === 0,
    sources: trusted.map(({ origin }) => origin),
    supports_reasoning: pick('supports_reasoning') ?? null,
    supports_tools: pick('supports_tools') ?? null,
    ...(name !== undefined && { display_name: name }),
    ...(release !== undefined && { release_date: release }),
    ...(context !== undefined && { context_window: context }),
    ...(input !== undefined && { max_input_tokens: input }),
    ...(output !== undefined && { max_output_tokens: output }),
    ...(effort !== undefined && { default_reasoning_effort: effort }),
    ...(efforts?.facts.reasoning_efforts && {
      reasoning_efforts: efforts.facts.reasoning_efforts,
      reasoning_source: efforts.origin.source_kind === 'acp' ? 'acp' : 'catalog',
    }),
    ...(cost && { cost }),
    ...(refreshed && { refreshed_at: refreshed }),
    ...(error && { last_error: error }),
  }
}

function costOf(pick: <K extends keyof CuratedModel>(name: K) => CuratedModel[K] | undefined): ModelCost | undefined {
  const cost = Object.fromEntries(
    (['cache_read', 'cache_write', 'input', 'output', 'reasoning'] as const).flatMap(kind => {
      const value = pick(`cost_${kind}_per_million`)
      return typeof value === 'number' ? [[`${kind}_per_million`, value]] : []
    }),
  )
  return Object.keys(cost).length > 0 ? cost : undefined
}

/** Wire form of a source; `row` is absent before the first read. */
export function sourceToWire(
  { id, kind, provider }: Pick<SourceRow, 'id' | 'kind' | 'provider'>,
  row: SourceRow | undefined,
  count: number,
  isRefreshing: boolean,
  now: number,
): WireSource {
  const state = isRefreshing ? 'refreshing' : !row ? 'never' : row.error === null ? 'ok' : 'failed'
  return {
    source_id: id,
    source_kind: kind,
    provider_id: provider,
    priority: priorityOf(kind),
    refresh_state: state,
    row_count: count,
    stale: !row || isStale(row, now),
    ...(row && { last_refresh: iso(row.refreshed_at) }),
    ...(row?.succeeded_at && { last_success: iso(row.succeeded_at) }),
    ...(row?.error && { last_error: row.error }),
  }
}
