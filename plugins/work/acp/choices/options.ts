import type { SpeedResolution } from '../../../../schemas/sessions.js'
import type { AgentOption, ModelList } from '../protocol/schemas.js'

/** The choices that an agent offers, with their current values. */
export interface AgentOptions {
  readonly models: ModelList | undefined
  readonly config: readonly AgentOption[]
}

/** The wanted runtime of a session; undefined members keep the agent's initial value. */
export interface RuntimeWish {
  readonly model?: string | undefined
  readonly effort?: string | undefined
  readonly speed?: 'normal' | 'fast' | undefined
}

/** A request that sets a value on an agent. */
export type Choice =
  | { readonly method: 'session/set_model'; readonly params: { readonly modelId: string } }
  | {
      readonly method: 'session/set_config_option'
      readonly params: { readonly configId: string; readonly value: string | boolean; readonly type?: 'boolean' }
    }

/** The way to fulfil a wish: by a request, already fulfilled, or impossible with a reason in words. */
export type Way =
  | { readonly way: 'ask'; readonly choice: Choice }
  | { readonly way: 'met' }
  | { readonly way: 'none'; readonly why: string }

const MAX_NAMED = 12
const same = (a: string | undefined, b: string) => a?.toLowerCase() === b.toLowerCase()

/** The option of a category; without one, the option with a matching ID. */
function optionOf({ config }: AgentOptions, category: string, id: RegExp): AgentOption | undefined {
  return config.find(option => option.category === category) ?? config.find(option => id.test(option.id))
}

const modelOption = (options: AgentOptions) => optionOf(options, 'model', /^model$/i)
const effortOption = (options: AgentOptions) =>
  optionOf(options, 'thought_level', /^(?:reasoning_?effort|effort|thought_level|thinking)$/i)

/** The current model; undefined when the agent does not report it. */
export function currentModel(options: AgentOptions): string | undefined {
  return text(modelOption(options)?.current) ?? options.models?.current
}

/** The current effort. */
export function currentEffort(options: AgentOptions): string | undefined {
  return text(effortOption(options)?.current)
}

/** The available models; undefined without a choice. */
export function offeredModels(options: AgentOptions): readonly string[] | undefined {
  const option = modelOption(options)
  return option ? option.values.map(({ value }) => value) : options.models?.available.map(({ id }) => id)
}

/** @param effort for agents whose model IDs include the effort */
export function wayToModel(options: AgentOptions, model: string, effort?: string): Way {
  const option = modelOption(options)
  if (option) return wayToValue(option, model, 'model')
  if (!options.models) return none('it offers no choice of models')
  const { available, current } = options.models
  const ids = effort === undefined ? [model] : [`${model}/${effort}`, `${model}[${effort}]`, model]
  const found =
    ids.map(id => available.find(one => one.id === id)).find(one => one !== undefined) ??
    available.find(one => same(one.name, model) || same(one.id, model))
  if (!found) return none(`it offers no model ${model}, only: ${named(available.map(({ id }) => id))}`)
  if (found.id === current) return { way: 'met' }
  return { way: 'ask', choice: { method: 'session/set_model', params: { modelId: found.id } } }
}

/** The way back to the initial model, which the agent may accept even if it is not in its list. */
export function wayBack(options: AgentOptions, model: string): Way {
  const way = wayToModel(options, model)
  if (way.way !== 'none') return way
  const option = modelOption(options)
  if (option) return ask(option.id, model)
  return { way: 'ask', choice: { method: 'session/set_model', params: { modelId: model } } }
}

export function wayToEffort(options: AgentOptions, effort: string): Way {
  const option = effortOption(options)
  if (option) return wayToValue(option, effort, 'effort')
  const model = currentModel(options) ?? ''
  if (model.endsWith(`/${effort}`) || model.endsWith(`[${effort}]`)) return { way: 'met' }
  // For these agents the effort is a part of the model ID.
  const combined = wayToModel(options, model.replace(/(?:\/\w+|\[\w+\])$/, ''), effort)
  const id =
    combined.way === 'ask' && combined.choice.method === 'session/set_model' ? combined.choice.params.modelId : ''
  return id.endsWith(`/${effort}`) || id.endsWith(`[${effort}]`) ? combined : none('it offers no choice of efforts')
}

type Reason = NonNullable<SpeedResolution['reason']>
const FAST = /^(?:fast|on|true|priority)$/i
const NORMAL = /^(?:normal|standard|default|off|false|auto)$/i

/** The way to set a speed, or the reason for which it is impossible. */
export function wayToSpeed(
  options: AgentOptions,
  speed: 'normal' | 'fast',
): Way | { readonly way: 'reason'; readonly reason: Reason } {
  const found = options.config.filter(
    ({ id, label, category }) =>
      category === 'speed' || /(?:^|[_-])(?:speed|fast)(?:$|[_-])/i.test(id) || /^(?:speed|fast mode)$/i.test(label),
  )
  const [option, another] = found
  if (!option) return { way: 'reason', reason: 'capability_absent' }
  if (another) return { way: 'reason', reason: 'capability_ambiguous' }
  if (option.kind === 'boolean') {
    if (option.current === (speed === 'fast')) return { way: 'met' }
    return ask(option.id, speed === 'fast')
  }
  const values = option.values.filter(({ value }) => (speed === 'fast' ? FAST : NORMAL).test(value))
  const [only] = values
  if (!only || values.length > 1) return { way: 'reason', reason: 'value_ambiguous' }
  return only.value === option.current ? { way: 'met' } : ask(option.id, only.value)
}

function wayToValue(option: AgentOption, wanted: string, what: string): Way {
  const found =
    option.values.find(({ value }) => value === wanted) ??
    option.values.find(({ value, label }) => same(value, wanted) || same(label, wanted))
  if (!found) return none(`it offers no ${what} ${wanted}, only: ${named(option.values.map(({ value }) => value))}`)
  return found.value === option.current ? { way: 'met' } : ask(option.id, found.value)
}

function ask(configId: string, value: string | boolean): Way {
  const params = typeof value === 'boolean' ? { configId, value, type: 'boolean' as const } : { configId, value }
  return { way: 'ask', choice: { method: 'session/set_config_option', params } }
}

const none = (why: string): Way => ({ way: 'none', why })
const text = (value: string | boolean | undefined) => (typeof value === 'string' ? value : undefined)

function named(names: readonly string[]): string {
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : ''
  return names.slice(0, MAX_NAMED).join(', ') + more
}
