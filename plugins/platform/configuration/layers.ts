import * as v from 'valibot'
import { issueText } from '../../../kernel/kit/issue-text.js'
import { Fault, type PluginKernel, type Setting } from '../../../kernel/plugin.js'

/** Where values come from, the weakest first: a stronger layer hides what a weaker one says of the same path. */
export const configLayers = ['default', 'file', 'overlay', 'environment'] as const
export type ConfigLayer = (typeof configLayers)[number]

/** What one layer says of a path. */
export interface LayerValue {
  readonly layer: ConfigLayer
  /** `config.json:12`, or the name of a variable; empty for a default. */
  readonly where: string
  readonly value: unknown
}

/** What a text says of one path. */
export interface Said {
  /** As the schema of its owner made it. */
  readonly value: unknown
  readonly raw: unknown
  /** `config.json:12` */
  readonly where: string
}

/** A mistake in a text. */
export interface ConfigProblem {
  /** Dotted; empty for one of the syntax. */
  readonly path: string
  /** `config.json:12` */
  readonly where: string
  /** What is wrong, naming the path. */
  readonly text: string
}

/** One text of the configuration, decoded: what it says by dotted path, and paths that nobody here owns. */
export interface ConfigText {
  readonly said: ReadonlyMap<string, Said>
  readonly unowned: readonly string[]
  /** Entries of maps merged by name that are not valid. */
  readonly leftOut: readonly ConfigProblem[]
}

export const NOTHING_SAID: ConfigText = { said: new Map(), unowned: [], leftOut: [] }

/** What there is above the defaults, the weaker first. */
export interface Layers {
  readonly file: ConfigText
  readonly environment: ReadonlyMap<string, Said>
}

/** What there is above the defaults, with an overlay where one is asked for. */
export interface OverlaidLayers extends Layers {
  readonly overlay?: ConfigText | undefined
}

/** What the layers say of a setting, the weakest first. */
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

/** The value that they come to. */
export const resultOf = (entry: Setting, layers: readonly LayerValue[]): unknown =>
  strongest(
    entry,
    layers.map(({ value }) => value),
  )

/** What values of a setting come to, the weakest first: the strongest; of a map merged by name the strongest of each name. */
function strongest({ merge }: Setting, values: readonly unknown[]): unknown {
  if (merge !== 'by-name') return values.at(-1)
  return Object.fromEntries(values.flatMap(value => Object.entries(value as object)))
}

/**
 * What variables say of the settings that name one: JSON, or a text as it is.
 * @throws Fault `config_invalid` naming the variable
 */
export function readEnvironment(env: PluginKernel['env'], known: readonly Setting[]): Map<string, Said> {
  const said = new Map<string, Said>()
  for (const { path, env: name, schema } of known) {
    const text = name === undefined ? undefined : env[name]
    if (name === undefined || text === undefined) continue
    const decoded = [asJson(text), text].map(raw => ({ raw, ...v.safeParse(schema, raw) }))
    const good = decoded.find(({ success }) => success)
    if (!good) {
      const what = issueText((decoded[0]?.issues ?? [])[0] as v.BaseIssue<unknown>)
      throw new Fault('config_invalid', 500, `${name}, for ${path}: ${what}`, { next: `unset ${name}` })
    }
    said.set(path, { value: good.output, raw: good.raw, where: name })
  }
  return said
}

function asJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
