import * as v from 'valibot'
import type { ConfigLayer, LayerValue } from '../contract/config.js'
import { Fault } from '../contract/errors.js'
import type { Setting } from '../contract/surface.js'
import { issueText } from '../issue-text.js'
import type { ConfigDocument, Said } from './document.js'

/** What there is above the defaults. */
export interface Layers {
  readonly file: ConfigDocument
  readonly overlay?: ConfigDocument | undefined
  readonly environment: ReadonlyMap<string, Said>
}

/** What the layers say of a setting, the weakest first. */
export function layersOf({ path, default: initial }: Setting, { file, overlay, environment }: Layers): LayerValue[] {
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

/** The value that they come to: the strongest; of a map merged by name the strongest of each name. */
export function resultOf(entry: Setting, layers: readonly LayerValue[]): unknown {
  if (entry.merge !== 'by-name') return layers.at(-1)?.value
  return Object.fromEntries(layers.flatMap(({ value }) => Object.entries(value as object)))
}

/** The layer of each name of a map. */
export const namesOf = (layers: readonly LayerValue[]): Readonly<Record<string, ConfigLayer>> =>
  Object.fromEntries(layers.flatMap(({ layer, value }) => Object.keys(value as object).map(name => [name, layer])))

/**
 * What variables say of the settings that name one: JSON, or a text as it is.
 * @throws Fault `config_invalid` naming the variable
 */
export function readEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  known: readonly Setting[],
): Map<string, Said> {
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
