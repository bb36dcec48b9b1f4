import type { BridgeProvider } from '../api.js'

/** A setting of a platform that a person can enter. */
export interface ConfigField {
  readonly name: string
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'list'
  readonly about: string
  /** Value for an empty answer; empty: none. */
  readonly usual: string
  /** The adapter's own default; empty: unknown. */
  readonly byDefault: string
  readonly choices: readonly string[]
  readonly isRequired: boolean
  /** Whether it is asked for although it is optional. */
  readonly isAsked: boolean
}

/** Maximum number of fields of a schema. */
const FIELDS_MAX = 50
/** Members that the daemon itself reads, for all platforms. */
export const OWN = new Set(['dm', 'group', 'approvers', 'routing'])

interface Property {
  readonly type?: unknown
  readonly description?: unknown
  readonly title?: unknown
  readonly default?: unknown
  readonly enum?: unknown
  readonly items?: { readonly type?: unknown }
}

/** The JSON Schema of an adapter as text, if it has one. */
export const schemaOf = async ({ configSchema }: Pick<BridgeProvider, 'configSchema'>): Promise<string | undefined> =>
  typeof configSchema === 'function' ? configSchema() : configSchema

/** The fields of an object's JSON Schema, required ones first; objects are left out. */
export function fieldsOf(text: string | undefined): ConfigField[] {
  const { properties, required } = parsed(text)
  const needed = new Set(Array.isArray(required) ? required : [])
  return Object.entries(Object(properties) as Record<string, Property>)
    .filter(([name]) => !OWN.has(name))
    .slice(0, FIELDS_MAX)
    .flatMap(([name, property]) => fieldOf(name, Object(property) as Property, needed.has(name)) ?? [])
    .sort((a, b) => Number(b.isRequired) - Number(a.isRequired))
}

/** Value of a typed text; undefined if it is invalid. */
export function typedValue({ type, choices }: Pick<ConfigField, 'type' | 'choices'>, text: string): unknown {
  if (choices.length > 0 && !choices.includes(text)) return undefined
  if (type === 'boolean') return BOOLEANS[text.toLowerCase()]
  if (type === 'integer' || type === 'number') {
    const value = Number(text)
    return Number.isFinite(value) && (type === 'number' || Number.isInteger(value)) ? value : undefined
  }
  if (type === 'string') return text
  const items = text.split(',').map(item => item.trim())
  return items.filter(item => item !== '')
}

const BOOLEANS: Readonly<Record<string, boolean>> = {
  true: true,
  y: true,
  yes: true,
  false: false,
  n: false,
  no: false,
}

function fieldOf(name: string, property: Property, isRequired: boolean): ConfigField | undefined {
  const { type, description, title, default: usual, enum: choices, items } = property
  const byDefault = ['string', 'number', 'boolean'].includes(typeof usual) ? String(usual) : ''
  const isList = type === 'array' && items?.type === 'string'
  const known = ['string', 'integer', 'number', 'boolean'].find(one => one === type) as ConfigField['type'] | undefined
  if (!known && !isList) return undefined
  return {
    name,
    type: known ?? 'list',
    about: [description, title].find(text => typeof text === 'string') ?? '',
    usual: isRequired ? byDefault : '',
    byDefault,
    choices: Array.isArray(choices) ? choices.filter(choice => typeof choice === 'string') : [],
    isRequired,
    // A list of names, such as rooms to join, has no useful default, so it is asked for.
    isAsked: isList && Array.isArray(usual),
  }
}

/** Description of a nested member, if the schema has one. */
export function aboutOf(text: string | undefined, ...path: readonly string[]): string | undefined {
  let schema: Property & { readonly properties?: unknown } = parsed(text)
  for (const name of path) schema = Object((Object(schema.properties) as Record<string, unknown>)[name])
  return typeof schema.description === 'string' ? schema.description : undefined
}

function parsed(text: string | undefined): { readonly properties?: unknown; readonly required?: unknown } {
  try {
    return Object(JSON.parse(text ?? '{}'))
  } catch {
    return {}
  }
}
