import { isDeepStrictEqual } from 'node:util'
import type { Setting } from '../../../kernel/plugin.js'
import type { ExplainedSetting } from './api.js'
import { type ConfigLayer, type ConfigText, type LayerValue, resultOf, type Said } from './layers.js'
import type { SharedFile } from './save/shared-file.js'

/** A layer that is a file. */
export interface Layer {
  readonly file: SharedFile
  /** Names it in messages. */
  readonly where: string
  /** As it was last valid, and what it says. */
  readonly text: string
  readonly document: ConfigText
  /** @throws Fault `config_invalid`, and nothing has changed */
  take(text: string): void
}

/**
 * Tells of a setting.
 * @param value in force
 * @param said what the file that is asked about says
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
