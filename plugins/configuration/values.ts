import type { Setting, SettingSource } from '../../kernel/plugin.js'
import type { ConfigState } from './api.js'
import { configText, stateOf } from './document.js'
import { type Values, valuesOf } from './in-effect.js'
import type { ConfigText } from './layers.js'
import { FileSource } from './source.js'

/** What the configuration file says and what comes of it. */
export class FileValues {
  private readonly values: Values
  readonly #source: FileSource

  constructor(configured: SettingSource) {
    this.values = valuesOf(configured)
    const { source } = this.values
    if (!(source instanceof FileSource)) throw new Error('another plugin says what is configured')
    this.#source = source
  }

  get changed() {
    return this.values.changed
  }

  get file() {
    return this.#source.file
  }

  get where(): string {
    return this.#source.where
  }

  get text(): string {
    return this.#source.text
  }

  get layers() {
    return this.#source.layers
  }

  get problem(): string | undefined {
    return this.#source.problem
  }

  set problem(problem: string | undefined) {
    this.#source.problem = problem
  }

  get known(): readonly Setting[] {
    return this.values.known
  }

  get<T>(entry: Setting<T>): T {
    return this.values.get(entry)
  }

  state(): ConfigState {
    const { problem, layers } = this
    return stateOf(layers.file, this.values.pending(), problem)
  }

  /** A text decoded by the settings that have an owner; into an overlay goes only what may be there. @throws Fault `config_invalid` */
  parse(text: string, where: string, isOverlay?: boolean): ConfigText {
    return configText(text, where, this.known, isOverlay)
  }

  /** Makes a text what the file says. @throws Fault `config_invalid`, and nothing has changed */
  take(text: string): void {
    const source = this.#source
    const { text: before, problem } = source
    source.text = text
    source.problem = undefined
    try {
      this.values.again()
    } catch (error) {
      Object.assign(source, { text: before, problem })
      throw error
    }
  }
}
