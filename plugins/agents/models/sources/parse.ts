import type { ReasoningEffort } from '../../../../schemas/agents.js'
import type { CuratedModel } from '../../../../schemas/settings/entries.js'

/** Models per source, and characters of an id. */
const MAX_MODELS = 2000
const MAX_ID = 256
const MAX_NAME = 200

const EFFORTS: readonly string[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']
export const isEffort = (text: unknown): text is ReasoningEffort => EFFORTS.includes(text as string)

type Json = Readonly<Record<string, unknown>>
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * The models in a list of an endpoint or extension: an array, or one below `data` or `models`. Entries without a usable
 * id are left out, and so are those after the 2,000th.
 * @returns undefined if the value is not a list of models
 */
export function modelsIn(value: unknown): readonly Json[] | undefined {
  const list = Array.isArray(value) ? value : isObject(value) ? (value.data ?? value.models) : undefined
  return Array.isArray(list) ? list.slice(0, MAX_MODELS).filter(isObject) : undefined
}

/** Facts of a list entry, in the member names of several APIs; undefined without a usable id. */
export function factsOf(entry: Json): CuratedModel | undefined {
  const id = textIn(entry, ['model_id', 'modelId', 'id', 'model', 'name'], MAX_ID)?.replace(/^models\//, '')
  if (!id) return undefined
  const meta = isObject(entry._meta) ? entry._meta : {}
  const name = textIn(entry, ['display_name', 'displayName', 'name'], MAX_NAME)
  const context =
    countIn(entry, ['context_window', 'context_length', 'contextWindow', 'max_model_len']) ??
    countIn(meta, ['contextLimit'])
  const input = countIn(entry, ['max_input_tokens', 'inputTokenLimit'])
  const output = countIn(entry, ['max_output_tokens', 'outputTokenLimit'])
  const efforts = Array.isArray(entry.reasoning_efforts) ? entry.reasoning_efforts.filter(isEffort) : []
  return {
    id,
    ...(name !== undefined && name !== id && { display_name: name }),
    ...(context !== undefined && { context_window: context }),
    ...(input !== undefined && { max_input_tokens: input }),
    ...(output !== undefined && { max_output_tokens: output }),
    ...(efforts.length > 0 && { reasoning_efforts: efforts }),
    ...(isEffort(entry.default_reasoning_effort) && { default_reasoning_effort: entry.default_reasoning_effort }),
    ...(typeof entry.supports_tools === 'boolean' && { supports_tools: entry.supports_tools }),
    ...(typeof entry.supports_reasoning === 'boolean' && { supports_reasoning: entry.supports_reasoning }),
    ...(typeof entry.deprecated === 'boolean' && { deprecated: entry.deprecated }),
  }
}

/** The first of these members that is a single line of at most `max` characters. */
export function textIn(entry: Json, names: readonly string[], max: number): string | undefined {
  for (const name of names) {
    const value = entry[name]
    // biome-ignore lint/suspicious/noControlCharactersInRegex: ids stand in terminals and headers
    if (typeof value === 'string' && value !== '' && value.length <= max && !/[\x00-\x1f\x7f]/.test(value)) return value
  }
  return undefined
}

function countIn(entry: Json, names: readonly string[]): number | undefined {
  for (const name of names) {
    const value = entry[name]
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  }
  return undefined
}
