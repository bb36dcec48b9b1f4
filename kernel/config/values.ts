import { isDeepStrictEqual } from 'node:util'
import type { Config, ConfigState, SettingsApi } from '../contract/config.js'
import { Fault } from '../contract/errors.js'
import type { Hook, Report, Tapper } from '../contract/hook.js'
import { given } from '../contract/kernel-tokens.js'
import { isDropIn } from '../contract/plugin.js'
import type { TextFile } from '../contract/storage.js'
import type { Setting } from '../contract/surface.js'
import { configText } from './document.js'
import { type ConfigText, type Layers, readEnvironment, strongest } from './layers.js'

interface Tap {
  readonly entry: Setting
  readonly tell: (value: never) => void
  /** What it was told, or read, last. */
  last: unknown
}

interface ValuesOptions {
  readonly file: TextFile
  readonly env: Readonly<Record<string, string | undefined>>
  readonly report: Report
}

/**
 * The values of all settings of a running kernel. Who follows the file hands each text to them: one that is not valid changes
 * nothing. They follow what is taken, but for `restart-required` ones, which stay what they were when their owner started.
 */
export class Values {
  /** Settings that have an owner now. */
  known: readonly Setting[] = []
  /** What the file and the environment say by now. */
  layers: Layers = { file: { said: new Map(), unowned: [] }, environment: new Map() }
  /** Why the file as it stands by now changes nothing. */
  problem: string | undefined
  /** What `restart-required` settings are until the next start. */
  readonly #fixed = new Map<string, unknown>()
  readonly #taps = new Set<Tap>()
  readonly #followers = new Set<(anew: readonly Setting[]) => void>()

  private constructor(
    /** As it was last valid. */
    public text: string,
    /** Names the text in messages. */
    readonly where: string,
    private readonly options: ValuesOptions,
    known: readonly Setting[],
  ) {
    this.#own(known)
  }

  /** @throws Fault `config_invalid`, `file_not_regular`, `file_too_large`, StoreError `file_unreadable` */
  static async read(where: string, options: ValuesOptions, known: readonly Setting[]): Promise<Values> {
    return new Values((await options.file.read()) ?? '', where, options, known)
  }

  get file(): TextFile {
    return this.options.file
  }

  /** The values as a plugin reads them: what it taps goes with its scope. */
  for(owner: Pick<Tapper, 'owner' | 'scope'>): Config {
    return { get: entry => this.get(entry), onChange: (entry, fn) => this.#tap(entry, owner, fn) }
  }

  /** Changes as hooks. */
  readonly settings: SettingsApi = {
    of: entry => ({ name: `setting ${entry.path}`, tap: (tapper, fn) => this.#tap(entry, tapper, fn) }),
  }

  /** Values may be others; settings whose owner begins anew are named. */
  readonly changed: Hook<(anew: readonly Setting[]) => void> = {
    name: 'configuration',
    tap: ({ scope }, fn) => {
      this.#followers.add(fn)
      scope.defer('configuration', () => this.#followers.delete(fn))
    },
  }

  /** In force. */
  get<T>(entry: Setting<T>): T {
    const { path } = entry
    return (this.#fixed.has(path) ? this.#fixed.get(path) : this.#current(entry as Setting)) as T
  }

  state(): ConfigState {
    const pending = this.known.filter(entry => !isDeepStrictEqual(this.get(entry), this.#current(entry)))
    const { unowned } = this.layers.file
    const { problem } = this
    return { unowned, pending: pending.map(({ path }) => path), ...(problem === undefined ? {} : { problem }) }
  }

  /** A text decoded by the settings that have an owner; into an overlay goes only what may be there. @throws Fault `config_invalid` */
  parse(text: string, where: string, isOverlay?: boolean): ConfigText {
    return configText(text, where, this.known, isOverlay)
  }

  /** Makes a text what the file says. @throws Fault `config_invalid`, and nothing has changed */
  take(text: string): void {
    this.layers = { ...this.layers, file: this.parse(text, this.where) }
    this.text = text
    this.problem = undefined
    for (const tap of this.#taps) {
      const value = this.get(tap.entry)
      if (isDeepStrictEqual(value, tap.last)) continue
      tap.last = value
      tap.tell(value as never)
    }
    this.#tell([])
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
    const others = isDropIn(plugin) ? this.known.filter(({ path }) => !path.startsWith(below)) : this.known
    for (const { path } of entries) this.#fixed.delete(path)
    this.#own([...others, ...entries.filter(entry => !others.includes(entry))])
    this.#tell(entries)
  }

  /** The paths of a drop-in that leaves are nobody's: what the file says there is kept for when it comes back. */
  disown(plugin: string): void {
    this.#own(this.known.filter(({ path }) => !path.startsWith(`plugins.${plugin}.`)))
    this.#tell([])
  }

  #own(known: readonly Setting[]): void {
    if (known.length !== this.known.length || known.some(entry => !this.known.includes(entry))) {
      const file = configText(this.text, this.where, known)
      this.layers = { file, environment: readEnvironment(this.options.env, known) }
      this.known = known
    }
    for (const entry of known)
      if (entry.apply === 'restart-required' && !this.#fixed.has(entry.path))
        this.#fixed.set(entry.path, this.#current(entry))
  }

  /** Tells of each later value that takes effect at once. What is thrown is its plugin's fault. */
  #tap<T>(entry: Setting<T>, { owner, scope }: Pick<Tapper, 'owner' | 'scope'>, fn: (value: T) => void): void {
    const hook = `setting ${entry.path}`
    const tell = (value: T) => {
      try {
        fn(value)
      } catch (error) {
        this.options.report({ owner, hook, error })
      }
    }
    const tap = { entry: entry as Setting, tell, last: this.get(entry) }
    this.#taps.add(tap)
    scope.defer(hook, () => this.#taps.delete(tap))
  }

  /** What the layers say by now. */
  #current(entry: Setting): unknown {
    const { file, environment } = this.layers
    const above = [file.said.get(entry.path), environment.get(entry.path)]
    return strongest(entry, [entry.default, ...above.flatMap(said => (said ? [said.value] : []))])
  }

  #tell(anew: readonly Setting[]): void {
    for (const fn of this.#followers) fn(anew)
  }
}

/** What the configuration file says and what comes of it. */
export type ConfigValues = Pick<
  Values,
  'where' | 'text' | 'known' | 'layers' | 'problem' | 'get' | 'state' | 'parse' | 'take'
>

/** The configuration file as the kernel has read it, for who follows, explains and writes it. */
export type ConfigSource = Pick<Values, 'file' | 'changed'> & { readonly values: ConfigValues }

/** The configuration file itself, for the plugin that follows, explains and writes it. */
export const ConfigFile = given<ConfigSource>('kernel.config-file@1')
