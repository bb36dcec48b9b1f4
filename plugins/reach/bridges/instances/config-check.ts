import { loadJsonSchema } from '../../../work/tools/api.js'
import type { BridgeProvider } from '../api.js'
import type { K } from '../needs.js'
import { OWN, schemaOf } from './config-fields.js'

type Loaded = Awaited<ReturnType<typeof loadJsonSchema>>
type Provider = Pick<BridgeProvider, 'extension' | 'platform' | 'configSchema'>

/** What is wrong with a configuration, or with the schema that it is to be held to. */
export interface ConfigProblem {
  /** `schema`: of the adapter. */
  readonly of: 'config' | 'schema'
  /** `provider_config.port: integer wanted` */
  readonly text: string
}

/** Holds `provider_config` to the JSON Schema of its adapter. */
export class ConfigCheck {
  #patterns: InstanceType<Loaded['PatternThread']> | undefined

  constructor(private readonly kernel: Pick<K, 'scope'>) {}

  /** What keeps the schema of an adapter from being used; undefined where it can be, or there is none. */
  async schemaProblem(provider: Provider): Promise<string | undefined> {
    const schema = await this.#schema(provider)
    return typeof schema === 'string' ? schema : undefined
  }

  /** What the schema of an adapter refuses of a configuration; undefined where it allows it, or there is none. */
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

  /** The schema; a text where it cannot be used. */
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

/** What of a configuration is the adapter's: members of the daemon's own are not, unless the schema names them. */
function othersOf(schema: Readonly<Record<string, unknown>>, config: Readonly<Record<string, unknown>>) {
  const named = Object(schema.properties) as object
  return Object.fromEntries(Object.entries(config).filter(([name]) => !OWN.has(name) || Object.hasOwn(named, name)))
}
