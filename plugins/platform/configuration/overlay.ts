import { messageOf, type Setting } from '../../../kernel/plugin.js'
import type { TextFile } from '../files/api.js'
import { layersOf, NOTHING_SAID, resultOf } from './layers.js'
import type { FileSource } from './source.js'

/** A file above that of the whole daemon. `restart-required` settings stay what they were when it was first read. */
export class Overlay {
  /** As it was last valid, and what it says. */
  text = ''
  document = NOTHING_SAID
  /** Why the file as it stands by now changes nothing. */
  problem: string | undefined
  readonly #fixed = new Map<string, unknown>()

  constructor(
    readonly file: TextFile,
    /** Names it in messages. */
    readonly where: string,
    private readonly below: FileSource,
  ) {}

  /** Of what an overlay cannot say there is one value. */
  get<T>(entry: Setting<T>): T {
    if (!entry.overlay) return this.below.values.get(entry)
    return (this.#fixed.has(entry.path) ? this.#fixed.get(entry.path) : this.#current(entry as Setting)) as T
  }

  /** @throws Fault `config_invalid`, and nothing has changed */
  take(text: string): void {
    this.document = this.below.parse(text, this.where, true)
    this.text = text
    this.problem = undefined
  }

  /** What it says was read: from now on its values hold that wait for a start. */
  settle(): void {
    for (const entry of this.below.values.known)
      if (entry.apply === 'restart-required' && !this.#fixed.has(entry.path))
        this.#fixed.set(entry.path, this.#current(entry))
  }

  /** Settings may have another owner or none; those whose owner begins anew are read anew. */
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
    return resultOf(entry, layersOf(entry, { ...this.below.layers, overlay: this.document }))
  }
}
