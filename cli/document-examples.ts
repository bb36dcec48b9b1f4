/** A JSON Schema from the OpenAPI document. */
export interface Schema {
  readonly [keyword: string]: unknown
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly prefixItems?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly pattern?: string
  readonly examples?: readonly unknown[]
}

type Components = Readonly<Record<string, Schema>>

/** Example texts by the name of a member; the first one that its schema allows is taken. */
const BY_NAME: Readonly<Record<string, string>> = {
  agent_name: 'reviewer',
  backend: 'none',
  body: 'Review carefully, and say why.',
  brief: 'Review the open pull requests.',
  agent: 'reviewer',
  branch: 'main',
  bridge_id: 'brg_1f0c2d3e4b5a6978',
  bundle_name: 'review',
  channel: 'reviews',
  code: '3f2a1b0c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a',
  command: 'npx',
  cwd: '/home/ada/app',
  daemon: 'workstation',
  description: 'Reviews every pull request',
  display_name: 'Reviewer',
  digest: '3f2a1b0c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a',
  email: 'ada@example.com',
  env_name: 'API_KEY',
  event: 'session.stopped',
  extension_name: 'acme.notes',
  extension: 'acme.notes',
  idempotency_key: 'review-1',
  id: '1f0c2d3e4b5a6978',
  job_id: 'job_1f0c2d3e4b5a6978',
  key: 'log.level',
  message: 'The tests pass.',
  model_id: 'large',
  model: 'large',
  name: 'reviewer',
  origin_path: '/home/ada/notes',
  output: '/home/ada/backups',
  path: '/home/ada/app',
  profile_name: 'standard',
  prompt: 'Review the open pull requests.',
  provider_id: 'claude',
  provider: 'claude',
  ref: 'vault:providers/claude/key',
  reason: 'The work is done.',
  root_dir: '/home/ada/app',
  run_id: 'run_1f0c2d3e4b5a6978',
  scope: 'global',
  secret_ref: 'vault:providers/claude/key',
  secret_value: 'a secret of some length',
  session_id: 'ses_1f0c2d3e4b5a6978',
  slug: 'code-review',
  source: '/home/ada/notes',
  task: 'tsk_1f0c2d3e4b5a6978',
  task_id: 'tsk_1f0c2d3e4b5a6978',
  text: 'Run the tests and fix what fails.',
  timezone: 'Europe/Berlin',
  title: 'Fix the login',
  tool_id: 'service__task_list',
  url: 'https://example.com/hook',
  version: '1.2.0',
  workspace_id: 'ws_1f0c2d3e4b5a6978',
  workspace: 'ws_1f0c2d3e4b5a6978',
}

/** Example objects by the name of a member, for schemas whose members depend on each other. */
const OBJECTS: Readonly<Record<string, object>> = {
  declaration: { name: 'reviewer', event: 'session.post_stop', matcher: {}, command: '/usr/bin/true' },
  schedule: { mode: 'every', interval: '1d' },
  server: { name: 'files', command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem'] },
}

/** Members that an object shows although its schema requires none. */
const SHOWN = ['workspace', 'agent_name', 'source', 'text', 'reason', 'metadata']

/** Texts for members without an example of their own; the first one that the schema allows is taken. */
const TEXTS = ['example', '1f0c2d3e4b5a6978', '30m', '09:00', 'evt_1f0c2d3e4b5a6978', 'a', '1', 'x'.repeat(32)]

const TIME = '2026-11-25T09:30:00.000Z'

/** An example of each JSON body and JSON success reply of the operations of a document, derived from their schemas. */
export function withExamples(document: {
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>
  readonly components?: { readonly schemas?: Components }
}): void {
  const examples = new Examples(document.components?.schemas ?? {})
  for (const operations of Object.values(document.paths))
    for (const operation of Object.values(operations)) {
      const { requestBody, responses = {} } = operation as Operation
      examples.add(requestBody)
      for (const [status, response] of Object.entries(responses)) if (status.startsWith('2')) examples.add(response)
    }
}

interface Media {
  readonly schema?: Schema
  example?: unknown
}
interface Carrier {
  readonly content?: Readonly<Record<string, Media>>
}
interface Operation {
  readonly requestBody?: Carrier
  readonly responses?: Readonly<Record<string, Carrier>>
}

class Examples {
  constructor(private readonly components: Components) {}

  add(carrier: Carrier | undefined): void {
    const media = carrier?.content?.['application/json']
    if (media?.schema) media.example = this.of(media.schema)
  }

  /**
   * The smallest value that a schema allows: its own example if it states one, else its required members. The outermost
   * object has one member at least.
   */
  of(schema: Schema, name = '', depth = 0): unknown {
    if (schema.$ref !== undefined) return this.of(this.#component(schema.$ref), name, depth)
    if (schema.examples?.length) return schema.examples[0]
    if ('const' in schema) return schema.const
    if (schema.enum)
      return schema.enum.find(value => value === BY_NAME[name]) ?? schema.enum.find(value => value !== null) ?? null
    const variants = schema.anyOf ?? schema.oneOf
    if (variants) return this.of(variants.find(one => one.type !== 'null') ?? {}, name, depth)
    if (schema.allOf) return this.of(this.#merged(schema), name, depth)
    const type = typeof schema.type === 'string' ? schema.type : schema.type?.find(one => one !== 'null')
    switch (type) {
      case 'object':
        return this.#object(schema, name, depth)
      case 'array':
        return this.#array(schema, name, depth)
      case 'string':
        return textOf(schema, name)
      case 'integer':
      case 'number':
        return numberOf(schema)
      case 'boolean':
        return true
      case 'null':
        return null
      default:
        return schema.properties ? this.#object(schema, name, depth) : {}
    }
  }

  #object({ properties = {}, required = [] }: Schema, name: string, depth: number): object {
    const known = Object.entries(OBJECTS[name] ?? {})
    if (known.length > 0 && known.every(([member]) => member in properties)) return Object.fromEntries(known)
    const [first] = Object.keys(properties)
    const shown = SHOWN.filter(member => member in properties)
    const least = shown.length > 0 || first === undefined ? shown : [first]
    const names = required.length > 0 || depth > 0 ? required : least
    return Object.fromEntries(names.map(name => [name, this.of(properties[name] ?? {}, name, depth + 1)]))
  }

  /** One item at the outer levels and `minItems` at the inner ones, because schemas may be recursive. */
  #array({ items, prefixItems, minItems }: Schema, name: string, depth: number): unknown[] {
    if (prefixItems) return prefixItems.map(item => this.of(item, name, depth + 1))
    const least = typeof minItems === 'number' ? minItems : 0
    const count = Math.max(least, items && depth < 3 ? 1 : 0)
    return Array.from({ length: count }, () => this.of(items ?? {}, name.replace(/s$/, ''), depth + 1))
  }

  #component(ref: string): Schema {
    return this.components[ref.replace('#/components/schemas/', '')] ?? {}
  }

  /** The members of all parts of an `allOf`. */
  #merged({ allOf = [], ...rest }: Schema): Schema {
    const parts = [...allOf.map(part => (part.$ref === undefined ? part : this.#component(part.$ref))), rest as Schema]
    return Object.assign({}, ...parts, {
      properties: Object.assign({}, ...parts.map(({ properties }) => properties)),
      required: parts.flatMap(({ required = [] }) => required),
    })
  }
}

function textOf(
  { format, pattern, minLength = 0, maxLength = Number.POSITIVE_INFINITY }: Schema,
  name: string,
): string {
  if (format === 'date-time') return TIME
  if (format === 'date') return TIME.slice(0, 10)
  if (format === 'uri') return 'https://example.com'
  if (format === 'uuid') return '1f0c2d3e-4b5a-4697-8899-aabbccddeeff'
  const allowed = pattern === undefined ? undefined : new RegExp(pattern, 'u')
  const fits = (text: string) =>
    text.length >= (minLength as number) && text.length <= (maxLength as number) && (allowed?.test(text) ?? true)
  const own = BY_NAME[name] ?? (name.endsWith('_at') ? TIME : name.endsWith('_name') ? BY_NAME.name : undefined)
  const candidates = [...(own === undefined ? [] : [own]), ...TEXTS]
  return candidates.find(fits) ?? 'x'.repeat(Math.max(1, minLength as number))
}

function numberOf({ minimum, exclusiveMinimum, maximum, multipleOf }: Schema): number {
  const least = typeof minimum === 'number' ? minimum : typeof exclusiveMinimum === 'number' ? exclusiveMinimum + 1 : 0
  const wanted = Math.max(1, least)
  const value = typeof maximum === 'number' ? Math.min(wanted, maximum) : wanted
  return typeof multipleOf === 'number' ? Math.ceil(value / multipleOf) * multipleOf : value
}
