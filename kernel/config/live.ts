import type { Clock, Timer } from '../contract/clock.js'
import {
  type Config,
  type ConfigChange,
  ConfigErrors,
  type ConfigWritten,
  type WriteOptions,
} from '../contract/config.js'
import { messageOf } from '../contract/errors.js'
import type { Scope } from '../contract/scope.js'
import type { Setting } from '../contract/surface.js'
import type { TextFile } from '../contract/text-file.js'
import { draftOf } from './draft.js'
import { LayeredConfig, type Source, sourceOf } from './layered.js'

/** A burst of writes, or a write by temporary file and rename, is one change. Milliseconds. */
const SETTLE_MS = 100
/** An empty or missing file may be the middle of a write: it is believed when it still is so after this. Milliseconds. */
const EMPTY_MS = 1000
/** Watching begins when the start is over; what changed until then is read too. Milliseconds. */
const WATCH_AFTER_MS = 500

export interface LiveConfigOptions {
  readonly file: TextFile
  readonly path: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
  readonly log: (level: 'info' | 'warn' | 'error', text: string) => void
}

/** The configuration of a running kernel: reads and writes its files. One that is not valid changes nothing. */
export class LiveConfig {
  #timer: Timer | undefined
  #wake: (() => void) | undefined
  #busy: Promise<unknown> = Promise.resolve()
  #unwatch: (() => Promise<void>) | undefined
  #closed = false

  private constructor(
    private readonly options: LiveConfigOptions,
    readonly values: LayeredConfig,
  ) {}

  /** @throws Fault `config_invalid`, `file_not_regular`, `file_too_large`, StoreError `file_unreadable` */
  static async read(options: LiveConfigOptions, known: readonly Setting[]): Promise<LiveConfig> {
    const base = sourceOf(options.file, options.path)
    base.text = (await options.file.read()) ?? ''
    return new LiveConfig(options, new LayeredConfig(base, options.env, known))
  }

  get<T>(entry: Setting<T>, overlay?: string): T {
    return this.values.get(entry, overlay)
  }

  /** Changes a layer, or nothing. See {@link Config.write}. */
  write(changes: readonly ConfigChange[], options: WriteOptions = {}): Promise<ConfigWritten> {
    const { overlay } = options
    return this.#alone(async () => {
      const source = this.values.source(overlay)
      const text = await this.#textOf(source)
      this.values.take(source, text)
      this.#checkUnchanged(options)
      const draft = draftOf(this.values, changes, overlay)
      const written = draft.plan.changes.length > 0
      if (written) {
        // What somebody saves between this look and the rename is lost: nothing can lock out an editor.
        if (((await source.file.read()) ?? '') !== text)
          throw this.#changed(`somebody else writes ${source.where}`, overlay)
        await source.file.write(draft.text)
        this.values.take(source, draft.text)
      }
      const { active, desired: hash } = this.values.hashes(overlay)
      return { ...draft.plan, written, generation: this.values.generation, active, hash }
    })
  }

  /** Reads all files again. */
  reload(): Promise<void> {
    return this.#alone(async () => {
      for (const source of this.values.sources) await this.#reread(source)
    })
  }

  /** Adds an overlay until the returned function is called. */
  async overlay(id: string, file: TextFile, where: string): Promise<() => void> {
    const source = sourceOf(file, where, id)
    this.values.add(id, source)
    await this.#alone(() => this.#reread(source))
    this.values.settle()
    return () => this.values.remove(id)
  }

  /** The configuration as a plugin has it: what it taps or adds goes with its scope. */
  bind(scope: Scope, failed: (where: string, error: unknown) => void): Config {
    const { values } = this
    return {
      get generation() {
        return values.generation
      },
      hashes: values.hashes.bind(values),
      get: values.get.bind(values),
      explain: values.explain.bind(values),
      state: values.state.bind(values),
      onChange: (entry, fn, overlay) => {
        const where = `setting ${entry.path}`
        const tell = (value: Parameters<typeof fn>[0]) => {
          try {
            fn(value)
          } catch (error) {
            failed(where, error)
          }
        }
        scope.defer(where, values.onChange(entry, overlay, tell))
      },
      plan: (changes, overlay) => draftOf(values, changes, overlay).plan,
      write: this.write.bind(this),
      reload: this.reload.bind(this),
      overlay: async (id, file, where) => scope.defer(`overlay ${id}`, await this.overlay(id, file, where)),
    }
  }

  /** Follows the file from now on. An overlay is read again by {@link reload}. */
  watch(): void {
    this.#later(WATCH_AFTER_MS, async () => {
      const { watch } = await import('chokidar')
      if (this.#closed) return
      const watcher = watch(this.options.path, { ignoreInitial: true, depth: 0 })
      this.#unwatch = () => watcher.close()
      const look = () => this.#reread(this.values.source(undefined))
      watcher.on('all', () => this.#later(SETTLE_MS, look))
      watcher.on('ready', () => this.#later(0, look))
      watcher.on('error', error => this.options.log('warn', `config.json is not watched: ${messageOf(error)}`))
    })
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#timer?.cancel()
    this.#wake?.()
    await this.#busy
    await this.#unwatch?.()
  }

  /** One look is planned at a time, the last one asked for. */
  #later(ms: number, work: () => Promise<void>): void {
    this.#timer?.cancel()
    if (this.#closed) return
    this.#timer = this.options.clock.timeout(ms, () => void this.#alone(work).catch(() => {}))
  }

  /** One reads or writes at a time. */
  #alone<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#busy.then(work)
    this.#busy = result.catch(() => {})
    return result
  }

  async #textOf({ file, text: known }: Source): Promise<string> {
    const text = (await file.read()) ?? ''
    if (text.trim() !== '' || known.trim() === '' || this.#closed) return text
    await new Promise<void>(resolve => {
      const timer = this.options.clock.timeout(EMPTY_MS, resolve)
      this.#wake = () => {
        timer.cancel()
        resolve()
      }
    })
    return this.#closed ? known : ((await file.read()) ?? '')
  }

  /** A refused text is not kept: with it a plugin that starts later could not be given its values. */
  async #reread(source: Source): Promise<void> {
    const { log } = this.options
    const name = source.overlay === undefined ? 'config.json' : source.where
    const before = source.problem
    try {
      this.values.take(source, await this.#textOf(source))
    } catch (error) {
      source.problem = messageOf(error)
      if (source.problem !== before) log('error', `${name} changes nothing: ${source.problem}`)
      return
    }
    if (before !== undefined) log('info', `${name} is valid again`)
    const { pending } = this.values.state(source.overlay)
    if (pending.length > 0) log('warn', `${name}: ${pending.join(', ')} wait for the next start`)
  }

  #checkUnchanged({ overlay, ifGeneration, ifHash }: WriteOptions): void {
    const { generation } = this.values
    if (ifGeneration !== undefined && ifGeneration !== generation)
      throw this.#changed(`generation ${ifGeneration} is over, this is ${generation}`, overlay)
    if (ifHash !== undefined && ifHash !== this.values.hashes(overlay).desired) throw this.#changed(undefined, overlay)
  }

  /** With what is true instead, for who tries again. */
  #changed(message: string | undefined, overlay: string | undefined) {
    const { active, desired: hash } = this.values.hashes(overlay)
    return ConfigErrors.config_changed(message, {
      details: { generation: String(this.values.generation), active, hash },
    })
  }
}
