import type { Chance } from '../../library/chance.js'

/** As much of a JSON schema as the document uses. */
export interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
}

export interface Parameter {
  readonly name: string
  readonly in: string
}

export interface Operation {
  readonly method: string
  readonly path: string
  readonly parameters: readonly Parameter[]
  readonly body: Schema | undefined
}

interface Document {
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentOperation>>>>
}

interface DocumentOperation {
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
}

/** Every route of an OpenAPI document, and how to make bodies for them. */
export class Routes {
  readonly operations: readonly Operation[]
  readonly #schemas: Readonly<Record<string, Schema>>

  constructor(document: unknown) {
    const { components, paths } = document as Document
    this.#schemas = components.schemas
    this.operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { parameters = [], requestBody }]) => ({
        method: method.toUpperCase(),
        path,
        parameters,
        body: requestBody?.content['application/json']?.schema,
      })),
    )
  }

  /** A value that the schema describes, with some of the optional members. */
  sample(schema: Schema, chance: Chance, depth = 0): unknown {
    if (schema.$ref) return this.sample(this.#schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {}, chance, depth)
    if (schema.const !== undefined) return schema.const
    if (schema.enum) return chance.of(schema.enum)
    const choices = schema.anyOf ?? schema.oneOf ?? schema.allOf
    if (choices) return this.sample(chance.of(choices), chance, depth + 1)
    switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
      case 'object': {
        const wanted = Object.entries(schema.properties ?? {}).filter(
          ([name]) => schema.required?.includes(name) || (depth < 4 && chance.int(3) === 0),
        )
        return Object.fromEntries(wanted.map(([name, member]) => [name, this.sample(member, chance, depth + 1)]))
      }
      case 'array':
        return depth < 4 && schema.items ? [this.sample(schema.items, chance, depth + 1)] : []
      case 'integer':
      case 'number':
        return chance.int(5)
      case 'boolean':
        return chance.int(2) === 0
      case 'null':
        return null
      default:
        return 'x'
    }
  }
}
