import type { Configuring, SettingSource, Starting } from '../../../kernel/platform.js'
import type { PluginKernel, Setting } from '../../../kernel/plugin.js'
import { textFile } from '../files/api.js'
import { configText } from './document.js'
import { type ReadSettings, Values, valuesOf } from './in-effect.js'
import { type ConfigText, type Layer, type Layers, NOTHING_SAID, readEnvironment, valueIn } from './layers.js'
import { type SharedFile, sharedFile } from './save/shared-file.js'

/** The values of the configuration file and the environment. */
export class FileSource implements ReadSettings, Layer {
  /** The latest valid text; empty before the first read. */
  text: string
  /** Current content of the file and the environment. */
  layers: Layers = { file: NOTHING_SAID, environment: new Map() }
  /** Why the current file is not applied. */
  problem: string | undefined
  /** Runs a change of the values; the service compares them before and after. */
  changing = (change: () => void): void => change()
  /** The kernel's settings, which read from here. */
  readonly values: Values

  /** @throws Fault `config_invalid` */
  private constructor(
    readonly file: SharedFile,
    text: string,
    private readonly env: PluginKernel['env'],
    /** Names the file in messages. */
    readonly where: string,
    { known, report }: Configuring,
  ) {
    this.text = text
    this.values = new Values(this, known, report)
  }

  /** @throws Fault `config_invalid`, `file_not_regular`, `file_too_large`, StoreError `file_unreadable` */
  static async open(start: Starting & Configuring): Promise<Values> {
    const { config } = start.home
    const file = sharedFile(textFile(config, { room: start.room }), config, start.room)
    return new FileSource(file, (await file.read()) ?? '', start.env, config, start).values
  }

  /** The source that this plugin made for these values at the start. */
  static of(configured: SettingSource): FileSource {
    const { source } = valuesOf(configured)
    if (source instanceof FileSource) return source
    throw new Error('another plugin already provides the configuration')
  }

  get document(): ConfigText {
    return this.layers.file
  }

  read(known: readonly Setting[]): ReadonlyMap<string, unknown> {
    const layers = { file: configText(this.text, this.where, known), environment: readEnvironment(this.env, known) }
    this.layers = layers
    const said = known.filter(({ path }) => layers.file.said.has(path) || layers.environment.has(path))
    return new Map(said.map(entry => [entry.path, valueIn(entry, layers)]))
  }

  /** A text decoded by the current settings; an overlay may only contain settings that allow it. @throws Fault `config_invalid` */
  parse(text: string, where: string, isOverlay?: boolean): ConfigText {
    return configText(text, where, this.values.known, isOverlay)
  }

  /** Applies a text as the content of the file. @throws Fault `config_invalid`, without any change */
  take(text: string): void {
    const { text: before, problem } = this
    this.problem = undefined
    // The file is read again before each change, and decoding it takes longer than the change.
    if (text === before) return
    this.text = text
    try {
      this.changing(() => this.values.again())
    } catch (error) {
      Object.assign(this, { text: before, problem })
      throw error
    }
  }
}
