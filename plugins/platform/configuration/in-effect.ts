import { isDeepStrictEqual } from 'node:util'
import { isDropIn, type SettingSource } from '../../../kernel/platform.js'
import { Fault, type Hook, type Report, type Scope, type Setting } from '../../../kernel/plugin.js'

/** Says what is configured, of a file for one. */
export interface ReadSettings {
  /** Values by path, of those settings of which it says something. @throws Fault `config_invalid` */
  read(known: readonly Setting[]): ReadonlyMap<string, unknown>
}

interface Tap {
  readonly get: () => unknown
  readonly fn: (value: never) => void
  readonly failed: (error: unknown) => void
  /** What it was told, or could read, last. */
  last: unknown
}

/** Functions that hear of values, each of those alone that are others than before. */
export class Taps {
  readonly #taps = new Set<Tap>()

  /** `fn` hears of each later value until the scope ends; `failed` of what it throws. */
  add<T>(scope: Scope, name: string, get: () => T, fn: (value: T) => void, failed: Tap['failed']): void {
    const tap = { get, fn, failed, last: get() }
    this.#taps.add(tap)
    scope.defer(name, () => this.#taps.delete(tap))
  }

  /** Values may be others by now. */
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
 * The values of all settings of a running kernel: what the source says, else their defaults. They follow the source, but for
 * `restart-required` ones, which stay what they were when their owner started.
 */
export class Values implements SettingSource {
  /** Settings that have an owner now. */
  known: readonly Setting[] = []
  /** What the source says by now. */
  #said: ReadonlyMap<string, unknown> = new Map()
  /** What `restart-required` settings are until the next start. */
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

  /** Tells of each later value that takes effect at once. What is thrown is its plugin's fault. */
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

  /** Paths whose value waits for the next start. */
  pending(): string[] {
    const waits = (entry: Setting) => !isDeepStrictEqual(this.get(entry), this.#current(entry))
    return this.known.filter(waits).map(({ path }) => path)
  }

  /** The source says something else by now. @throws Fault `config_invalid`, and nothing has changed */
  again(): void {
    this.#said = this.source.read(this.known)
    this.#taps.tell()
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

  /** The paths of a drop-in that leaves are nobody's: what is said there is kept for when it comes back. */
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

/** The values, as the port of this plugin made them at the start. */
export function valuesOf(source: SettingSource): Values {
  if (source instanceof Values) return source
  throw new Error('the kernel was created without the port `settings` of filePorts()')
}
