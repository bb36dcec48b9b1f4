import { type ConversionConfig, toJsonSchema } from '@valibot/to-json-schema'
import type * as v from 'valibot'
import { code } from './markdown.js'

/** The parts of a JSON Schema that the pages show. */
export interface Json {
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly Json[]
  readonly oneOf?: readonly Json[]
  readonly allOf?: readonly Json[]
  readonly items?: Json
  readonly properties?: Readonly<Record<string, Json>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Json
  readonly default?: unknown
  readonly description?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly maxItems?: number
}

/** The schema of the input form; code rules are left out. */
export function jsonOf(schema: v.GenericSchema): Json {
  const written: ConversionConfig = { typeMode: 'input', errorMode: 'ignore' }
  return toJsonSchema(schema, written) as Json
}

export interface Member {
  /** Dotted path; `[]` marks an item of a list, `<name>` a key of a table. */
  readonly path: string
  readonly type: string
  readonly isRequired: boolean
  readonly fallback: string
  readonly description: string
}

/** The members of an object; members of nested tables follow their table. */
export function membersOf(schema: Json, prefix = ''): Member[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, json]) => {
    const path = prefix + name
    const own: Member = {
      path,
      type: typeOf(json),
      isRequired: schema.required?.includes(name) ?? false,
      fallback: isShown(json.default) ? code(JSON.stringify(json.default)) : '',
      description: json.description ?? '',
    }
    return [own, ...below(json, path)]
  })
}

/** An empty list or table is the same as an omitted one. */
const isShown = (fallback: unknown) =>
  fallback !== undefined && !(typeof fallback === 'object' && Object.keys(fallback ?? {}).length === 0)

function below(json: Json, path: string): Member[] {
  if (json.properties) return membersOf(json, `${path}.`)
  if (json.items) return below(json.items, `${path}[]`)
  const values = json.additionalProperties
  return typeof values === 'object' ? below(values, `${path}.<name>`) : []
}

/** A readable type. */
export function typeOf(json: Json): string {
  const { anyOf, oneOf, items, additionalProperties: values } = json
  if (json.const !== undefined) return code(JSON.stringify(json.const))
  if (json.enum) return json.enum.map(value => code(JSON.stringify(value))).join(', ')
  const either = anyOf ?? oneOf
  if (either) return [...new Set(either.map(typeOf))].join(' or ')
  if (items) return `list of ${typeOf(items)}`
  if (json.properties) return 'table'
  if (typeof values === 'object' && Object.keys(values).length > 0) return `table of ${typeOf(values)} by name`
  const { minimum, maximum, maxLength } = json
  const range = [minimum !== undefined && `at least ${minimum}`, maximum !== undefined && `at most ${maximum}`]
  const bounds = [...range, maxLength !== undefined && `at most ${maxLength} characters`].filter(Boolean)
  const type = NAMES[String(json.type)] ?? 'any value'
  return bounds.length === 0 ? type : `${type}, ${bounds.join(', ')}`
}

const NAMES: Readonly<Record<string, string>> = {
  string: 'text',
  boolean: 'true or false',
  integer: 'integer',
  number: 'number',
  object: 'table',
  array: 'list',
  null: 'null',
}
