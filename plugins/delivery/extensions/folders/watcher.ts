import { existsSync, lstatSync, statSync } from 'node:fs'
import path from 'node:path'
import type { Clock, Timer } from '../../../../kernel/plugin.js'
import { manifestFileNames } from '../manifest/manifest.js'

/** A burst of writes is one change. Milliseconds after the last one, and at most after the first one. */
const SETTLE_MS = 150
const LONGEST_MS = 2000
/** Levels of folders below an extension that are watched. */
const DEPTH = 8

export interface WatcherOptions {
  readonly dir: string
  /** What is told of whatever changes below `dir`; absent: the name of the folder in which it changed. */
  readonly name?: string
  readonly clock: Clock
  /** Told of the name of a folder in which something changed, came or went. */
  readonly changed: (name: string) => void
  readonly failed: (error: unknown) => void
}

/** Watches the folder of all extensions, or that of one; what changes within one of them in a short time is told of once. */
export class Watcher {
  readonly #pending = new Map<string, { timer: Timer; since: number }>()
  #close: (() => Promise<void>) | undefined
  #ready = () => {}
  #closed = false

  constructor(private readonly options: WatcherOptions) {}

  /** Resolves when it watches; what happens later is told of. */
  async start(): Promise<void> {
    const { dir, failed } = this.options
    const { watch } = await import('chokidar')
    if (this.#closed) return
    const watcher = watch(dir, { ignoreInitial: true, depth: DEPTH, ignored: at => this.#isLeftOut(at) })
    this.#close = () => watcher.close()
    watcher.on('all', (_event, at) => this.note(at))
    // It may take a folder that was exchanged within a moment, with the time stamps of an archive, for the one before.
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

  /** Something changed at a path below the folder. */
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
    // Closed before it was ready, it never says so.
    this.#ready()
  }

  #isLeftOut(at: string): boolean {
    const parts = path.relative(this.options.dir, at).split(path.sep)
    return parts.some(part => part === 'node_modules' || (part.startsWith('.') && part !== '.')) || this.#leadsAway(at)
  }

  /**
   * A link to a folder can lead anywhere, into /proc for one, and no code is taken through one. Only an extension itself may be
   * a link, with its manifest behind it.
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
