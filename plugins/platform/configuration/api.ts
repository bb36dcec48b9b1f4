/** `svc/plugins/configuration`: explains settings and writes them, with overlays for parts of the daemon's work. */
import { type Actor, type Hook, type Setting, token } from '../../../kernel/plugin.js'
import type { TextFile } from '../files/api.js'
import type { ConfigLayer, ConfigProblem, ConfigText, LayerValue, OverlaidLayers } from './layers.js'

export { configText, problemText } from './document.js'
export { ConfigErrors } from './errors.js'
/** For another plugin that says what is configured. */
export { type ReadSettings, Values } from './in-effect.js'
export { editJson, type JsonChange, readJson } from './json-file.js'
export { type ConfigProblem, layersOf, type OverlaidLayers, resultOf } from './layers.js'

/** What can be said of the configuration file beside its values. */
export interface ConfigState {
  /** Paths that no plugin here owns; they are kept. */
  readonly unowned: readonly string[]
  /** Paths whose value in the file takes effect with the next start. */
  readonly pending: readonly string[]
  /** Entries of maps that are not valid and therefore left out, each with its line. */
  readonly leftOut: readonly string[]
  /** Why the file as it stands changes nothing, naming line and key. */
  readonly problem?: string
}

/** A setting with where its value comes from. */
export interface ExplainedSetting {
  readonly path: string
  readonly section: string
  readonly apply: Setting['apply']
  /** In force. */
  readonly value: unknown
  /** The strongest layer that says something; of a map the one that decided each name is in `names`. */
  readonly layer: ConfigLayer
  /** Those that say something, the weakest first. */
  readonly layers: readonly LayerValue[]
  /** Of a map merged by name: the layer of each name. */
  readonly names?: Readonly<Record<string, ConfigLayer>>
  /** What the layers say by now, where that waits for the next start. */
  readonly pending?: unknown
  /** What the file, or the overlay that was asked for, says itself, as JSON has it; absent where it says nothing. */
  readonly written?: unknown
}

/** One change of one layer. Without a value the layer says nothing any more, and what is below it shows. */
export interface ConfigChange {
  readonly path: string
  /** One entry of a map merged by name; absent: the whole value. */
  readonly name?: string
  /** As JSON has it. */
  readonly value?: unknown
}

/** When a change is in force: `none` changes nothing that is. */
export type ConfigApply = 'none' | Setting['apply']

export interface PlannedChange {
  readonly path: string
  readonly name?: string
  /** Of the path as a whole, all layers considered. */
  readonly before: unknown
  readonly after: unknown
  readonly apply: ConfigApply
  /** A stronger layer that hides what is changed. */
  readonly hiddenBy?: ConfigLayer
}

/** What changes would come to; nothing is written. */
export interface ConfigPlan {
  /** Those that change what the layer says. */
  readonly changes: readonly PlannedChange[]
  /** The strictest of the changes. */
  readonly apply: ConfigApply
  /** Of what the layers say before the changes; for `ifHash`. */
  readonly hash: string
  /** Of what the layers say after them. */
  readonly desired: string
}

export interface ConfigWritten extends ConfigPlan {
  /** False where no change was one: the file is as it was. */
  readonly written: boolean
  /** Of what is in force afterwards. */
  readonly generation: number
  readonly active: string
  /** Of what the layers say afterwards; not `active` while something waits for a start. */
  readonly hash: string
}

/** Makes another text of a layer, whose mistakes `problemsOf` finds; `where` names it in messages. */
export type Rewrite = (text: string, where: string, problemsOf: (text: string) => Mistakes) => string
type Mistakes = readonly ConfigProblem[]

/** `dry`: nothing is written. */
export type RewriteOptions = Pick<WriteOptions, 'overlay' | 'actor'> & { readonly dry?: boolean }

/** The layers before and after a text was written, the same where the `rest` is still wrong. */
export type Rewritten = Record<'was' | 'will', OverlaidLayers> & { readonly desired: string; readonly rest: Mistakes }

export interface WriteOptions {
  /** The overlay that is written instead of the file. */
  readonly overlay?: string | undefined
  /** Refused unless what is in force is still of this generation. */
  readonly ifGeneration?: number | undefined
  /** Refused unless the layers still say what a plan or an earlier write gave this hash for. */
  readonly ifHash?: string | undefined
  /** On whose behalf; who is told of the change finds it as {@link ConfigurationApi.writer}. */
  readonly actor?: Actor | undefined
}

/** The configuration, as layers: defaults, the file, an overlay, the environment. */
export interface ConfigurationApi {
  /** Values may be others; settings whose owner begins anew are named. */
  readonly changed: Hook<(anew: readonly Setting[]) => void>
  /** How often what is in force has changed since the start, from 1. */
  readonly generation: number
  /** `sha256:` and hex of the values in force, `active`, and of what the layers say by now, `desired`. */
  hashes(overlay?: string): { readonly active: string; readonly desired: string }
  /** Value in force of a setting, with what an overlay says where the setting allows one and the overlay is there. */
  get<T>(entry: Setting<T>, overlay?: string): T
  /** Told of every later value that takes effect at once, while the plugin is loaded. */
  onChange<T>(entry: Setting<T>, fn: (value: T) => void, overlay?: string): void
  /** Every setting that has an owner now. */
  readonly known: readonly Setting[]
  /** The file, as it was last valid. */
  readonly text: string
  /** What a text would be as the file; nothing is changed. @throws Fault `config_invalid` */
  parse(text: string): ConfigText
  /** @throws Fault `setting_unknown` */
  explain(path: string, overlay?: string): ExplainedSetting
  /** @throws Fault `setting_unknown`, `setting_invalid`, `setting_not_overlaid`, `overlay_unknown`, `config_ambiguous` */
  plan(changes: readonly ConfigChange[], overlay?: string): ConfigPlan
  /**
   * Writes all changes or none, durably, keeping comments and order of the file. What takes effect at once has when it resolves.
   * @throws Fault as {@link plan}; `config_changed` when a condition does not hold or somebody else writes the file,
   * `config_invalid` when it is not valid as it is; StoreError `disk_full`, `file_unwritable`
   */
  write(changes: readonly ConfigChange[], options?: WriteOptions): Promise<ConfigWritten>
  /** Writes another text of a layer, which may be invalid before and after: {@link reload} then. @throws Fault `config_changed`, `overlay_unknown` */
  rewrite(rewrite: Rewrite, options?: RewriteOptions): Promise<Rewritten>
  /** Whose change of the file is being told of now; undefined where somebody else has saved it. */
  readonly writer: Actor | undefined
  /** Reads all layers again. What is not valid changes nothing, and is the `problem` of the state. */
  reload(): Promise<void>
  /**
   * Adds an overlay, read from a file that its owner confines, until the plugin goes or the returned function is called.
   * @param where names the file in messages
   * @throws Fault `overlay_taken`
   */
  overlay(id: string, file: TextFile, where: string): Promise<() => Promise<void>>
  state(overlay?: string): ConfigState
}

export const Configuration = token<ConfigurationApi>('configuration@1')
