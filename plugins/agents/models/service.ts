import { command } from '../../../kernel/kit/commands/command-line.js'
import { Serial } from '../../../kernel/kit/serial.js'
import { type Actor, Fault, messageOf } from '../../../kernel/plugin.js'
import type {
  CurateModelBody,
  CurateModelReply,
  ListModelsQuery,
  Model,
  OpenAiModel,
  RefreshModelsBody,
  RefreshModelsReply,
  ModelSource as WireSource,
} from '../../../schemas/providers.js'
import type { CuratedModel, ProviderSettings } from '../../../schemas/settings/entries.js'
import type { Provider } from '../providers/api.js'
import { ModelErrors, type ModelsApi } from './api.js'
import { mergeModels, sourceToWire } from './merge.js'
import type { K } from './needs.js'
import { acpSource } from './sources/acp.js'
import { endpointOf, endpointSource } from './sources/endpoint.js'
import { extensionSource } from './sources/extension.js'
import type { ModelSource } from './sources/source.js'
import { ModelTable, type SourceRow } from './table.js'

/** Minimum milliseconds between two reads of a source, unless forced. */
const REST_MS = 60_000
/** Sources that are read concurrently: each may start an agent with several processes. */
const AT_ONCE = 2
const ERROR_CHARACTERS = 300

/** The models of all providers: the last data of their sources, merged with the configuration. */
export class ModelsService implements ModelsApi {
  readonly #table: ModelTable
  /** Running reads by source, shared by concurrent callers. */
  readonly #reading = new Map<string, Promise<void>>()
  readonly #curating = new Serial()
  readonly #closing = new AbortController()

  constructor(private readonly kernel: K) {
    this.#table = new ModelTable(kernel.db)
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('the daemon is stopping'))
    await Promise.allSettled(this.#reading.values())
  }

  /** Deletes the data of a removed source. */
  async forget(source: string): Promise<void> {
    await this.#table.forget(source)
  }

  list(provider?: string): readonly Model[] {
    const rows = this.#table.models(provider)
    const sources = new Map(this.#table.sources().map(row => [row.id, row]))
    const known = this.kernel.needs.providers.list().map(({ name }) => name)
    const names = provider === undefined ? [...new Set([...known, ...rows.map(row => row.provider)])] : [provider]
    return names.flatMap(name => {
      const own = rows.filter(row => row.provider === name)
      return mergeModels(name, this.#entry(name), own, sources, this.kernel.clock.now())
    })
  }

  defaultOf(provider: string): string | undefined {
    return this.#entry(provider)?.models?.default || undefined
  }

  /** Models filtered for a caller. Throws `provider_not_found` (404), `model_source_not_found` (400). */
  async show({ provider_id: provider, view = 'curated', source_id: source, ...query }: ListModelsQuery) {
    if (provider !== undefined) this.#checkProvider(provider)
    if (query.refresh) await this.#refresh(this.#chosen(provider, source), false)
    const all = this.list(provider).filter(model => {
      if (source !== undefined && !model.sources.some(({ source_id }) => source_id === source)) return false
      return query.include_stale !== false || !model.stale
    })
    return view === 'all' ? all : curated(all)
  }

  /** Reads sources again; 503 if none could be read. */
  async refresh(
    provider: string | undefined,
    { force = false, source_id: source }: RefreshModelsBody,
  ): Promise<{ status: 200; body: RefreshModelsReply } | { status: 503; body: RefreshModelsReply }> {
    if (provider !== undefined) this.#checkProvider(provider)
    const chosen = this.#chosen(provider, source)
    await this.#refresh(chosen, force)
    const names = new Set(chosen.map(({ id }) => id))
    const sources = this.status(provider).filter(({ source_id: id }) => names.has(id))
    const read = sources.filter(({ refresh_state: state }) => state !== 'never')
    const failed = read.filter(({ refresh_state: state }) => state === 'failed')
    if (failed.length === 0 || failed.length < read.length) return { status: 200, body: { sources } }
    const error = failed.map(({ source_id: id, last_error: why }) => `${id}: ${why}`).join('; ')
    return { status: 503, body: { sources, error, code: 'model_source_failed' } }
  }

  /** Freshness of the sources; for a provider its own sources, and extensions that listed it. */
  status(provider?: string): WireSource[] {
    if (provider !== undefined) this.#checkProvider(provider)
    const rows = new Map(this.#table.sources().map(row => [row.id, row]))
    const counts = new Map<string, number>()
    for (const { source } of this.#table.models(provider)) counts.set(source, (counts.get(source) ?? 0) + 1)
    const now = this.kernel.clock.now()
    const known = new Map<string, Pick<SourceRow, 'id' | 'kind' | 'provider'>>(rows)
    for (const source of this.#sources()) known.set(source.id, source)
    return [...known.values()]
      .filter(source => provider === undefined || source.provider === provider || counts.has(source.id))
      .map(source =>
        sourceToWire(source, rows.get(source.id), counts.get(source.id) ?? 0, this.#reading.has(source.id), now),
      )
  }

  /** Stores an operator's settings of a model in the entry of its provider. Throws 404, `model_not_found` (422). */
  curate(provider: string, body: CurateModelBody, actor: Actor): Promise<CurateModelReply> {
    this.#checkProvider(provider)
    return this.#curating.run(async () => {
      const { model_id: id, default_effort: effort, ...flags } = body
      if (!this.list(provider).some(model => model.model_id === id))
        throw ModelErrors.model_not_found(`no model ${JSON.stringify(id)} of ${provider} is known`, {
          next: command('provider models refresh', provider),
        })
      const entry = this.#entry(provider) ?? {}
      const before = entry.models?.curated ?? []
      const changed: CuratedModel = {
        ...(before.find(model => model.id === id) ?? { id }),
        ...Object.fromEntries(Object.entries(flags).filter(([, value]) => typeof value === 'boolean')),
        ...(effort && { default_reasoning_effort: effort }),
      }
      const curated = before.some(model => model.id === id)
        ? before.map(model => (model.id === id ? changed : model))
        : [...before, changed]
      const settings = { ...entry, models: { ...entry.models, curated } }
      const keys = this.kernel.needs.settings.current
      if (!keys) throw refusal('the plugin settings does not run')
      const answer = await keys.putProvider(provider, { settings }, actor).catch(error => {
        throw error instanceof Fault ? refusal(error.message) : error
      })
      const model = this.list(provider).find(found => found.model_id === id)
      if (!model) throw ModelErrors.model_not_found(`the model ${JSON.stringify(id)} no longer exists`)
      return { apply: answer, model }
    })
  }

  /** The list of models in the common chat-API shape. */
  async openAi(provider: string | undefined): Promise<OpenAiModel[]> {
    const models = await this.show({ ...(provider !== undefined && { provider_id: provider }) })
    return models.map(model => {
      const { curated: _, featured: __, hidden: ___, deprecated: ____, sources, release_date, ...service } = model
      const created = Math.floor(Date.parse(release_date ?? '') / 1000)
      return {
        id: `${model.provider_id}/${model.model_id}`,
        object: 'model',
        created: Number.isSafeInteger(created) ? created : 0,
        owned_by: model.provider_id,
        service: { ...service, sources: sources.map(({ source_id }) => source_id) },
      }
    })
  }

  #entry(provider: string): ProviderSettings | undefined {
    return this.kernel.needs.providers.entry(provider)
  }

  #checkProvider(name: string): void {
    this.kernel.needs.providers.named(name)
  }

  /** The current sources of all providers and extensions. */
  #sources(): ModelSource[] {
    const { providers, extensions } = this.kernel.needs
    const own = providers.list().flatMap(provider => this.#sourcesOf(provider))
    const api = extensions.current
    const shipped = (api?.installed() ?? []).flatMap(extension =>
      api && extension.enabled && extension.manifest.capabilities.provides.includes('model.source')
        ? [extensionSource(extension, api, this.kernel.clock)]
        : [],
    )
    return [...own, ...shipped]
  }

  #sourcesOf(provider: Provider): ModelSource[] {
    const { clock, home, needs } = this.kernel
    const sources: ModelSource[] = []
    const entry = this.#entry(provider.name) ?? {}
    const url = endpointOf(entry)
    if (url) sources.push(endpointSource(provider.name, url, entry, () => this.#keyOf(provider), clock))
    if (provider.argv.length > 0 && entry.models?.discovery?.enabled !== false) {
      const start = async (cwd: string) => {
        const env = await needs.providers.environment(provider)
        return needs.processes.spawn({
          label: `models of ${provider.name}`,
          argv: provider.argv,
          cwd,
          env,
          stdio: 'pipe',
        })
      }
      sources.push(acpSource(provider.name, home.path('models', provider.name), clock, start))
    }
    return sources
  }

  /** The secret of the first slot, or the first variable with a key of this provider. */
  async #keyOf(provider: Provider): Promise<string | undefined> {
    const env = await this.kernel.needs.providers.environment(provider)
    const names = [...(provider.slots ?? []).map(({ variable }) => variable), ...(provider.keyVariables ?? [])]
    return names.map(name => env[name]).find(Boolean)
  }

  #chosen(provider: string | undefined, source: string | undefined): ModelSource[] {
    const all = this.#sources()
    if (source !== undefined) {
      const one = all.find(({ id }) => id === source)
      if (one && (provider === undefined || one.provider === provider || one.provider === '')) return [one]
      const known = all.map(({ id }) => id).join(', ') || 'none'
      throw ModelErrors.model_source_not_found(`there is no source ${JSON.stringify(source)}`, { details: { known } })
    }
    return provider === undefined ? all : all.filter(one => one.provider === provider || one.provider === '')
  }

  async #refresh(sources: readonly ModelSource[], force: boolean): Promise<void> {
    const now = this.kernel.clock.now()
    const rows = new Map(this.#table.sources().map(row => [row.id, row]))
    const waiting: ModelSource[] = []
    for (const source of sources) {
      const last = rows.get(source.id)?.refreshed_at ?? 0
      const rests = !force && now - last < REST_MS
      if (!rests && (await this.#canRead(source))) waiting.push(source)
    }
    const lane = async () => {
      for (let source = waiting.shift(); source; source = waiting.shift()) await this.#read(source)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, lane))
  }

  /** Whether a source can be read: a program that is not installed must not count as a failed source. */
  async #canRead({ kind, provider }: ModelSource): Promise<boolean> {
    if (kind !== 'acp') return true
    const found = this.kernel.needs.providers.get(provider)
    return found !== undefined && (await this.kernel.needs.providers.detected(found))
  }

  #read(source: ModelSource): Promise<void> {
    const going = this.#reading.get(source.id)
    if (going) return going
    const reading = this.#readNow(source).finally(() => this.#reading.delete(source.id))
    this.#reading.set(source.id, reading)
    return reading
  }

  async #readNow(source: ModelSource): Promise<void> {
    const { clock, redact } = this.kernel
    const about = { id: source.id, kind: source.kind, provider: source.provider }
    try {
      const found = await source.read(this.#closing.signal)
      const rows = found.map(model => ({ source: source.id, ...model }))
      await this.#table.succeeded(about, rows, clock.now())
    } catch (error) {
      if (this.#closing.signal.aborted) return
      await this.#table.failed(about, redact.text(messageOf(error), ERROR_CHARACTERS), clock.now())
    }
  }
}

/** The curated visible models of each provider; without curated ones, all visible models. */
function curated(models: readonly Model[]): Model[] {
  const choosy = new Set(
    models.filter(({ curated, featured, hidden }) => (curated || featured) && !hidden).map(({ provider_id: id }) => id),
  )
  return models.filter(({ provider_id: id, ...model }) => !model.hidden && (!choosy.has(id) || model.curated))
}

/** The fault of a refused configuration write. */
function refusal(why: string): Fault {
  return ModelErrors.model_source_failed(`the configuration could not be written: ${why}`)
}
