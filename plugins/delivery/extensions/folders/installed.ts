import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { aborted } from '../../../../kernel/kit/backoff.js'
import { SerialBy } from '../../../../kernel/kit/serial.js'
import { messageOf, type PluginKernel } from '../../../../kernel/plugin.js'
import type { Instance } from '../load/instance.js'
import type { Catalog, Found } from './catalog.js'
import { Watcher } from './watcher.js'

/** Extensions that are loaded concurrently. */
const AT_ONCE = 8
/** The part of the extensions service that the folder uses. */
export interface FolderHost {
  readonly make: (name: string, found: Found) => Instance
  /**
   * Whether an installation is replacing the folder. A missing folder is then no removal, and the installation reads
   * the folder afterwards.
   */
  readonly isPlacing: (name: string) => boolean
  /** Whether the manifest of a folder elsewhere is cached as well. */
  readonly isKnown: (root: string) => boolean
  /** Applies the found folder to the instance. */
  readonly take: (instance: Instance, found: Found, anew: boolean) => Promise<void>
  /** Called when an extension may hold fewer claims than before. */
  readonly freed: (name: string) => Promise<void>
  readonly gone: (name: string) => Promise<void>
  /** Called when a folder of that name was read. */
  readonly onRead: (name: string) => void
  readonly tell: () => Promise<void>
}

/** Callbacks around the first scan. */
export interface FirstLook {
  /** @param names of the existing folders */
  readonly before: (names: readonly string[]) => Promise<void>
  readonly after: () => Promise<void>
}

/** The folder of extensions: keeps the running instances equal to its subfolders. */
export class InstalledFolder {
  readonly #instances = new Map<string, Instance>()
  readonly #turns = new SerialBy()

  constructor(
    private readonly dir: string,
    private readonly kernel: Pick<PluginKernel, 'clock' | 'log' | 'scope'>,
    private readonly catalog: Catalog,
    private readonly host: FolderHost,
  ) {}

  get(name: string): Instance | undefined {
    return this.#instances.get(name)
  }

  all(): Instance[] {
    return [...this.#instances.values()]
  }

  /** Names of the existing folders. */
  names(): Promise<string[]> {
    return this.catalog.folders(this.dir)
  }

  /** Loads the existing folders and follows changes until the signal aborts. */
  async follow(signal: AbortSignal, first: FirstLook): Promise<void> {
    await mkdir(this.dir, { recursive: true, mode: 0o700 })
    const { clock, log } = this.kernel
    const watcher = new Watcher({
      dir: this.dir,
      clock,
      changed: name => void this.refresh(name).catch(error => log.error(`${name}: ${messageOf(error)}`)),
      failed: error => log.warn(`the folder of extensions is not watched: ${messageOf(error)}`),
    })
    const close = this.kernel.scope.defer('watch extensions', () => watcher.close())
    const stopped = aborted(signal)
    try {
      // An abort does not wait for an extension whose code never returns.
      await Promise.race([this.#begin(watcher, signal, first), stopped])
      if (!signal.aborted) await stopped
    } finally {
      await close()
    }
  }

  /** Resolves when all running and queued reads of that folder have ended. */
  looked(name: string): Promise<void> {
    return this.#turns.run(name, async () => {})
  }

  /** Reads one folder again and applies it. */
  async refresh(name: string, anew = false): Promise<void> {
    await this.#refresh(name, anew)
    await this.host.tell()
  }

  async #begin(watcher: Watcher, signal: AbortSignal, { before, after }: FirstLook): Promise<void> {
    await before(await this.names())
    await this.#lookAtAll(signal)
    await after()
    await watcher.start()
    // The watcher reports no changes from before it started.
    await this.#lookAtAll(signal)
  }

  async #lookAtAll(signal: AbortSignal): Promise<void> {
    const queue = [...new Set([...(await this.names()), ...this.#instances.keys()])]
    const worker = async () => {
      for (let name = queue.shift(); name !== undefined && !signal.aborted; name = queue.shift()) {
        await this.#refresh(name).catch(error => {
          // An error caused by the shutdown of the daemon is not logged.
          if (!this.kernel.scope.signal.aborted) this.kernel.log.error(messageOf(error), { extension: name })
        })
        this.host.onRead(name)
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, worker))
    const roots = new Set(this.all().map(({ found }) => found.root))
    await this.catalog.save(root => roots.has(root) || this.host.isKnown(root))
    await this.host.tell()
  }

  /** Reads of one folder are serialized, so that the newest result wins and a removal completes before a new load. */
  #refresh(name: string, anew = false): Promise<void> {
    return this.#turns.run(name, async () => {
      const found = await this.catalog.read(path.join(this.dir, name))
      if (found) await this.#take(name, found, anew)
      else if (!this.host.isPlacing(name)) await this.#forget(name)
    })
  }

  async #take(name: string, found: Found, anew: boolean): Promise<void> {
    const instance = this.#instances.get(name) ?? this.host.make(name, found)
    this.#instances.set(name, instance)
    await this.host.take(instance, found, anew)
    await this.host.freed(name)
  }

  async #forget(name: string): Promise<void> {
    const instance = this.#instances.get(name)
    if (!instance) return
    await instance.unload()
    // The instance is listed until it has stopped: its absence means that nothing of it runs.
    this.#instances.delete(name)
    await this.host.gone(name)
    await this.host.freed(name)
  }
}
