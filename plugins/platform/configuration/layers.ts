import * as v from 'valibot'
import { jsonOrText } from '../../../kernel/kit/canonical.js'
import { issueText } from '../../../kernel/kit/issue-text.js'
import { Fault, type PluginKernel, type Setting } from '../../../kernel/plugin.js'
import type { SharedFile } from './save/shared-file.js'

/** Origins of values, the weakest first: a stronger layer hides a weaker one's value of the same path. */
export const configLayers = ['default', 'file', 'overlay', 'environment'] as const
export type ConfigLayer = (typeof configLayers)[number]

/** The value of a path in one layer. */
export interface LayerValue {
  readonly layer: ConfigLayer
  /** `config.json:12`, or the name of a variable; empty for a default. */
  readonly where: string
  readonly value: unknown
}

/** The value of one path in a text. */
export interface Said {
  /** The value as decoded by the owner's schema. */
  readonly value: unknown
  readonly raw: unknown
  /** `config.json:12` */
  readonly where: string
}

/** A mistake in a text. */
export interface ConfigProblem {
  /** Dotted; empty for a syntax error. */
  readonly path: string
  /** `config.json:12` */
  readonly where: string
  /** The problem, with the path. */
  readonly text: string
}

/** One decoded text of the configuration: its values by dotted path, and paths without an owner. */
export interface ConfigText {
  readonly said: ReadonlyMap<string, Said>
  readonly unowned: readonly string[]
  /** Invalid entries of maps merged by name. */
  readonly leftOut: readonly ConfigProblem[]
}

export const NOTHING_SAID: ConfigText = { said: new Map(), unowned: [], leftOut: [] }

/** A layer that is stored in a file. */
export interface Layer {
  readonly file: SharedFile
  /** Names it in messages. */
  readonly where: string
  /** The latest valid text, and its content. */
  readonly text: string
  readonly document: ConfigText
  /** Why the current file is not applied. */
  problem: string | undefined
  /** @throws Fault `config_invalid`, without any change */
  take(text: string): void
}

/** The layers above the defaults, the weaker first. */
export interface Layers {
  readonly file: ConfigText
  readonly environment: ReadonlyMap<string, Said>
}

/** The layers above the defaults, with the requested overlay. */
export interface OverlaidLayers extends Layers {
  readonly overlay?: ConfigText | undefined
}

/** The values of a setting in the layers, the weakest first. */
export function layersOf(
  { path, default: initial }: Setting,
  { file, overlay, environment }: OverlaidLayers,
): LayerValue[] {
  const above: readonly (readonly [ConfigLayer, Said | undefined])[] = [
    ['file', file.said.get(path)],
    ['overlay', overlay?.said.get(path)],
    ['environment', environment.get(path)],
  ]
  return [
    { layer: 'default', where: '', value: initial },
    ...above.flatMap(([layer, said]) => (said ? [{ layer, where: said.where, value: said.value }] : [])),
  ]
}

/** The resulting value of a setting: that of the strongest layer; for a map merged by name the strongest of each name. */
export function resultOf({ merge }: Setting, layers: readonly LayerValue[]): unknown {
  if (merge !== 'by-name') return layers.at(-1)?.value
  return Object.fromEntries(layers.flatMap(({ value }) => Object.entries(value as object)))
}

/** {@link resultOf} the layers, without a list of them: each change asks for the values of all settings several times. */
export function valueIn(entry: Setting, { environment, overlay, file }: OverlaidLayers): unknown {
  if (entry.merge === 'by-name') return resultOf(entry, layersOf(entry, { environment, overlay, file }))
  const said = environment.get(entry.path) ?? overlay?.said.get(entry.path) ?? file.said.get(entry.path)
  return said ? said.value : entry.default
}

/**
 * The values of settings from environment variables: JSON, or plain text.
 * @throws Fault `config_invalid` naming the variable
 */
export function readEnvironment(env: PluginKernel['env'], known: readonly Setting[]): Map<string, Said> {
  const said = new Map<string, Said>()
  for (const { path, env: name, schema } of known) {
    const text = name === undefined ? undefined : env[name]
    if (name === undefined || text === undefined) continue
    const decoded = [jsonOrText(text), text].map(raw => ({ raw, ...v.safeParse(schema, raw) }))
    const good = decoded.find(({ success }) => success)
    if (!good) {
      const what = issueText((decoded[0]?.issues ?? [])[0] as v.BaseIssue<unknown>)
      throw new Fault('config_invalid', 500, `${name}, for ${path}: ${what}`, { next: `unset ${name}` })
    }
    said.set(path, { value: good.output, raw: good.raw, where: name })
  }
  return said
}
