import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { SerialBy } from '../../../../kernel/kit/serial.js'
import { messageOf, type PluginKernel } from '../../../../kernel/plugin.js'
import type { Instance } from '../load/instance.js'
import type { Catalog, Found } from './catalog.js'
import { Watcher } from './watcher.js'

/** Extensions that are loaded at once. */
const AT_ONCE = 8
/** What the folder asks of the service that runs what is in it. */
export interface FolderHost {
  readonly make: (name: string, found: Found) => Instance
  /** Its folder is being exchanged: that it is absent means nothing, and whoever does it has it looked at afterwards. */
  readonly isPlacing: (name: string) => boolean
  /** Another folder than one of this place, whose manifest is read, too. */
  readonly isKnown: (root: string) => boolean
  /** Makes the instance what was found. */
  readonly take: (instance: Instance, found: Found, anew: boolean) => Promise<void>
  /** One of them may need less than before, or nothing any more. */
  readonly freed: (name: string) => Promise<void>
  readonly gone: (name: string) => Promise<void>
  /** A folder of that name was looked at. */
  readonly seen: (name: string) => void
  readonly tell: () => Promise<void>
}

/** What is to be done around the first look. */
export interface FirstLook {
  /** @param names of the folders that are there */
  readonly before: (names: readonly string[]) => Promise<void>
  readonly after: () => Promise<void>
}

/** The folder of extensions: each folder in it is one, and what runs is kept the same as what is there. */
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

  /** Names of the folders that are there. */
  names(): Promise<string[]> {
    return this.catalog.folders(this.dir)
  }

  /** Loads what is there and follows the folder until the signal aborts. */
  async follow(signal: AbortSignal, first: FirstLook): Promise<void> {
    await mkdir(this.dir, { recursive: true, mode: 0o700 })
    const { clock, log } = this.kernel
    const watcher = new Watcher({
      dir: this.dir,
      clock,
      changed: name => void this.look(name).catch(error => log.error(`${name}: ${messageOf(error)}`)),
      failed: error => log.warn(`the folder of extensions is not watched: ${messageOf(error)}`),
    })
    const close = this.kernel.scope.defer('watch extensions', () => watcher.close())
    const stopped = new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
    try {
      // Whoever stops it does not wait for code that never ends.
      await Promise.race([this.#begin(watcher, signal, first), stopped])
      if (!signal.aborted) await stopped
    } finally {
      await close()
    }
  }

  /** Resolves when the looks at that folder that are under way or due have ended. */
  looked(name: string): Promise<void> {
    return this.#turns.run(name, async () => {})
  }

  /** Looks at one folder again and makes what runs the same. */
  async look(name: string, anew = false): Promise<void> {
    await this.#look(name, anew)
    await this.host.tell()
  }

  async #begin(watcher: Watcher, signal: AbortSignal, { before, after }: FirstLook): Promise<void> {
    await before(await this.names())
    await this.#lookAtAll(signal)
    await after()
    await watcher.start()
    // What changed between the two looks was not told of.
    await this.#lookAtAll(signal)
  }

  async #lookAtAll(signal: AbortSignal): Promise<void> {
    const queue = [...new Set([...(await this.names()), ...this.#instances.keys()])]
    const worker = async () => {
      for (let name = queue.shift(); name !== undefined && !signal.aborted; name = queue.shift()) {
        await this.#look(name).catch(error => {
          // What the end of the daemon interrupts is no fault.
          if (!this.kernel.scope.signal.aborted) this.kernel.log.error(messageOf(error), { extension: name })
        })
        this.host.seen(name)
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, worker))
    const roots = new Set(this.all().map(({ found }) => found.root))
    await this.catalog.save(root => roots.has(root) || this.host.isKnown(root))
    await this.host.tell()
  }

  /** In turn, so that no older look has the last word, and what goes is gone before it comes again. */
  #look(name: string, anew = false): Promise<void> {
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
    // Not before: who sees it no more may rely on nothing of it running.
    this.#instances.delete(name)
    await this.host.gone(name)
    await this.host.freed(name)
  }
}
