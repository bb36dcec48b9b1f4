import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { ConfigErrors, type ConfigState, type ExplainedSetting } from '../contract/config.js'
import { Fault, messageOf } from '../contract/errors.js'
import { isDropIn } from '../contract/plugin.js'
import type { Setting } from '../contract/surface.js'
import type { TextFile } from '../contract/text-file.js'
import { canonicalJson } from '../kit/canonical.js'
import { ConfigDocument, type Said } from './document.js'
import { type Layers, layersOf, namesOf, readEnvironment, resultOf } from './layers.js'

/** A layer that is a file. */
export interface Source {
  /** Of an overlay; undefined for the file of the whole daemon. */
  readonly overlay?: string | undefined
  readonly file: TextFile
  /** Names it in messages. */
  readonly where: string
  /** As it was last valid, and what it says. */
  text: string
  document: ConfigDocument
  /** Why the file as it stands by now changes nothing. */
  problem?: string | undefined
}

export const sourceOf = (file: TextFile, where: string, overlay?: string): Source => ({
  overlay,
  file,
  where,
  text: '',
  document: ConfigDocument.empty,
})

interface Tap {
  readonly entry: Setting
  readonly overlay: string | undefined
  readonly tell: (value: never) => void
}

/**
 * The values of all layers. They follow what is taken, but for `restart-required` ones, which stay what they were when their
 * owner started.
 */
export class LayeredConfig {
  #known: readonly Setting[] = []
  #environment: ReadonlyMap<string, Said> = new Map()
  readonly #overlays = new Map<string, Source>()
  /** What `restart-required` settings are until the next start. */
  readonly #fixed = new Map<string, unknown>()
  readonly #taps = new Set<Tap>()
  /** How often what is in force has changed, from 1. */
  generation = 1

  /** @throws Fault `config_invalid` */
  constructor(
    private readonly base: Source,
    private readonly env: Readonly<Record<string, string | undefined>>,
    known: readonly Setting[],
  ) {
    this.#own(known)
  }

  get known(): readonly Setting[] {
    return this.#known
  }

  get sources(): readonly Source[] {
    return [this.base, ...this.#overlays.values()]
  }

  /** The file, or an overlay. @throws Fault `overlay_unknown` */
  source(overlay: string | undefined): Source {
    const source = overlay === undefined ? this.base : this.#overlays.get(overlay)
    if (!source) throw ConfigErrors.overlay_unknown(`there is no overlay ${overlay}`)
    return source
  }

  /** @throws Fault `setting_unknown` */
  entry(path: string): Setting {
    const entry = this.#known.find(known => known.path === path)
    if (!entry) throw ConfigErrors.setting_unknown(`nobody owns a setting ${JSON.stringify(path.slice(0, 200))}`)
    return entry
  }

  /** In force. */
  get<T>(entry: Setting<T>, overlay?: string): T {
    const key = this.#key(entry, overlay)
    return (this.#fixed.has(key) ? this.#fixed.get(key) : this.current(entry, overlay)) as T
  }

  /** What the layers say by now. */
  current<T>(entry: Setting<T>, overlay?: string): unknown {
    return resultOf(entry as Setting, layersOf(entry as Setting, this.layers(overlay)))
  }

  /** Without an overlay of that id the layers are those below it. */
  layers(overlay: string | undefined): Layers {
    const { document } = (overlay !== undefined && this.#overlays.get(overlay)) || {}
    return { file: this.base.document, overlay: document, environment: this.#environment }
  }

  explain(path: string, overlay?: string): ExplainedSetting {
    const entry = this.entry(path)
    const layers = layersOf(entry, this.layers(overlay))
    const value = this.get(entry, overlay)
    const current = resultOf(entry, layers)
    return {
      path,
      section: entry.section,
      apply: entry.apply,
      value,
      layer: layers.at(-1)?.layer ?? 'default',
      layers,
      ...(entry.merge === 'by-name' && { names: namesOf(layers) }),
      ...(!isDeepStrictEqual(current, value) && { pending: current }),
    }
  }

  hashes(overlay?: string) {
    return {
      active: this.#hash(entry => this.get(entry, overlay)),
      desired: this.#hash(entry => this.current(entry, overlay)),
    }
  }

  state(overlay?: string): ConfigState {
    const { document, problem } = this.source(overlay)
    const pending = this.#known
      .filter(entry => !isDeepStrictEqual(this.get(entry, overlay), this.current(entry, overlay)))
      .map(({ path }) => path)
    return { unowned: document.unowned, pending, ...(problem === undefined ? {} : { problem }) }
  }

  /** Tells of each later value that takes effect at once, until the returned function is called. */
  onChange<T>(entry: Setting<T>, overlay: string | undefined, tell: (value: T) => void): () => void {
    const tap = { entry: entry as Setting, overlay, tell }
    this.#taps.add(tap)
    return () => this.#taps.delete(tap)
  }

  /** Makes a text what that layer says. @throws Fault `config_invalid`, and nothing has changed */
  take(source: Source, text: string): void {
    const document = ConfigDocument.parse(text, source.where, this.#known, source.overlay !== undefined)
    this.#change(source.overlay, () => Object.assign(source, { text, document, problem: undefined }))
  }

  /** Adds an overlay that says nothing yet. @throws Fault `overlay_taken` */
  add(id: string, source: Source): void {
    if (this.#overlays.has(id)) throw ConfigErrors.overlay_taken(`there is an overlay ${id} already`)
    this.#overlays.set(id, source)
  }

  /** What an overlay says was read: from now on its values hold that wait for a start. */
  settle(): void {
    for (const overlay of [undefined, ...this.#overlays.keys()])
      for (const entry of this.#known) {
        const key = this.#key(entry, overlay)
        if (entry.apply === 'restart-required' && !this.#fixed.has(key))
          this.#fixed.set(key, this.current(entry, overlay))
      }
  }

  remove(id: string): void {
    this.#change(id, () => {
      this.#overlays.delete(id)
      for (const key of this.#fixed.keys()) if (key.startsWith(`${id}\n`)) this.#fixed.delete(key)
    })
  }

  /**
   * Takes the paths of a plugin that starts, now or again; it reads them anew.
   * @throws Fault `config_invalid`, `setting_misplaced` when a drop-in names a path that is not below `plugins.<name>`
   */
  adopt(plugin: string, entries: readonly Setting[]): void {
    const below = `plugins.${plugin}.`
    const astray = isDropIn(plugin) && entries.find(({ path }) => !path.startsWith(below))
    if (astray) throw new Fault('setting_misplaced', 500, `${astray.path} is not below ${below}`)
    // Another version of a drop-in has its own.
    const others = isDropIn(plugin) ? this.#known.filter(({ path }) => !path.startsWith(below)) : this.#known
    const known = [...others, ...entries.filter(entry => !others.includes(entry))]
    for (const overlay of [undefined, ...this.#overlays.keys()])
      for (const entry of entries) this.#fixed.delete(this.#key(entry, overlay))
    if (known.length !== this.#known.length || known.some(entry => !this.#known.includes(entry))) this.#own(known)
    else this.settle()
  }

  /** The paths of a drop-in that leaves are nobody's: what the file says there is kept for when it comes back. */
  disown(plugin: string): void {
    this.#own(this.#known.filter(({ path }) => !path.startsWith(`plugins.${plugin}.`)))
  }

  #own(known: readonly Setting[]): void {
    const { text, where } = this.base
    const document = ConfigDocument.parse(text, where, known)
    this.#environment = readEnvironment(this.env, known)
    this.base.document = document
    this.#known = known
    for (const source of this.#overlays.values()) {
      try {
        source.document = ConfigDocument.parse(source.text, source.where, known, true)
      } catch (error) {
        Object.assign(source, { document: ConfigDocument.empty, problem: messageOf(error) })
      }
    }
    this.settle()
  }

  /** Whatever changes in an overlay by a change of the file changes below it too. */
  #change(overlay: string | undefined, change: () => void): void {
    const told = [...this.#taps].map(tap => ({ ...tap, before: this.get(tap.entry, tap.overlay) }))
    const active = () => this.#hash(entry => this.get(entry, overlay))
    const before = active()
    change()
    if (active() !== before) this.generation++
    for (const { entry, overlay, tell, before } of told) {
      const value = this.get(entry, overlay)
      if (!isDeepStrictEqual(value, before)) tell(value as never)
    }
  }

  #hash(value: (entry: Setting) => unknown): string {
    const values = Object.fromEntries(this.#known.map(entry => [entry.path, value(entry)]))
    return `sha256:${createHash('sha256').update(canonicalJson(values)).digest('hex')}`
  }

  /** Of what an overlay cannot say there is one value. */
  #key({ path, overlay: may }: Pick<Setting, 'path' | 'overlay'>, overlay: string | undefined): string {
    return `${may && overlay !== undefined && this.#overlays.has(overlay) ? overlay : ''}\n${path}`
  }
}
