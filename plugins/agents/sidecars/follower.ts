import path from 'node:path'
import { messageOf, type PluginKernel, type Timer } from '../../../kernel/plugin.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import { SIDECARS, type Which } from './locations.js'

/** Debounce in milliseconds after the first write: a burst counts as one change. */
const SETTLE_MS = 150
/** Maximum watched folders; changes in further ones are noticed on the next read. */
const MAX_FOLDERS = 512

/** An agent as seen from a workspace or the home. */
interface Seen {
  readonly agent: string
  readonly workspace: Workspace | undefined
}

interface Watched {
  /** Followers by key, with their counts. */
  readonly followers: Map<string, Seen & { count: number }>
  readonly changed: Set<Which>
  timer?: Timer
  /** Closes the watcher. */
  readonly close: () => Promise<void>
}

/**
 * Watches the two files in the folders of followed agents; without followers nothing is watched. The root of a
 * workspace is never watched, because agents are in its `.svc/` or in the home.
 */
export class Follower {
  readonly #folders = new Map<string, Watched>()
  #closed = false

  /** @param changed called when a file changed, appeared or disappeared, once for each view of its agent */
  constructor(
    private readonly kernel: Pick<PluginKernel, 'clock' | 'log'>,
    private readonly changed: (which: Which, agent: string, workspace: Workspace | undefined) => void,
  ) {}

  /** @param folder an absolute path @returns a function that ends it */
  follow(folder: string, agent: string, workspace: Workspace | undefined): () => void {
    const watched = this.#folders.get(folder) ?? this.#watched(folder)
    if (!watched) return () => {}
    const { followers } = watched
    const key = JSON.stringify([agent, workspace?.id])
    const one = followers.get(key) ?? { agent, workspace, count: 0 }
    one.count++
    followers.set(key, one)
    return () => {
      one.count--
      if (one.count === 0) followers.delete(key)
      if (followers.size === 0) void this.#forget(folder)
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#folders.keys()].map(folder => this.#forget(folder)))
  }

  #watched(folder: string): Watched | undefined {
    if (this.#closed || this.#folders.size >= MAX_FOLDERS) return undefined
    const watching = this.#watch(folder)
    watching.catch(error => this.#failed(error))
    const close = async () => (await watching)?.close()
    const watched = { followers: new Map(), changed: new Set<Which>(), close }
    this.#folders.set(folder, watched)
    return watched
  }

  async #forget(folder: string): Promise<void> {
    const watched = this.#folders.get(folder)
    this.#folders.delete(folder)
    watched?.timer?.cancel()
    await watched?.close().catch(error => this.#failed(error))
  }

  async #watch(folder: string) {
    const { watch } = await import('chokidar')
    if (!this.#folders.has(folder)) return undefined
    const ignored = (at: string) => at !== folder && whichOf(at) === undefined
    const watcher = watch(folder, { ignoreInitial: true, depth: 0, followSymlinks: false, ignored })
    watcher.on('all', (_event, at) => this.#note(folder, whichOf(at)))
    // The policy was read before the watcher was ready, so it may have changed in between.
    watcher.on('ready', () => this.#note(folder, 'heartbeat'))
    watcher.on('error', error => this.#failed(error))
    return watcher
  }

  #note(folder: string, which: Which | undefined): void {
    const watched = this.#folders.get(folder)
    if (!watched || !which) return
    watched.changed.add(which)
    watched.timer ??= this.kernel.clock.timeout(SETTLE_MS, () => {
      const changed = [...watched.changed]
      watched.changed.clear()
      delete watched.timer
      for (const one of changed) {
        for (const { agent, workspace } of watched.followers.values()) this.changed(one, agent, workspace)
      }
    })
  }

  #failed(error: unknown): void {
    this.kernel.log.warn(`the files of an agent are not watched: ${messageOf(error)}`)
  }
}

function whichOf(at: string): Which | undefined {
  const name = path.basename(at)
  return name === SIDECARS.soul.file ? 'soul' : name === SIDECARS.heartbeat.file ? 'heartbeat' : undefined
}
