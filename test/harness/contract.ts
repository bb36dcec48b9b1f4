import fs from 'node:fs'
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'

/** JSON Schema as the contract data and the converter write it. */
export interface JsonSchema {
  readonly $ref?: string
  readonly $defs?: Readonly<Record<string, JsonSchema>>
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly format?: string
  readonly pattern?: string
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly items?: JsonSchema
  readonly additionalProperties?: JsonSchema | boolean
  readonly anyOf?: readonly JsonSchema[]
  readonly oneOf?: readonly JsonSchema[]
  readonly allOf?: readonly JsonSchema[]
}

export interface ContractParameter {
  readonly name: string
  readonly type: string
  readonly required: boolean
  readonly enum?: readonly string[]
  readonly min?: number
  readonly max?: number
}

export interface ContractRoute {
  readonly area: string
  readonly method: string
  readonly path: string
  readonly query: readonly ContractParameter[]
  readonly body: JsonSchema | null
  readonly responses: Readonly<Record<string, JsonSchema | null>>
}

interface ContractFile {
  readonly schemas: Readonly<Record<string, JsonSchema>>
  readonly routes: readonly ContractRoute[]
}

const read = (name: string): ContractFile =>
  JSON.parse(fs.readFileSync(new URL(`../contract/${name}`, import.meta.url), 'utf8'))
const first = read('contract.json')
const completing = read('contract-completing.json')

/** All routes; those of contract.json come first and so win over contract-completing.json. */
export const contractRoutes: readonly ContractRoute[] = [...first.routes, ...completing.routes]

const schemas: Readonly<Record<string, JsonSchema>> = { ...completing.schemas, ...first.schemas }

/** The schema itself, where it is a reference into the contract data. */
export function resolveContract(schema: JsonSchema): JsonSchema {
  return schema.$ref?.startsWith('svc:') ? resolveContract(schemas[schema.$ref.slice('svc:'.length)] ?? {}) : schema
}

const segments = (path: string) =>
  path
    .replace(/[?#].*$/, '')
    .split('/')
    .filter(Boolean)
const isParameter = (segment: string) => segment.startsWith('{')
const templates = contractRoutes.map(route => ({ route, template: segments(route.path) }))

/**
 * The route of a request; a literal segment wins over a parameter, the leftmost difference decides.
 * @param path a path template or a concrete path, with or without query
 */
export function findRoute(method: string, path: string): ContractRoute | undefined {
  const wanted = segments(path)
  const matching = templates.filter(
    ({ route, template }) =>
      route.method === method.toUpperCase() &&
      template.length === wanted.length &&
      template.every((segment, i) => isParameter(segment) || segment === wanted[i]),
  )
  const rank = ({ template }: (typeof templates)[number]) =>
    template.map(segment => (isParameter(segment) ? '1' : '0')).join('')
  return matching.sort((a, b) => rank(a).localeCompare(rank(b)))[0]?.route
}

const ajv = new Ajv2020({ allErrors: true, strict: false })
formats.default(ajv)
ajv.addSchema(Object.values(schemas))
const compiled = new Map<JsonSchema, ValidateFunction>()

/**
 * What is wrong with a reply by the contract data, one line a fault; nothing for a route or status that it does not
 * name. The body is as parsed from JSON, undefined where there was none.
 */
export function validateReply(method: string, path: string, status: number, body: unknown): string[] {
  const schema = findRoute(method, path)?.responses[String(status)]
  if (schema === undefined) return []
  if (schema === null) return body === undefined || body === '' ? [] : [`/: status ${status} comes without a body`]
  let validate = compiled.get(schema)
  if (!validate) {
    validate = ajv.compile(schema)
    compiled.set(schema, validate)
  }
  return validate(body) ? [] : (validate.errors ?? []).map(describe)
}

function describe({ instancePath, message, params, keyword }: ErrorObject): string {
  const allowed = keyword === 'enum' ? `: ${(params.allowedValues as unknown[]).join(', ')}` : ''
  return `${instancePath || '/'}: ${message ?? keyword}${allowed}`
}

/** Follows the references of a converted schema to itself. */
export function resolveOwn(root: JsonSchema): (schema: JsonSchema) => JsonSchema {
  return schema => (schema.$ref?.startsWith('#/$defs/') ? (root.$defs?.[schema.$ref.slice(8)] ?? {}) : schema)
}

/** One thing that a schema says, as a line: `jobs[].name` has the property, `…=value`, `…:type`, `…!` for required. */
export type Fact = string

/**
 * The facts of a schema over all its variants (variants are no level: the depth at which it stops is that of the value), with dotted paths: `jobs[].schedule.mode=cron`.
 * @param resolve follows references: `resolveContract`, or one for the definitions of a converted schema
 */
export function schemaFacts(schema: JsonSchema, resolve: (schema: JsonSchema) => JsonSchema = s => s): Set<Fact> {
  const facts = new Set<Fact>()
  const visit = (unresolved: JsonSchema, at: string, depth: number): void => {
    if (depth > 14) return
    const s = resolve(unresolved)
    for (const variant of [...(s.anyOf ?? []), ...(s.oneOf ?? []), ...(s.allOf ?? [])]) visit(variant, at, depth)
    const values = s.enum ?? (s.const === undefined ? [] : [s.const])
    for (const value of values) if (value !== null) facts.add(`${at}=${String(value)}`)
    for (const type of s.type === undefined ? values.map(typeOf) : [s.type].flat()) facts.add(`${at}:${type}`)
    if (s.format) facts.add(`${at}~${s.format}`)
    for (const [name, property] of Object.entries(s.properties ?? {})) {
      const path = at ? `${at}.${name}` : name
      facts.add(path)
      if (s.required?.includes(name)) facts.add(`${path}!`)
      visit(property, path, depth + 1)
    }
    if (s.items) visit(s.items, `${at}[]`, depth + 1)
    if (typeof s.additionalProperties === 'object') visit(s.additionalProperties, `${at}{}`, depth + 1)
  }
  visit(schema, '', 0)
  return facts
}

const typeOf = (value: unknown) => (value === null ? 'null' : typeof value)
