import { isDeepStrictEqual } from 'node:util'
import { isDropIn, type SettingSource } from '../../../kernel/platform.js'
import { Fault, type Hook, type Report, type Scope, type Setting } from '../../../kernel/plugin.js'

/** A source of configured values, such as a file. */
export interface ReadSettings {
  /** Values by path, for the settings that it contains. @throws Fault `config_invalid` */
  read(known: readonly Setting[]): ReadonlyMap<string, unknown>
}

interface Tap {
  readonly get: () => unknown
  readonly fn: (value: never) => void
  readonly failed: (error: unknown) => void
  /** The last value that it was called with, or could read. */
  last: unknown
}

/** Observers of values; each is called only for changes. */
export class Taps {
  readonly #taps = new Set<Tap>()

  /** Calls `fn` with each later value until the scope ends, and `failed` with its errors. */
  add<T>(scope: Scope, name: string, get: () => T, fn: (value: T) => void, failed: Tap['failed']): void {
    const tap = { get, fn, failed, last: get() }
    this.#taps.add(tap)
    scope.defer(name, () => this.#taps.delete(tap))
  }

  /** Calls the observers whose values have changed. */
  tell(): void {
    for (const tap of this.#taps) {
      const value = tap.get()
      if (isDeepStrictEqual(value, tap.last)) continue
      tap.last = value
      try {
        tap.fn(value as never)
      } catch (error) {
        tap.failed(error)
      }
    }
  }
}

/**
 * The values of all settings of a running kernel: those of the source, else the defaults. They follow the source, except for
 * `restart-required` ones, which keep their value from the start of their owner.
 */
export class Values implements SettingSource {
  /** Settings of all plugins. */
  known: readonly Setting[] = []
  /** The current values of the source. */
  #said: ReadonlyMap<string, unknown> = new Map()
  /** Values of `restart-required` settings until the next start. */
  readonly #fixed = new Map<string, unknown>()
  readonly #taps = new Taps()
  readonly #followers = new Set<(anew: readonly Setting[]) => void>()

  /** @throws Fault `config_invalid` */
  constructor(
    readonly source: ReadSettings,
    known: readonly Setting[],
    private readonly report: Report,
  ) {
    this.#own(known)
  }

  /** Called when values may have changed, with the settings whose owner restarts. */
  readonly changed: Hook<(anew: readonly Setting[]) => void> = {
    name: 'configuration',
    tap: ({ scope }, fn) => {
      this.#followers.add(fn)
      scope.defer('configuration', () => this.#followers.delete(fn))
    },
  }

  /** The current value. */
  get<T>(entry: Setting<T>): T {
    const { path } = entry
    return (this.#fixed.has(path) ? this.#fixed.get(path) : this.#current(entry as Setting)) as T
  }

  /** Changes of a live setting as a hook. An error of a tap is reported as its plugin's fault. */
  of<T>(entry: Setting<T>): Hook<(value: T) => void> {
    const name = `setting ${entry.path}`
    return {
      name,
      tap: ({ owner, scope }, fn) => {
        const failed = (error: unknown) => this.report({ owner, hook: name, error })
        this.#taps.add(scope, name, () => this.get(entry), fn, failed)
      },
    }
  }

  /** Reads the source again. @throws Fault `config_invalid`, without any change */
  again(): void {
    this.#said = this.source.read(this.known)
    this.#taps.tell()
    this.#tell([])
  }

  /**
   * Adds the settings of a plugin that starts or restarts, with their current values.
   * @throws Fault `config_invalid`, `setting_misplaced` when a drop-in has a path outside of `plugins.<name>`
   */
  adopt(plugin: string, entries: readonly Setting[]): void {
    const below = `plugins.${plugin}.`
    const astray = isDropIn(plugin) && entries.find(({ path }) => !path.startsWith(below))
    if (astray) throw new Fault('setting_misplaced', 500, `${astray.path} is not below ${below}`)
    // Another version of a drop-in brings its own settings.
    const others = isDropIn(plugin) ? this.known.filter(({ path }) => !path.startsWith(below)) : this.known
    // Followers compare all settings when the list of changed ones is empty, and most plugins have no settings.
    if (entries.length === 0 && others === this.known) return
    for (const { path } of entries) this.#fixed.delete(path)
    this.#own([...others, ...entries.filter(entry => !others.includes(entry))])
    this.#tell(entries)
  }

  /** Removes the settings of a drop-in that leaves; their values in the source are kept for its return. */
  disown(plugin: string): void {
    this.#own(this.known.filter(({ path }) => !path.startsWith(`plugins.${plugin}.`)))
    this.#tell([])
  }

  #own(known: readonly Setting[]): void {
    if (known.length !== this.known.length || known.some(entry => !this.known.includes(entry))) {
      this.#said = this.source.read(known)
      this.known = known
    }
    for (const entry of known)
      if (entry.apply === 'restart-required' && !this.#fixed.has(entry.path))
        this.#fixed.set(entry.path, this.#current(entry))
  }

  #current({ path, default: initial }: Setting): unknown {
    return this.#said.has(path) ? this.#said.get(path) : initial
  }

  #tell(anew: readonly Setting[]): void {
    for (const fn of this.#followers) fn(anew)
  }
}

/** The values that this plugin's port made at the start. */
export function valuesOf(source: SettingSource): Values {
  if (source instanceof Values) return source
  throw new Error('the kernel was created without the port `settings` of filePorts()')
}
