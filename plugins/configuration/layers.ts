import { type ConfigText, type Layers, type Said, type Setting, strongest } from '../../kernel/plugin.js'

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
