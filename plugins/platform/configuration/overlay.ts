import { messageOf, type Setting } from '../../../kernel/plugin.js'
import type { TextFile } from '../files/api.js'
import { type Layer, NOTHING_SAID, valueIn } from './layers.js'
import type { FileSource } from './source.js'

/** A layer above the daemon's file. `restart-required` settings keep the value of its first read. */
export class Overlay implements Layer {
  /** The latest valid text, and its content. */
  text = ''
  document = NOTHING_SAID
  /** Why the current file is not applied. */
  problem: string | undefined
  readonly #fixed = new Map<string, unknown>()

  constructor(
    readonly file: TextFile,
    /** Names it in messages. */
    readonly where: string,
    private readonly below: FileSource,
    /** Makes a change of its content, and tells others. */
    private readonly changing: (change: () => void) => void,
  ) {}

  /** A setting that allows no overlay has the daemon's value. */
  get<T>(entry: Setting<T>): T {
    if (!entry.overlay) return this.below.values.get(entry)
    return (this.#fixed.has(entry.path) ? this.#fixed.get(entry.path) : this.#current(entry as Setting)) as T
  }

  /** @throws Fault `config_invalid`, without any change */
  take(text: string): void {
    this.changing(() => {
      this.document = this.below.parse(text, this.where, true)
      this.text = text
      this.problem = undefined
    })
  }

  /** Fixes the values of `restart-required` settings after the first read. */
  settle(): void {
    for (const entry of this.below.values.known)
      if (entry.apply === 'restart-required' && !this.#fixed.has(entry.path))
        this.#fixed.set(entry.path, this.#current(entry))
  }

  /** Applies a change of settings or their owners; values of restarting owners are read again. */
  follow(anew: readonly Setting[]): void {
    for (const { path } of anew) this.#fixed.delete(path)
    try {
      this.document = this.below.parse(this.text, this.where, true)
    } catch (error) {
      this.document = NOTHING_SAID
      this.problem = messageOf(error)
    }
    this.settle()
  }

  #current(entry: Setting): unknown {
    return valueIn(entry, { ...this.below.layers, overlay: this.document })
  }
}
