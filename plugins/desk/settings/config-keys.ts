import * as v from 'valibot'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { shown } from '../../../kernel/kit/text.js'
import { messageOf, type Setting } from '../../../kernel/plugin.js'
import type {
  KeyQuery,
  ListKeysQuery,
  ListKeysReply,
  SettingKey,
  ValidateSettingsReply,
} from '../../../schemas/settings.js'
import { type ConfigChange, type ConfigurationApi, problemText } from '../../platform/configuration/api.js'
import { SettingsErrors } from './errors.js'
import { asWritten, partOf, withPart } from './show.js'
import type { Targets } from './targets.js'
import type { SettingsWriter } from './writer.js'

/** The configuration by key: values, their sources, and the file change for a new value. */
export class ConfigKeys {
  constructor(
    private readonly configuration: ConfigurationApi,
    private readonly writer: Pick<SettingsWriter, 'generation'>,
    private readonly targets: Pick<Targets, 'workspace' | 'overlayOf'>,
  ) {}

  async list({ section, prefix = '', workspace_id: id }: ListKeysQuery): Promise<ListKeysReply> {
    const { configuration } = this
    const overlay = await this.#overlay(id)
    const mine = configuration.known.filter(
      entry => (section === undefined || entry.section === section) && entry.path.startsWith(prefix),
    )
    const keys = mine.map(entry => this.#describe(entry, overlay)).sort((a, b) => (a.key < b.key ? -1 : 1))
    return { keys, generation: this.writer.generation, active_config_hash: configuration.hashes().active }
  }

  /** One key, or a part of its value. @throws Fault `setting_not_found` */
  async one(key: string, { workspace_id: id }: KeyQuery): Promise<SettingKey> {
    const { entry, rest } = this.#resolve(key)
    const described = this.#describe(entry, await this.#overlay(id), true)
    if (rest.length === 0) return described
    const part = (value: unknown) => partOf(value, rest)
    const value = part(described.value)
    if (value === undefined) throw SettingsErrors.setting_not_found(`${key} is not set`)
    return { ...described, key, value, default: part(described.default) ?? null }
  }

  /** The file change for a new value of a key; a change of a part of a value replaces the whole value. */
  changeOf(key: string, value: unknown, overlay?: string): ConfigChange {
    const { entry, rest } = this.#resolve(key)
    const { path, merge } = entry
    const name = merge === 'by-name' ? rest[0] : undefined
    const inside = rest.slice(name === undefined ? 0 : 1)
    const change = { path, ...(name !== undefined && { name }) }
    if (inside.length === 0) return value === undefined ? change : { ...change, value }
    const { written, value: now } = this.configuration.explain(path, overlay)
    const part = (base: unknown) => (name === undefined ? base : partOf(base, [name]))
    const whole = (base: unknown) => withPart(part(base), inside, value)
    const candidates = [whole(written), whole(asWritten(entry.schema, now))]
    const isValid = (one: unknown) => v.is(entry.schema, name === undefined ? one : { [name]: one })
    return { ...change, value: candidates.find(isValid) ?? candidates[0] }
  }

  check(): ValidateSettingsReply {
    const { pending, unowned, leftOut, problem } = this.configuration.state()
    return {
      valid: problem === undefined,
      ...(problem !== undefined && { problem }),
      pending: [...pending],
      unowned: [...unowned],
      left_out: [...leftOut],
    }
  }

  validate(text: string): ValidateSettingsReply {
    try {
      const { unowned, leftOut } = this.configuration.parse(text)
      return { valid: true, pending: [], unowned: [...unowned], left_out: leftOut.map(problemText) }
    } catch (error) {
      return { valid: false, problem: messageOf(error), pending: [], unowned: [] }
    }
  }

  #describe(entry: Setting, overlay: string | undefined, isWhole = false): SettingKey {
    const { value, layer, layers, pending } = this.configuration.explain(entry.path, overlay)
    const written = (one: unknown) => asWritten(entry.schema, one) ?? null
    const { pipe = [] } = entry.schema as { pipe?: readonly { type: string; description?: string }[] }
    const description = pipe.find(({ type }) => type === 'description')?.description
    return {
      key: entry.path,
      section: entry.section,
      value: written(value),
      default: written(entry.default),
      source: layer,
      lifecycle: entry.apply,
      ...(pending !== undefined && { pending: written(pending) }),
      ...(isWhole && { layers: layers.map(one => ({ ...one, value: written(one.value) })) }),
      ...(description !== undefined && { description }),
      ...choicesIn(entry.schema),
    }
  }

  /** The setting that a key names, and the path of the part within its value. */
  #resolve(key: string): { readonly entry: Setting; readonly rest: readonly string[] } {
    const known = new Map(this.configuration.known.map(entry => [entry.path, entry]))
    const parts = key.split('.')
    for (let length = parts.length; length > 0; length--) {
      const entry = known.get(parts.slice(0, length).join('.'))
      if (entry) return { entry, rest: parts.slice(length) }
    }
    const [near] = [...known.keys()].filter(path => path.startsWith(`${key}.`))
    throw SettingsErrors.setting_not_found(
      near === undefined ? `there is no setting ${shown(key)}` : `${shown(key)} is a group of settings, like ${near}`,
      near === undefined ? {} : { next: command('config list', '--prefix', `${key}.`) },
    )
  }

  async #overlay(id: string | undefined): Promise<string | undefined> {
    const workspace = await this.targets.workspace(id)
    return workspace && this.targets.overlayOf(workspace)
  }
}

/** The allowed values of a setting, if there are only a few. */
function choicesIn(schema: unknown): Pick<SettingKey, 'choices'> {
  const { type, options, wrapped, pipe } = schema as {
    readonly type?: string
    readonly options?: unknown
    readonly wrapped?: unknown
    readonly pipe?: readonly unknown[]
  }
  if (type === 'boolean') return { choices: ['true', 'false'] }
  if (type === 'picklist' && Array.isArray(options)) return { choices: options.map(String) }
  const inner = wrapped ?? (pipe?.[0] === schema ? undefined : pipe?.[0])
  return inner === undefined ? {} : choicesIn(inner)
}
