import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { aborted } from '../../../kernel/kit/backoff.js'
import { shown } from '../../../kernel/kit/text.js'
import { type Actor, type Consumer, Fault, type Setting } from '../../../kernel/plugin.js'
import type { TextFile } from '../files/api.js'
import {
  type ConfigChange,
  ConfigErrors,
  type ConfigState,
  type ConfigurationApi,
  type ConfigWritten,
  type ExplainedSetting,
  type Rewrite,
  type RewriteOptions,
  type WriteOptions,
} from './api.js'
import { configProblems, problemText } from './document.js'
import { draftOf } from './draft.js'
import { Follower } from './follower.js'
import { Taps } from './in-effect.js'
import { inOrder, textOf } from './in-force.js'
import {
  type ConfigText,
  type Layer,
  type LayerValue,
  layersOf,
  type OverlaidLayers,
  resultOf,
  valueIn,
} from './layers.js'
import type { K } from './needs.js'
import { Overlay } from './overlay.js'
import { FileSource } from './source.js'

/** Explains and writes the configuration, and manages overlays. */
export class ConfigurationService {
  readonly #source: FileSource
  readonly #follower: Follower
  readonly #overlays = new Map<string, Overlay>()
  readonly #taps = new Taps()
  #writer: Actor | undefined
  /** Number of changes of the current values, from 1. */
  #generation = 1
  /** The hash of the active values before a change that is under way. */
  #before: string | undefined
  /** Hashes without an overlay, as of these layers: one change asks for them some ten times. */
  #hashes: { readonly layers: object; readonly values: ReturnType<ConfigurationService['hashes']> } | undefined

  constructor(private readonly kernel: K) {
    this.#source = FileSource.of(kernel.needs.values)
    const pending = () => this.#state(undefined).pending
    this.#follower = new Follower(this.#source, pending, kernel.clock, kernel.scope, kernel.log)
    kernel.scope.defer('file', () => this.#follower.turns.idle())
    this.#source.changing = change => {
      this.#before = this.hashes().active
      try {
        change()
      } finally {
        this.#before = undefined
      }
    }
  }

  /** The API for one consumer: its taps and overlays end with its scope. */
  for({ name, scope }: Consumer): ConfigurationApi {
    const self = this
    return {
      changed: this.#source.values.changed,
      get generation() {
        return self.#generation
      },
      hashes: overlay => this.hashes(overlay),
      get known() {
        return self.known
      },
      get writer() {
        return self.#writer
      },
      get text() {
        return self.#source.text
      },
      parse: text => this.parse(text, 'config.json', false),
      get: (entry, overlay) => this.#get(entry, overlay),
      explain: (path, overlay) => this.#explain(path, overlay),
      state: overlay => this.#state(overlay),
      onChange: (entry, fn, overlay) => {
        const where = `setting ${entry.path}`
        const failed = (error: unknown) => this.kernel.needs.report(name, where, error)
        this.#taps.add(scope, where, () => this.#get(entry, overlay), fn, failed)
      },
      layers: overlay => this.layers(overlay),
      plan: (changes, overlay) => draftOf(this, changes, overlay).plan,
      write: (changes, options) => this.#write(changes, options),
      rewrite: (rewrite, options = {}) => this.#rewrite(rewrite, options),
      reload: () => this.#reload(),
      overlay: async (id, file, where) => scope.defer(`overlay ${id}`, await this.#overlay(id, file, where)),
    }
  }

  /** Follows the file in a daemon. An embedder that only injects requests calls `reload` instead. */
  async watch(signal: AbortSignal): Promise<void> {
    if (this.kernel.needs.host.doors.length > 0) await this.#follower.follow(signal)
    else await aborted(signal)
  }

  /** The kernel has read the file, or settings have another owner. */
  follow(anew: readonly Setting[]): void {
    // A plugin that restarts adopts values that the layers had before.
    this.#hashes = undefined
    for (const overlay of this.#overlays.values()) overlay.follow(anew)
    if (this.#before !== undefined && this.hashes().active !== this.#before) this.#generation++
    this.#taps.tell()
  }

  get known(): readonly Setting[] {
    return this.#source.values.known
  }

  /** The file, or an overlay. @throws Fault `overlay_unknown` */
  layer(id: string | undefined): Layer {
    if (id === undefined) return this.#source
    const overlay = this.#overlays.get(id)
    if (!overlay) throw ConfigErrors.overlay_unknown(`there is no overlay ${id}`)
    return overlay
  }

  /** The layers; without an overlay of that id only those below it. */
  layers(overlay: string | undefined): OverlaidLayers {
    return { ...this.#source.layers, overlay: this.#overlays.get(overlay ?? '')?.document }
  }

  parse(text: string, where: string, isOverlay: boolean): ConfigText {
    return this.#source.parse(text, where, isOverlay)
  }

  hashes(overlay?: string): { readonly active: string; readonly desired: string } {
    const { layers } = this.#source
    if (overlay === undefined && this.#hashes?.layers === layers) return this.#hashes.values
    const overlaid = this.layers(overlay)
    const desired = this.hashOf(entry => valueIn(entry, overlaid))
    const active = this.#waiting(overlay).length > 0 ? this.hashOf(entry => this.#get(entry, overlay)) : desired
    if (overlay === undefined) this.#hashes = { layers, values: { active, desired } }
    return { active, desired }
  }

  /** Hash of the canonical JSON of all values by path. */
  hashOf(value: (entry: Setting) => unknown): string {
    const texts = inOrder(this.known).map(entry => [JSON.stringify(entry.path), textOf(value(entry))])
    const members = texts.flatMap(([path, text]) => (text === undefined ? [] : [`${path}:${text}`]))
    return `sha256:${createHash('sha256').update(`{${members.join()}}`).digest('hex')}`
  }

  /** @throws Fault `setting_unknown` */
  entry(path: string): Setting {
    const entry = this.known.find(known => known.path === path)
    if (!entry) throw ConfigErrors.setting_unknown(`there is no setting ${shown(path)}`)
    return entry
  }

  #get<T>(entry: Setting<T>, overlay: string | undefined): T {
    return (this.#overlays.get(overlay ?? '') ?? this.#source.values).get(entry)
  }

  #explain(path: string, overlay: string | undefined): ExplainedSetting {
    const entry = this.entry(path)
    const { section, apply } = entry
    const layers = layersOf(entry, this.layers(overlay))
    const [value, current] = [this.#get(entry, overlay), resultOf(entry, layers)]
    const said = this.layer(this.#overlays.has(overlay ?? '') ? overlay : undefined).document.said.get(path)
    return {
      ...{ path, section, apply, value, layers },
      layer: layers.at(-1)?.layer ?? 'default',
      ...(entry.merge === 'by-name' && { names: namesOf(layers) }),
      ...(!isDeepStrictEqual(current, value) && { pending: current }),
      ...(said && { written: said.raw }),
    }
  }

  #state(id: string | undefined): ConfigState {
    const { document, problem } = this.layer(id)
    const { unowned, leftOut } = document
    const pending = this.#waiting(id).map(({ path }) => path)
    return { unowned, leftOut: leftOut.map(problemText), pending, ...(problem !== undefined && { problem }) }
  }

  /** Settings whose values wait for the next start. */
  #waiting(overlay: string | undefined): Setting[] {
    const layers = this.layers(overlay)
    return this.known.filter(entry => !isDeepStrictEqual(this.#get(entry, overlay), valueIn(entry, layers)))
  }

  #write(changes: readonly ConfigChange[], options: WriteOptions = {}): Promise<ConfigWritten> {
    return this.#follower.turns.run(async () => {
      const layer = this.layer(options.overlay)
      const text = await this.#follower.textOf(layer.file, layer.text)
      layer.take(text)
      this.#checkUnchanged(options)
      const draft = draftOf(this, changes, options.overlay)
      const written = draft.plan.changes.length > 0
      if (written) await this.#put(layer, text, draft.text, options)
      const { active, desired: hash } = this.hashes(options.overlay)
      return { ...draft.plan, written, generation: this.#generation, active, hash }
    })
  }

  #rewrite(rewrite: Rewrite, { dry, overlay, actor }: RewriteOptions) {
    return this.#follower.turns.run(async () => {
      const layer = this.layer(overlay)
      const before = await this.#follower.textOf(layer.file, layer.text)
      const problemsOf = (text: string) => configProblems(text, layer.where, this.known, overlay !== undefined)
      const text = rewrite(before, layer.where, problemsOf)
      const rest = problemsOf(text)
      const was = this.layers(overlay)
      const of = overlay === undefined ? 'file' : 'overlay'
      const will = rest.length > 0 ? was : { ...was, [of]: this.parse(text, layer.where, overlay !== undefined) }
      if (!dry) await this.#put(layer, before, text, { overlay, actor }, rest.length === 0)
      return { was, will, desired: this.hashOf(entry => valueIn(entry, will)), rest }
    })
  }

  async #put(layer: Layer, before: string, text: string, options: WriteOptions, ok = true) {
    const { file, where } = layer
    const { overlay, actor, ready } = options
    // A write of the daemon's file checks this itself.
    if (overlay !== undefined && ((await file.read()) ?? '') !== before)
      throw this.#changed(`another program is writing ${where}`, overlay)
    await file.write(text, before, ready).catch(error => {
      if (!(error instanceof Fault) || error.code !== 'file_changed') throw error
      throw this.#changed(`another program saved ${where} at the same time`, overlay)
    })
    this.#writer = actor
    try {
      if (ok) layer.take(text)
    } finally {
      this.#writer = undefined
    }
  }

  async #reload(): Promise<void> {
    await this.#follower.reload()
    await this.#follower.turns.run(async () => {
      for (const id of [...this.#overlays.keys()]) await this.#reread(id)
    })
  }

  async #overlay(id: string, file: TextFile, where: string): Promise<() => void> {
    if (this.#overlays.has(id)) throw ConfigErrors.overlay_taken(`the overlay ${id} already exists`)
    const overlay = new Overlay(file, where, this.#source, change => this.#change(id, change))
    this.#overlays.set(id, overlay)
    await this.#follower.turns.run(() => this.#reread(id))
    overlay.settle()
    return () => this.#change(id, () => this.#overlays.delete(id))
  }

  #reread(id: string): Promise<void> {
    const layer = this.layer(id)
    return this.#follower.reread(layer, layer.where, () => this.#state(id).pending)
  }

  #change(id: string, change: () => void): void {
    const before = this.hashes(id).active
    change()
    if (this.hashes(id).active !== before) this.#generation++
    this.#taps.tell()
  }

  #checkUnchanged({ overlay, ifGeneration, ifHash }: WriteOptions): void {
    if (ifGeneration !== undefined && ifGeneration !== this.#generation)
      throw this.#changed(`generation ${ifGeneration} is outdated, the current one is ${this.#generation}`, overlay)
    if (ifHash !== undefined && ifHash !== this.hashes(overlay).desired) throw this.#changed(undefined, overlay)
  }

  /** The fault of a failed condition, with the current values for another attempt. */
  #changed(message: string | undefined, overlay: string | undefined) {
    const { active, desired: hash } = this.hashes(overlay)
    return ConfigErrors.config_changed(message, { details: { generation: String(this.#generation), active, hash } })
  }
}

/** Layer of each entry of a merged map. */
const namesOf = (layers: readonly LayerValue[]) =>
  Object.fromEntries(layers.flatMap(({ layer, value }) => Object.keys(value as object).map(name => [name, layer])))
