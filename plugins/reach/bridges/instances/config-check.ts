import { loadJsonSchema } from '../../../work/tools/api.js'
import type { BridgeProvider } from '../api.js'
import type { K } from '../needs.js'
import { OWN, schemaOf } from './config-fields.js'

type Loaded = Awaited<ReturnType<typeof loadJsonSchema>>
type Provider = Pick<BridgeProvider, 'extension' | 'platform' | 'configSchema'>

/** A problem of a configuration or of its schema. */
export interface ConfigProblem {
  /** `schema`: the adapter's schema itself is invalid. */
  readonly of: 'config' | 'schema'
  /** `provider_config.port: integer wanted` */
  readonly text: string
}

/** Validates `provider_config` against the JSON Schema of its adapter. */
export class ConfigCheck {
  #patterns: InstanceType<Loaded['PatternThread']> | undefined

  constructor(private readonly kernel: Pick<K, 'scope'>) {}

  /** Why an adapter's schema cannot be used; undefined if it can, or if there is none. */
  async schemaProblem(provider: Provider): Promise<string | undefined> {
    const schema = await this.#schema(provider)
    return typeof schema === 'string' ? schema : undefined
  }

  /** Problem of a configuration by the adapter's schema; undefined if valid or without a schema. */
  async problem(provider: Provider, config: Readonly<Record<string, unknown>>): Promise<ConfigProblem | undefined> {
    const schema = await this.#schema(provider)
    if (schema === undefined) return undefined
    if (typeof schema === 'string') return { of: 'schema', text: schema }
    const { PatternThread, inputProblem } = await loadJsonSchema()
    if (!this.#patterns) {
      const patterns = new PatternThread()
      this.#patterns = patterns
      this.kernel.scope.defer('bridges.patterns', () => patterns.close())
    }
    const patterns = this.#patterns
    const problem = await inputProblem(schema, othersOf(schema, config), questions => patterns.ask(questions))
    if (problem === undefined) return undefined
    const text = problem.startsWith('input: ') ? problem.slice('input'.length) : `.${problem}`
    return { of: 'config', text: `provider_config${text}` }
  }

  /** The schema; a text with the reason if it is unusable. */
  async #schema(provider: Provider): Promise<Readonly<Record<string, unknown>> | string | undefined> {
    const text = await schemaOf(provider)
    if (text === undefined) return undefined
    const broken = (why: string) =>
      `the config_schema of the extension ${provider.extension} cannot be used: ${why}; its author has to correct it`
    let schema: unknown
    try {
      schema = JSON.parse(text)
    } catch {
      return broken('it is not valid JSON')
    }
    const problem = (await loadJsonSchema()).schemaProblem(schema)
    return problem === undefined ? (schema as Readonly<Record<string, unknown>>) : broken(problem)
  }
}

/** The adapter's part of a configuration: without the daemon's own members, unless the schema names them. */
function othersOf(schema: Readonly<Record<string, unknown>>, config: Readonly<Record<string, unknown>>) {
  const named = Object(schema.properties) as object
  return Object.fromEntries(Object.entries(config).filter(([name]) => !OWN.has(name) || Object.hasOwn(named, name)))
}
