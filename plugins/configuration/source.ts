import type { Configuring, PluginKernel, Preparing, Setting } from '../../kernel/plugin.js'
import { type TextFile, textFile } from '../files/api.js'
import { configText } from './document.js'
import { type ReadSettings, Values } from './in-effect.js'
import { type Layers, layersOf, NOTHING_SAID, readEnvironment, resultOf } from './layers.js'

/** What the file and the environment say. */
export class FileSource implements ReadSettings {
  /** As it was last valid; the file before it was read the first time. */
  text: string
  /** What the file and the environment say by now. */
  layers: Layers = { file: NOTHING_SAID, environment: new Map() }
  /** Why the file as it stands by now changes nothing. */
  problem: string | undefined

  private constructor(
    readonly file: TextFile,
    /** Names the file in messages. */
    readonly where: string,
    private readonly env: PluginKernel['env'],
    text: string,
  ) {
    this.text = text
  }

  /** @throws Fault `config_invalid`, `file_not_regular`, `file_too_large`, StoreError `file_unreadable` */
  static async open({ home, env, room, known, report }: Preparing & Configuring): Promise<Values> {
    const file = textFile(home.config, { room })
    return new Values(new FileSource(file, home.config, env, (await file.read()) ?? ''), known, report)
  }

  read(known: readonly Setting[]): ReadonlyMap<string, unknown> {
    const file = configText(this.text, this.where, known)
    const layers = { file, environment: readEnvironment(this.env, known) }
    this.layers = layers
    const said = known.filter(({ path }) => file.said.has(path) || layers.environment.has(path))
    return new Map(said.map(entry => [entry.path, resultOf(entry, layersOf(entry, layers))]))
  }
}
