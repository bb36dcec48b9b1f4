/** `svc/plugins/configuration`: explains settings and writes them, with overlays for parts of the daemon's work. */
import { type Actor, type Hook, type Setting, token } from '../../../kernel/plugin.js'
import type { TextFile } from '../files/api.js'
import type { ConfigLayer, ConfigProblem, ConfigText, LayerValue, OverlaidLayers } from './layers.js'

export { configText, problemText } from './document.js'
export { ConfigErrors } from './errors.js'
/** For another plugin that provides the values of settings. */
export { type ReadSettings, Values } from './in-effect.js'
export { editJson, type JsonChange, readJson } from './json-file.js'
export { type ConfigProblem, type OverlaidLayers, valueIn } from './layers.js'

/** State of the configuration file beyond its values. */
export interface ConfigState {
  /** Paths that belong to no loaded plugin; they are kept. */
  readonly unowned: readonly string[]
  /** Paths whose value in the file takes effect with the next start. */
  readonly pending: readonly string[]
  /** Invalid entries of maps, which are ignored, each with its line. */
  readonly leftOut: readonly string[]
  /** Why the current file is not applied, with line and key. */
  readonly problem?: string
}

/** A setting with the origin of its value. */
export interface ExplainedSetting {
  readonly path: string
  readonly section: string
  readonly apply: Setting['apply']
  /** The current value. */
  readonly value: unknown
  /** The strongest layer with a value; for a map `names` has the layer of each name. */
  readonly layer: ConfigLayer
  /** Layers with a value, the weakest first. */
  readonly layers: readonly LayerValue[]
  /** For a map merged by name: the layer of each name. */
  readonly names?: Readonly<Record<string, ConfigLayer>>
  /** The value of the layers, if it waits for the next start. */
  readonly pending?: unknown
  /** The raw JSON value in the file, or in the requested overlay; absent when it sets none. */
  readonly written?: unknown
}

/** One change of one layer. Without a value the layer's value is removed, and the layer below it applies. */
export interface ConfigChange {
  readonly path: string
  /** One entry of a map merged by name; absent: the whole value. */
  readonly name?: string
  /** A JSON value. */
  readonly value?: unknown
}

/** When a change takes effect; `none` when it does not change the current value. */
export type ConfigApply = 'none' | Setting['apply']

export interface PlannedChange {
  readonly path: string
  readonly name?: string
  /** The value of the whole path over all layers. */
  readonly before: unknown
  readonly after: unknown
  readonly apply: ConfigApply
  /** A stronger layer that hides the change. */
  readonly hiddenBy?: ConfigLayer
}

/** The effect of changes that are not written. */
export interface ConfigPlan {
  /** Changes that differ from the layer's content. */
  readonly changes: readonly PlannedChange[]
  /** The strictest of the changes. */
  readonly apply: ConfigApply
  /** Hash of the layers' values before the changes; for `ifHash`. */
  readonly hash: string
  /** Hash of the layers' values after the changes. */
  readonly desired: string
}

export interface ConfigWritten extends ConfigPlan {
  /** False when nothing differed, so that the file was not written. */
  readonly written: boolean
  /** Generation of the values afterwards. */
  readonly generation: number
  readonly active: string
  /** Hash of the layers' values afterwards; differs from `active` while a change waits for a start. */
  readonly hash: string
}

/** Makes a new text of a layer. `problemsOf` finds mistakes in a text; `where` names the layer in messages. */
export type Rewrite = (text: string, where: string, problemsOf: (text: string) => Mistakes) => string
type Mistakes = readonly ConfigProblem[]

/** `dry`: nothing is written. */
export type RewriteOptions = Pick<WriteOptions, 'overlay' | 'actor'> & { readonly dry?: boolean }

/** The layers before and after the text was written; equal when mistakes (`rest`) remain. */
export type Rewritten = Record<'was' | 'will', OverlaidLayers> & { readonly desired: string; readonly rest: Mistakes }

export interface WriteOptions {
  /** The overlay to write instead of the file. */
  readonly overlay?: string | undefined
  /** Refuses the write when the values have another generation. */
  readonly ifGeneration?: number | undefined
  /** Refuses the write when the layers no longer have this hash, from a plan or an earlier write. */
  readonly ifHash?: string | undefined
  /** The author of the change; observers find it as {@link ConfigurationApi.writer}. */
  readonly actor?: Actor | undefined
  /** The file is replaced after this; until then the new one is prepared. Not for an overlay. */
  readonly ready?: Promise<unknown> | undefined
}

/** The configuration, as layers: defaults, the file, an overlay, the environment. */
export interface ConfigurationApi {
  /** Called when values may have changed, with the settings whose owner restarts. */
  readonly changed: Hook<(anew: readonly Setting[]) => void>
  /** Number of changes of the current values since the start, from 1. */
  readonly generation: number
  /** `sha256:` and hex of the current values, `active`, and of the layers' values, `desired`. */
  hashes(overlay?: string): { readonly active: string; readonly desired: string }
  /** The current value of a setting, including that of an overlay if the setting allows one and the overlay exists. */
  get<T>(entry: Setting<T>, overlay?: string): T
  /** Called with later values of a live setting, while the plugin is loaded. */
  onChange<T>(entry: Setting<T>, fn: (value: T) => void, overlay?: string): void
  /** Settings of all plugins. */
  readonly known: readonly Setting[]
  /** The layers, with those of the overlay if it exists. */
  layers(overlay?: string): OverlaidLayers
  /** The latest valid text of the file. */
  readonly text: string
  /** The result of reading a text as the file, without applying it. @throws Fault `config_invalid` */
  parse(text: string): ConfigText
  /** @throws Fault `setting_unknown` */
  explain(path: string, overlay?: string): ExplainedSetting
  /** @throws Fault `setting_unknown`, `setting_invalid`, `setting_not_overlaid`, `overlay_unknown`, `config_ambiguous` */
  plan(changes: readonly ConfigChange[], overlay?: string): ConfigPlan
  /**
   * Writes all changes or none, durably, keeping comments and order of the file. Live settings have changed when it resolves.
   * @throws Fault as {@link plan}; `config_changed` when a condition does not hold or another program writes the file,
   * `config_invalid` when the file is invalid before the change; StoreError `disk_full`, `file_unwritable`
   */
  write(changes: readonly ConfigChange[], options?: WriteOptions): Promise<ConfigWritten>
  /**
   * Writes another text of a layer, which may be invalid before and after; call {@link reload} then. @throws Fault
   * `config_changed`, `overlay_unknown`
   */
  rewrite(rewrite: Rewrite, options?: RewriteOptions): Promise<Rewritten>
  /** Author of the change that observers are being notified of; undefined when another program saved the file. */
  readonly writer: Actor | undefined
  /** Reads all layers again. An invalid one is not applied, and becomes the `problem` of the state. */
  reload(): Promise<void>
  /**
   * Adds an overlay from a file that its owner controls, until the plugin is released or the returned function is called.
   * @param where names the file in messages
   * @throws Fault `overlay_taken`
   */
  overlay(id: string, file: TextFile, where: string): Promise<() => Promise<void>>
  state(overlay?: string): ConfigState
}

export const Configuration = token<ConfigurationApi>('configuration@1')
