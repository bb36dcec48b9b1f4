import { isDeepStrictEqual } from 'node:util'
import type { Setting } from '../../../kernel/plugin.js'
import type { ExplainedSetting } from './api.js'
import { type ConfigLayer, type ConfigText, type LayerValue, resultOf, type Said } from './layers.js'
import type { SharedFile } from './save/shared-file.js'

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

/**
 * The description of a setting.
 * @param value the current value
 * @param said value and position of the setting in the file that the request names
 */
export function explained(
  entry: Setting,
  layers: readonly LayerValue[],
  value: unknown,
  said: Said | undefined,
): ExplainedSetting {
  const { path, section, apply } = entry
  const current = resultOf(entry, layers)
  return {
    path,
    section,
    apply,
    value,
    layer: layers.at(-1)?.layer ?? 'default',
    layers,
    ...(entry.merge === 'by-name' && { names: namesOf(layers) }),
    ...(!isDeepStrictEqual(current, value) && { pending: current }),
    ...(said && { written: said.raw }),
  }
}

/** The layer of each name of a map. */
const namesOf = (layers: readonly LayerValue[]): Readonly<Record<string, ConfigLayer>> =>
  Object.fromEntries(layers.flatMap(({ layer, value }) => Object.keys(value as object).map(name => [name, layer])))
