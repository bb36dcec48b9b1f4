import { existsSync, lstatSync, statSync } from 'node:fs'
import path from 'node:path'
import type { Clock, Timer } from '../../../../kernel/plugin.js'
import { manifestFileNames } from '../manifest/manifest.js'

/** Debounce in milliseconds: a burst of writes counts as one change, after this silence and at most after LONGEST_MS. */
const SETTLE_MS = 150
const LONGEST_MS = 2000
/** Watched folder levels below an extension. */
const DEPTH = 8

export interface WatcherOptions {
  readonly dir: string
  /** Name that all changes below `dir` are reported under; absent: the name of the changed folder. */
  readonly name?: string
  readonly clock: Clock
  /** Called with the name of a folder that changed, appeared or disappeared. */
  readonly changed: (name: string) => void
  readonly failed: (error: unknown) => void
}

/** Watches the folder of all extensions, or of one; changes of one extension within a short time are reported once. */
export class Watcher {
  readonly #pending = new Map<string, { timer: Timer; since: number }>()
  #close: (() => Promise<void>) | undefined
  #ready = () => {}
  #closed = false

  constructor(private readonly options: WatcherOptions) {}

  /** Resolves when the watcher is active; later changes are reported. */
  async start(): Promise<void> {
    const { dir, failed } = this.options
    const { watch } = await import('chokidar')
    if (this.#closed) return
    const watcher = watch(dir, { ignoreInitial: true, depth: DEPTH, ignored: at => this.#isLeftOut(at) })
    this.#close = () => watcher.close()
    watcher.on('all', (_event, at) => this.note(at))
    // The watcher can mistake a folder that was replaced within a moment, with the time stamps of an archive, for its
    // predecessor.
    watcher.on('raw', (_event, at, details) => {
      const { watchedPath } = Object(details) as { watchedPath?: string }
      const changed = path.resolve(dir, at)
      if (watchedPath === dir && !this.#isLeftOut(changed)) this.note(changed)
    })
    watcher.on('error', failed)
    await new Promise<void>(resolve => {
      this.#ready = resolve
      watcher.once('ready', resolve)
    })
  }

  /** Reports a change at a path below the folder. */
  note(at: string): void {
    const { dir, clock } = this.options
    const [first = ''] = path.relative(dir, at).split(path.sep)
    const name = this.options.name ?? first
    if (name === '' || name.startsWith('.') || this.#closed) return
    const now = clock.monotonic()
    const before = this.#pending.get(name)
    before?.timer.cancel()
    const since = before?.since ?? now
    const wait = Math.max(0, Math.min(SETTLE_MS, since + LONGEST_MS - now))
    const timer = clock.timeout(wait, () => {
      this.#pending.delete(name)
      this.options.changed(name)
    })
    this.#pending.set(name, { timer, since })
  }

  async close(): Promise<void> {
    this.#closed = true
    for (const { timer } of this.#pending.values()) timer.cancel()
    this.#pending.clear()
    await this.#close?.()
    // A watcher that is closed before it is ready never emits `ready`.
    this.#ready()
  }

  #isLeftOut(at: string): boolean {
    const parts = path.relative(this.options.dir, at).split(path.sep)
    return parts.some(part => part === 'node_modules' || (part.startsWith('.') && part !== '.')) || this.#leadsAway(at)
  }

  /**
   * A link to a folder can lead anywhere, for example into /proc, and no code is loaded through one. Only an extension
   * itself may be a link, if a manifest is behind it.
   */
  #leadsAway(at: string): boolean {
    const { dir, name } = this.options
    if (at === dir || !isFolderLink(at)) return false
    const isExtension = name === undefined && path.dirname(at) === dir
    return !isExtension || !manifestFileNames.some(manifest => existsSync(path.join(at, manifest)))
  }
}

function isFolderLink(at: string): boolean {
  try {
    return lstatSync(at).isSymbolicLink() && statSync(at).isDirectory()
  } catch {
    return false
  }
}
