import { type Awaitable, type Clock, type DropIns, type Fault, faultOf, messageOf } from '../../kernel/plugin.js'
import { admit } from './admission.js'
import type { ExtensionStatus, InstalledExtension, ResourceFamily, ShippedItem } from './api.js'
import type { Found } from './catalog.js'
import { type CodeCache, hashTree } from './code.js'
import { ExtensionErrors } from './errors.js'
import { bringCode, type Code } from './in-process.js'
import type { Manifest, SourceTier } from './manifest.js'
import type { ExtensionRuntime } from './runtime.js'
import { type Happening, next } from './states.js'

/** What instances share. */
export interface InstanceHost {
  readonly clock: Clock
  readonly daemonVersion: string
  readonly dropIns: DropIns
  readonly code: CodeCache
  /** A name that was never used before. */
  readonly unique: () => string
  readonly families: () => readonly ResourceFamily[]
  /** The process of an extension with `[subprocess]`. */
  readonly runtime: (extension: InstalledExtension) => ExtensionRuntime | undefined
  /** Its status, health or problem changed. */
  readonly changed: (instance: Instance) => void
}

/** What of an extension is loaded. */
interface Generation extends Code {
  readonly manifest: Manifest
  readonly digest: string
  readonly root: string
  readonly items: readonly ShippedItem[]
  readonly runtime?: ExtensionRuntime
}

/** What came of looking at the folder again. */
export type Outcome = 'same' | 'loaded' | 'failed'

/** One extension from its folder to what runs of it. Its changes are made one after the other. */
export class Instance {
  #status: ExtensionStatus
  #found: Found
  #generation: Generation | undefined
  #problem: Fault | undefined
  /** Why the code is not active although it is loaded. */
  #waits: string | undefined
  #line: Promise<unknown> = Promise.resolve()

  constructor(
    /** Name of its folder. */
    readonly name: string,
    readonly tier: () => SourceTier,
    found: Found,
    enabled: boolean,
    private readonly host: InstanceHost,
  ) {
    this.#found = found
    this.#status = enabled ? 'enabled' : 'disabled'
  }

  get status(): ExtensionStatus {
    return this.#status
  }

  get enabled(): boolean {
    return this.#status !== 'disabled'
  }

  get found(): Found {
    return this.#found
  }

  /** What runs, which is not what is in the folder while that does not load. */
  get generation(): Generation | undefined {
    return this.#generation
  }

  /** Why the folder as it is now is not what runs. */
  get problem(): Fault | undefined {
    return this.#problem
  }

  get waits(): string | undefined {
    return this.#waits
  }

  /** As others see it; undefined while there is no valid manifest. */
  get installed(): InstalledExtension | undefined {
    const from = this.#generation ?? ('fault' in this.#found ? undefined : this.#found)
    return from && this.#view(from)
  }

  /**
   * Loads the extension from its folder as it was found, or puts that in the place of what runs, which stays if it fails.
   * @param anew also what did not change is started again
   */
  load(found: Found, anew = false): Promise<Outcome> {
    return this.#inLine(async () => {
      this.#found = found
      if (!this.enabled) return 'same'
      const before = this.#generation
      const problem = this.#problem
      try {
        this.#generation = await this.#bring(found, before, anew)
        this.#problem = undefined
      } catch (error) {
        this.#problem = this.#faultOf(error)
        if (!this.#generation) this.#become('fail')
        const again = problem?.message === this.#problem.message
        return again ? 'same' : 'failed'
      }
      const same = before && sameGeneration(before, this.#generation) && problem === undefined && !anew
      return same ? 'same' : 'loaded'
    })
  }

  /** @returns whether it was off before */
  enable(): Promise<boolean> {
    return this.#inLine(async () => {
      if (this.enabled) return false
      this.#become('enable')
      return true
    })
  }

  /** Ends what runs of it. @returns whether it was on before */
  disable(): Promise<boolean> {
    return this.#inLine(async () => {
      if (!this.enabled) return false
      await this.#release()
      this.#become('disable')
      return true
    })
  }

  /** Ends what runs of it: its folder is gone, or the daemon stops looking after it. */
  unload(): Promise<void> {
    return this.#inLine(async () => {
      if (!this.#generation) return
      await this.#release()
      this.#become('unload')
    })
  }

  /** Ends its process alone, which a shutdown waits for; the rest goes with the daemon. */
  async stopProcess(): Promise<void> {
    await this.#generation?.runtime?.stop()
  }

  async #bring(found: Found, before: Generation | undefined, anew: boolean): Promise<Generation> {
    const manifest = await admit(found, { name: this.name, tier: this.tier(), daemonVersion: this.host.daemonVersion })
    const { root, digest } = found as Exclude<Found, { fault: Fault }>
    const code = await this.#bringCode(manifest, root, before, anew)
    const base = { manifest, digest, root, ...code }
    // From here on what was put is what runs, whatever fails.
    this.#generation = { ...base, items: before?.items ?? [], ...(before?.runtime ? { runtime: before.runtime } : {}) }
    const extension = this.#view(base)
    const items: ShippedItem[] = []
    try {
      for (const family of this.#families(manifest)) items.push(...(await family.load(extension)))
    } catch (error) {
      if (!before) await this.#release()
      throw error
    }
    const runtime = await this.#bringProcess(extension, code.hash, before, anew)
    this.#settle(this.#waits === undefined && (!runtime || (runtime === before?.runtime && this.#status === 'active')))
    return { ...base, items, ...(runtime ? { runtime } : {}) }
  }

  /** It is loaded; `ready` says whether all of it runs as well. */
  #settle(ready: boolean): void {
    if (this.#status !== 'active' && this.#status !== 'registered') this.#become('register')
    if (ready !== (this.#status === 'active')) this.#become(ready ? 'activate' : 'register')
  }

  async #bringCode(manifest: Manifest, root: string, before: Generation | undefined, anew: boolean) {
    if (manifest.main === undefined) {
      if (before?.plugin) await this.host.dropIns.remove(this.name)
      this.#waits = undefined
      return manifest.subprocess ? { hash: await hashTree(root) } : {}
    }
    const known = this.#waits === undefined && !anew ? before : undefined
    const { waits, ...code } = await bringCode(this.host, manifest, root, { before, known })
    this.#waits = waits
    return code
  }

  async #bringProcess(
    extension: InstalledExtension,
    hash: string | undefined,
    before: Generation | undefined,
    anew: boolean,
  ): Promise<ExtensionRuntime | undefined> {
    const same = before?.hash === hash && before?.digest === extension.digest && !anew
    if (before?.runtime && same && extension.manifest.subprocess) return before.runtime
    await before?.runtime?.stop()
    if (!extension.manifest.subprocess) return undefined
    const runtime = this.host.runtime(extension)
    if (!runtime) {
      this.#waits = 'this daemon has nothing that runs processes of extensions'
      return undefined
    }
    runtime.onChange(() => this.#look(runtime))
    // Not awaited: a process may take its time, and what it ships is there without it.
    runtime.start().then(
      () => this.#look(runtime),
      () => this.#look(runtime),
    )
    return runtime
  }

  /** The process is another than it was when last looked at. */
  #look(runtime: ExtensionRuntime): void {
    if (this.#generation?.runtime !== runtime) return
    const { health, disabled, pid } = runtime.health()
    if (disabled && this.#status !== 'error') this.#become('fail')
    else if (pid !== undefined && health !== 'unhealthy' && this.#status === 'registered') this.#become('activate')
    else this.host.changed(this)
  }

  async #release(): Promise<void> {
    const generation = this.#generation
    this.#generation = undefined
    this.#waits = undefined
    this.#problem = undefined
    if (!generation) return
    await generation.runtime?.stop()
    for (const family of this.#families(generation.manifest)) await this.#quietly(() => family.unload?.(this.name))
    if (generation.plugin) await this.#quietly(() => this.host.dropIns.remove(this.name))
  }

  async #quietly(work: () => Awaitable<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.#problem = this.#faultOf(error)
    }
  }

  #families({ resources }: Manifest): ResourceFamily[] {
    const used = new Set(shippedKeys(resources))
    return this.host.families().filter(({ name }) => used.has(name))
  }

  #become(happening: Happening): void {
    this.#status = next(this.#status, happening)
    this.host.changed(this)
  }

  #view({ manifest, digest, root }: { manifest: Manifest; digest: string; root: string }): InstalledExtension {
    const { plugin, module = '' } = this.#generation ?? {}
    return {
      name: this.name,
      version: manifest.version,
      root,
      manifest,
      enabled: this.enabled,
      state: this.#status,
      tier: this.tier(),
      digest,
      ...(plugin ? { code: { module, surface: plugin.surface } } : {}),
    }
  }

  #faultOf(error: unknown): Fault {
    const fault = faultOf(error)
    if (fault.code !== 'internal') return fault
    return ExtensionErrors.extension_load_failed(`${this.name} did not load: ${messageOf(error)}`, { cause: error })
  }

  #inLine<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#line.then(work)
    this.#line = done.catch(() => {})
    return done
  }
}

/** Keys below `[resources]` under which a manifest has something. */
export function shippedKeys(resources: Manifest['resources']): string[] {
  return Object.entries(resources).flatMap(([key, value]) =>
    value !== undefined && Object.keys(value).length > 0 ? [key] : [],
  )
}

const sameGeneration = (a: Generation, b: Generation) =>
  a.digest === b.digest && a.hash === b.hash && a.plugin === b.plugin && a.runtime === b.runtime
