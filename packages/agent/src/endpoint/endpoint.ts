import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { LanguageModel } from 'ai'
import { DEFAULT_WINDOW, type Settings } from '../settings.js'
import { EndpointFailure, type FailureContext } from './failures.js'
import { guardedFetch, type ReadProgress } from './guarded-fetch.js'

const LIST_MS = 5000
const MAX_LIST_BYTES = 1024 * 1024
const MAX_MODELS = 200
const MAX_ID = 256

/** A model that the endpoint lists. */
export interface ListedModel {
  readonly id: string
  /** Context window in tokens, if the endpoint reports it. */
  readonly window: number | undefined
}

/** The configured endpoint: its list of models, and the model to call. */
export class Endpoint {
  #listed: Promise<readonly ListedModel[]> | undefined

  constructor(private readonly settings: Settings) {}

  /** Listed models; empty if the endpoint lists none or fails. Cached once the request succeeds. */
  models(): Promise<readonly ListedModel[]> {
    this.#listed ??= this.#list().catch(() => {
      this.#listed = undefined
      return []
    })
    return this.#listed
  }

  /**
   * The model to call: `chosen`, else that of the environment, else the first listed.
   * @throws {EndpointFailure} If there is none.
   */
  async modelName(chosen: string | undefined): Promise<string> {
    if (this.settings.baseUrl === undefined) throw notConfigured()
    const name = chosen ?? this.settings.model ?? (await this.models())[0]?.id
    if (name !== undefined) return name
    throw new EndpointFailure(
      'not_configured',
      `no model is chosen, and the endpoint ${this.settings.baseUrl} lists none; is it running? Choose one with --model or OPENAI_MODEL`,
    )
  }

  /** Context window of a model in tokens. */
  async window(model: string): Promise<number> {
    return this.settings.window ?? (await this.models()).find(({ id }) => id === model)?.window ?? DEFAULT_WINDOW
  }

  /** The model for one call; `progress` counts the bytes of the answer. */
  model(name: string, progress: ReadProgress): LanguageModel {
    const { baseUrl, apiKey } = this.settings
    if (baseUrl === undefined) throw notConfigured()
    const provider = createOpenAICompatible({
      name: 'endpoint',
      baseURL: baseUrl,
      includeUsage: true,
      fetch: guardedFetch(baseUrl, this.settings, progress),
      ...(apiKey !== undefined && { apiKey }),
    })
    return provider(name)
  }

  failureContext(model: string): FailureContext {
    const { baseUrl = '', apiKey, endpointName } = this.settings
    return { baseUrl, model, endpointName, apiKey }
  }

  async #list(): Promise<readonly ListedModel[]> {
    const { baseUrl, apiKey } = this.settings
    if (baseUrl === undefined) return []
    const reply = await fetch(`${baseUrl}/models`, {
      headers: apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` },
      redirect: 'error',
      signal: AbortSignal.timeout(LIST_MS),
    })
    if (!reply.ok || reply.body === null) throw new Error(`HTTP ${reply.status}`)
    const parts: Uint8Array[] = []
    let bytes = 0
    for await (const part of reply.body) {
      bytes += part.byteLength
      if (bytes > MAX_LIST_BYTES) throw new Error('the list of models is too long')
      parts.push(part)
    }
    return listedIn(JSON.parse(Buffer.concat(parts).toString()))
  }
}

function listedIn(body: unknown): readonly ListedModel[] {
  const data = (body as { data?: unknown } | null)?.data
  if (!Array.isArray(data)) return []
  const models = data.flatMap((item: unknown): ListedModel[] => {
    const { id } = (item ?? {}) as { id?: unknown }
    return typeof id === 'string' && id !== '' && id.length <= MAX_ID ? [{ id, window: windowOf(item as object) }] : []
  })
  return models.slice(0, MAX_MODELS)
}

/** vLLM, llama.cpp and routers each use another name for the context window. */
function windowOf(item: object): number | undefined {
  const { max_model_len, context_length, context_window, meta } = item as Record<string, unknown>
  const inner = (meta ?? {}) as Record<string, unknown>
  const found = [max_model_len, context_length, context_window, inner.n_ctx].find(
    value => Number.isInteger(value) && Number(value) >= 1024 && Number(value) <= 16_777_216,
  )
  return found === undefined ? undefined : Number(found)
}

const notConfigured = () =>
  new EndpointFailure('not_configured', 'no endpoint is configured; run svc init, or set OPENAI_BASE_URL')
