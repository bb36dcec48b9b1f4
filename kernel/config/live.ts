import { isDeepStrictEqual } from 'node:util'
import type { Clock, Timer } from '../contract/clock.js'
import type { ConfigState } from '../contract/config-state.js'
import { Fault, messageOf } from '../contract/errors.js'
import { isDropIn } from '../contract/plugin.js'
import type { Setting } from '../contract/surface.js'
import type { TextFile } from '../contract/text-file.js'
import { Config } from './index.js'

/** A burst of writes, or a write by temporary file and rename, is one change. Milliseconds. */
const SETTLE_MS = 100
/** An empty or missing file may be the middle of a write: it is believed when it still is so after this. Milliseconds. */
const EMPTY_MS = 1000
/** Watching begins when the start is over; what changed until then is read too. Milliseconds. */
const WATCH_AFTER_MS = 500

export interface LiveConfigOptions {
  readonly file: TextFile
  readonly path: string
  readonly clock: Clock
  readonly log: (level: 'info' | 'warn' | 'error', text: string) => void
}

/**
 * The configuration of a running kernel. A `live` value follows the file; any other stays what it was when its owner read it
 * first. A file that is not valid changes nothing.
 */
export class LiveConfig {
  #known: readonly Setting[] = []
  #text = ''
  #current: Config
  #problem: string | undefined
  readonly #fixed = new Map<string, unknown>()
  readonly #taps = new Set<{ readonly entry: Setting; readonly tell: (value: never) => void }>()
  #timer: Timer | undefined
  #reading: Promise<void> = Promise.resolve()
  #unwatch: (() => Promise<void>) | undefined
  #closed = false

  private constructor(private readonly options: LiveConfigOptions) {
    this.#current = Config.parse('', options.path, [])
  }

  /** @throws Fault `config_invalid`, `file_not_regular`, `file_too_large`, StoreError `file_unreadable` */
  static async read(options: LiveConfigOptions, known: readonly Setting[]): Promise<LiveConfig> {
    const config = new LiveConfig(options)
    config.#text = (await options.file.read()) ?? ''
    config.#own(known)
    return config
  }

  get<T>(entry: Setting<T>): T {
    if (entry.apply === 'live') return this.#current.get(entry)
    if (!this.#fixed.has(entry.path)) this.#fixed.set(entry.path, this.#current.get(entry))
    return this.#fixed.get(entry.path) as T
  }

  /** Calls `fn` with each later value of a `live` setting, until the returned function is called. */
  onChange<T>(entry: Setting<T>, fn: (value: T) => void, failed: (error: unknown) => void): () => void {
    const tell = (value: T): void => {
      try {
        fn(value)
      } catch (error) {
        failed(error)
      }
    }
    const tap = { entry: entry as Setting, tell }
    this.#taps.add(tap)
    return () => this.#taps.delete(tap)
  }

  state(): ConfigState {
    const pending = this.#known
      .filter(({ path }) => this.#fixed.has(path))
      .filter(entry => !isDeepStrictEqual(this.#fixed.get(entry.path), this.#current.get(entry)))
      .map(({ path }) => path)
    return { unowned: this.#current.unowned, pending, ...(this.#problem ? { problem: this.#problem } : {}) }
  }

  /**
   * Takes the paths of a plugin that starts, now or again; it reads them anew.
   * @throws Fault `config_invalid`, `setting_misplaced` when a drop-in names a path that is not below `plugins.<name>`
   */
  adopt(plugin: string, entries: readonly Setting[]): void {
    const below = `plugins.${plugin}.`
    const astray = isDropIn(plugin) && entries.find(({ path }) => !path.startsWith(below))
    if (astray) throw new Fault('setting_misplaced', 500, `${astray.path} is not below ${below}`)
    for (const { path } of entries) this.#fixed.delete(path)
    // Another version of a drop-in has its own.
    const others = isDropIn(plugin) ? this.#known.filter(({ path }) => !path.startsWith(below)) : this.#known
    const known = [...others, ...entries.filter(entry => !others.includes(entry))]
    if (known.length !== this.#known.length || known.some(entry => !this.#known.includes(entry))) this.#own(known)
  }

  /** The paths of a drop-in that leaves are nobody's: what the file says there is kept for when it comes back. */
  disown(plugin: string): void {
    this.#own(this.#known.filter(({ path }) => !path.startsWith(`plugins.${plugin}.`)))
  }

  /** Follows the file from now on. */
  watch(): void {
    this.#later(WATCH_AFTER_MS, async () => {
      const { watch } = await import('chokidar')
      if (this.#closed) return
      const watcher = watch(this.options.path, { ignoreInitial: true, depth: 0 })
      this.#unwatch = () => watcher.close()
      watcher.on('all', () => this.#later(SETTLE_MS, () => this.#reread()))
      watcher.on('ready', () => this.#later(0, () => this.#reread()))
      watcher.on('error', error => this.options.log('warn', `config.json is not watched: ${messageOf(error)}`))
    })
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#timer?.cancel()
    await this.#reading
    await this.#unwatch?.()
  }

  #own(known: readonly Setting[]): void {
    this.#current = Config.parse(this.#text, this.options.path, known)
    this.#known = known
  }

  /** One look is planned at a time, the last one asked for, and one is under way at a time. */
  #later(ms: number, work: () => Promise<void>): void {
    this.#timer?.cancel()
    if (this.#closed) return
    this.#timer = this.options.clock.timeout(ms, () => {
      this.#reading = this.#reading.then(work).catch(error => this.#refuse(messageOf(error)))
    })
  }

  async #reread(believed = false): Promise<void> {
    const text = (await this.options.file.read()) ?? ''
    if (text.trim() === '' && this.#text.trim() !== '' && !believed) {
      this.#later(EMPTY_MS, () => this.#reread(true))
      return
    }
    const before = this.#current
    // A refused text is not kept: with it a plugin that starts later could not be given its values.
    this.#current = Config.parse(text, this.options.path, this.#known)
    this.#text = text
    if (this.#problem !== undefined) this.options.log('info', 'config.json is valid again')
    this.#problem = undefined
    const { pending } = this.state()
    if (pending.length > 0) this.options.log('warn', `config.json: ${pending.join(', ')} wait for the next start`)
    for (const { entry, tell } of [...this.#taps]) {
      const value = this.#current.get(entry)
      if (!isDeepStrictEqual(value, before.get(entry))) tell(value as never)
    }
  }

  #refuse(problem: string): void {
    if (problem !== this.#problem) this.options.log('error', `config.json changes nothing: ${problem}`)
    this.#problem = problem
  }
}
