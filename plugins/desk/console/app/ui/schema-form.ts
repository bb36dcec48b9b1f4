import { text } from '../text.js'
import type { FormField, Values } from './form-field.js'

const words = text.schemaForm

type Json = Readonly<Record<string, unknown>>

/** The conversion of a field's text to a member. */
type Kind = 'text' | 'number' | 'boolean' | 'lines' | 'secret' | 'json'

interface Member {
  readonly path: readonly string[]
  readonly kind: Kind
  readonly field: FormField
}

/** The fields for the members of a JSON Schema, and the object with their values. */
export interface SchemaForm {
  readonly fields: readonly FormField[]
  /** @throws Error for a member with invalid JSON */
  objectOf(values: Values): Record<string, unknown>
}

/** Nested objects get fields down to this depth; deeper ones are edited as JSON. */
const DEEPEST = 3
/** A text with a larger maximum length gets a field of several lines. */
const LONG = 1000

/**
 * Makes a form of a JSON Schema. Extensions write such schemas, so every part may be missing or malformed. The daemon validates
 * the sent object against the schema.
 * @param before the present object; its members without a field are kept
 * @param prefix prefix of all field names
 * @param without members that get no field
 */
export function schemaForm(
  source: string | undefined,
  before: Json,
  { prefix = '', without = [] }: { readonly prefix?: string; readonly without?: readonly string[] } = {},
): SchemaForm {
  const members = membersOf(objectOf(parsed(source)), before, [], prefix).filter(
    ({ path: [first = ''] }) => !without.includes(first),
  )
  return {
    fields: members.map(({ field }) => field),
    objectOf(values) {
      const made = structuredClone(before) as Record<string, unknown>
      for (const { path, kind, field } of members) {
        const value = values[field.name] ?? ''
        // An empty secret field keeps the stored secret.
        if (kind !== 'secret' || value !== '') put(made, path, value === '' ? undefined : memberValue(kind, value))
      }
      return made
    },
  }
}

/** A member of a schema or of a nested object's schema. */
export function memberOf(source: string | undefined, ...path: readonly string[]): Json {
  return path.reduce<Json>((schema, name) => objectOf(objectOf(schema.properties)[name]), objectOf(parsed(source)))
}

function membersOf(schema: Json, before: Json, path: readonly string[], prefix: string): Member[] {
  const required = Array.isArray(schema.required) ? schema.required : []
  const members = Object.entries(objectOf(schema.properties)).flatMap(([name, property]) => {
    // Setting a member of this name would change the object's prototype.
    if (name === '__proto__') return []
    const at = [...path, name]
    const one = objectOf(property)
    const isObject = one.type === 'object' && Object.keys(objectOf(one.properties)).length > 0
    if (isObject && at.length < DEEPEST) return membersOf(one, objectOf(before[name]), at, prefix)
    return memberAt(at, one, before[name], { prefix, isRequired: path.length === 0 && required.includes(name) })
  })
  return members.sort((a, b) => Number(Boolean(a.field.optional)) - Number(Boolean(b.field.optional)))
}

function memberAt(
  path: readonly string[],
  schema: Json,
  now: unknown,
  { prefix, isRequired }: { readonly prefix: string; readonly isRequired: boolean },
): Member {
  const kind = kindOf(schema)
  const usual = schema.default
  const about = typeof schema.description === 'string' ? schema.description : ''
  const title = typeof schema.title === 'string' ? schema.title : path.join('.').replaceAll('_', ' ')
  const hint = [about, kind === 'lines' ? words.lines : kind === 'json' ? words.json : ''].filter(Boolean).join(' ')
  const choices = choicesOf(schema, kind)
  const start = now === undefined && isRequired ? usual : now
  const field: FormField = {
    name: `${prefix}${path.join('.')}`,
    label: title,
    kind: choices ? 'select' : inputOf(kind, schema),
    value: kind === 'secret' ? '' : shownAs(kind, start),
    ...(!isRequired && { optional: true }),
    ...(hint !== '' && { hint }),
    ...(choices && { options: isRequired ? choices : [['', unset(usual)] as const, ...choices] }),
    ...(!isRequired && !choices && { placeholder: usual === undefined ? '' : shownAs(kind, usual) }),
  }
  return { path, kind, field }
}

function kindOf({ type, items, format, writeOnly }: Json): Kind {
  if (type === 'string') return format === 'password' || writeOnly === true ? 'secret' : 'text'
  if (type === 'integer' || type === 'number') return 'number'
  if (type === 'boolean') return 'boolean'
  return type === 'array' && objectOf(items).type === 'string' ? 'lines' : 'json'
}

function inputOf(kind: Kind, { maxLength }: Json): NonNullable<FormField['kind']> {
  if (kind === 'number') return 'number'
  if (kind === 'secret') return 'password'
  return kind === 'lines' || kind === 'json' || Number(maxLength) > LONG ? 'area' : 'text'
}

function choicesOf(schema: Json, kind: Kind): readonly (readonly [string, string])[] | undefined {
  if (kind === 'boolean') return ['true', 'false'].map(value => [value, value === 'true' ? words.yes : words.no])
  if (kind !== 'text' || !Array.isArray(schema.enum)) return undefined
  return schema.enum.filter(one => typeof one === 'string').map(one => [one, one] as const)
}

const unset = (usual: unknown) =>
  usual === undefined ? words.unset : words.usual(typeof usual === 'boolean' ? yesNo(usual) : String(usual))
const yesNo = (is: boolean) => (is ? words.yes : words.no)

function shownAs(kind: Kind, value: unknown): string {
  if (value === undefined || value === null) return ''
  if (kind === 'lines' && Array.isArray(value)) return value.join('\n')
  return kind === 'json' || typeof value === 'object' ? JSON.stringify(value, null, 2) : String(value)
}

function memberValue(kind: Kind, value: string): unknown {
  if (kind === 'number') return Number(value)
  if (kind === 'boolean') return value === 'true'
  if (kind === 'lines')
    return value
      .split('\n')
      .map(line => line.trim())
      .filter(Boolean)
  return kind === 'json' ? jsonOf(value) : value
}

function jsonOf(value: string): unknown {
  try {
    return JSON.parse(value)
  } catch {
    throw new Error(text.manage.badJson)
  }
}

/** Sets a member, or removes it and all objects that become empty. */
function put(into: Record<string, unknown>, [name = '', ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) {
    if (value === undefined) delete into[name]
    else into[name] = value
    return
  }
  const below = { ...objectOf(into[name]) } as Record<string, unknown>
  const hadMembers = Object.keys(below).length > 0
  put(below, rest, value)
  if (Object.keys(below).length > 0) into[name] = below
  else if (hadMembers) delete into[name]
}

const objectOf = (value: unknown): Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {}

function parsed(source: string | undefined): unknown {
  try {
    return JSON.parse(source ?? '{}')
  } catch {
    return {}
  }
}
