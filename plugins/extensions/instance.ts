import { type Fault, faultOf, messageOf } from '../../kernel/plugin.js'
import { admit } from './admission.js'
import type { ExtensionStatus, InstalledExtension, ShippedItem } from './api.js'
import type { Found } from './catalog.js'
import { hashTree } from './code.js'
import { ExtensionErrors } from './errors.js'
import { itemsOf, type Shipped } from './families.js'
import { bringCode, type Code } from './in-process.js'
import type { InstanceHost } from './instance-host.js'
import type { Manifest, SourceTier } from './manifest.js'
import type { ExtensionRuntime } from './runtime.js'
import { type Happening, next } from './states.js'

/** Milliseconds that a process has when the daemon stops; all of them share the time that a shutdown has. */
const SHUTDOWN_MS = 4000

/** What was found in a folder. */
type Seen = Pick<InstalledExtension, 'manifest' | 'digest' | 'root'>

/** What of an extension is loaded. */
interface Generation extends Code, Seen {
  readonly shipped: Shipped
  readonly runtime?: ExtensionRuntime
}

/** What came of looking at the folder again: it was loaded or failed to, or what was loaded or failed before changed or failed to. */
export type Outcome = 'same' | 'loaded' | 'failed' | 'changed' | 'worse'

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
    /** Of one that a developer linked: id of the workspace that it counts in, empty for all. */
    readonly link?: { readonly workspace: string },
  ) {
    this.#found = found
    this.#status = enabled ? 'enabled' : 'disabled'
  }

  /** Under what its switch is stored; a link has one of its own beside that of what is installed. */
  get key(): string {
    return this.link ? `${this.name}@${this.link.workspace}` : this.name
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

  /** What of it is in use, as its families read it. */
  get items(): readonly ShippedItem[] {
    return itemsOf(this.#generation?.shipped ?? [])
  }

  /** Keys below `[resources]`, and `tools`, that a family has read. */
  get readKeys(): readonly string[] {
    return this.#generation?.shipped.map(({ family }) => family.name) ?? []
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
        if (!before) this.#become('fail')
        return problem?.message === this.#problem.message ? 'same' : before || problem ? 'worse' : 'failed'
      }
      if (before && sameGeneration(before, this.#generation) && problem === undefined && !anew) return 'same'
      return before || problem ? 'changed' : 'loaded'
    })
  }

  /** What an extension of that folder would ship; loads nothing. @throws what loading it would throw, up to there */
  async plan(): Promise<Shipped> {
    return this.host.families.read(this.#view(await this.#admitted(this.#found)))
  }

  /**
   * @param commit makes that last; not called when it is on already
   * @returns whether it was off before
   */
  enable(commit: () => Promise<void>): Promise<boolean> {
    return this.#inLine(async () => {
      if (this.enabled) return false
      await commit()
      this.#become('enable')
      return true
    })
  }

  /**
   * Ends what runs of it.
   * @param commit makes that last; not called when it is off already
   * @returns whether it was on before
   */
  disable(commit: () => Promise<void>): Promise<boolean> {
    return this.#inLine(async () => {
      if (!this.enabled) return false
      await commit()
      await this.#release()
      this.#become('disable')
      return true
    })
  }

  /** Ends what runs of it: its folder is gone. */
  unload(): Promise<void> {
    return this.#inLine(async () => {
      if (this.#status === 'disabled' || this.#status === 'enabled') return
      await this.#release()
      this.#become('unload')
    })
  }

  /** Ends its process alone, which a shutdown waits for; the rest goes with the daemon. */
  async stopProcess(): Promise<void> {
    await this.#generation?.runtime?.stop({ deadlineMs: SHUTDOWN_MS })
  }

  /** In this order nothing is half: what is read changes nothing, what is published is one transaction and can be taken back. */
  async #bring(found: Found, before: Generation | undefined, anew: boolean): Promise<Generation> {
    const { families } = this.host
    const seen = await this.#admitted(found)
    const { manifest, root } = seen
    const shipped = this.host.keptOff(this.name) ? [] : await families.read(this.#view(seen))
    await families.publish(this.#view(seen), shipped)
    const code = await this.#bringCode(manifest, root, before, anew).catch(async error => {
      await families.publish(this.#view(seen), before?.shipped ?? [])
      throw error
    })
    const loaded = { ...seen, ...code, shipped }
    const runtime = await this.#bringProcess(this.#view(loaded), code.hash, before, anew)
    this.#settle(this.#waits === undefined && (!runtime || (runtime === before?.runtime && this.#status === 'active')))
    return { ...loaded, ...(runtime ? { runtime } : {}) }
  }

  async #admitted(found: Found): Promise<Seen> {
    const manifest = await admit(found, { name: this.name, tier: this.tier(), daemonVersion: this.host.daemonVersion })
    const { root, digest } = found as Exclude<Found, { fault: Fault }>
    return { manifest, digest, root }
  }

  /** It is loaded; `ready` says whether all of it runs as well. */
  #settle(ready: boolean): void {
    if (this.#status !== 'active' && this.#status !== 'registered') this.#become('register')
    if (ready !== (this.#status === 'active')) this.#become(ready ? 'activate' : 'register')
  }

  async #bringCode(manifest: Manifest, root: string, before: Generation | undefined, anew: boolean) {
    const keptOff = this.host.keptOff(this.name)
    // Not even imported: what held the daemon may have done so there.
    if (manifest.main === undefined || keptOff !== undefined) {
      if (before?.plugin) await this.host.dropIns.remove(this.name)
      this.#waits = keptOff
      return manifest.subprocess ? { hash: await hashTree(root) } : {}
    }
    const known = this.#waits === undefined && !anew ? before : undefined
    const { waits, ...code } = await bringCode(this.host, manifest, root, { before, known, anew })
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
    const wanted = extension.manifest.subprocess && !this.host.keptOff(this.name)
    const runtime = wanted ? this.host.runtime(extension) : undefined
    await before?.runtime?.stop()
    if (!runtime) return undefined
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
    this.host.tell()
  }

  async #release(): Promise<void> {
    const generation = this.#generation
    this.#generation = undefined
    this.#waits = undefined
    this.#problem = undefined
    if (!generation) return this.host.stateOf(this.name) && this.#quietly(() => this.host.dropIns.remove(this.name))
    await generation.runtime?.stop()
    await this.#quietly(() => this.host.families.withdraw(this.name))
    if (generation.plugin) await this.#quietly(() => this.host.dropIns.remove(this.name))
    if (generation.hash) this.host.code.release(generation.hash)
  }

  async #quietly(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.#problem = this.#faultOf(error)
    }
  }

  #become(happening: Happening): void {
    this.#status = next(this.#status, happening)
    this.host.changed(this)
  }

  #view({ manifest, digest, root, plugin, module = '' }: Code & Seen): InstalledExtension {
    return {
      name: this.name,
      version: manifest.version,
      root,
      manifest,
      enabled: this.enabled,
      state: this.#status,
      tier: this.tier(),
      digest,
      ...(this.link?.workspace ? { workspace: this.link.workspace } : {}),
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

const sameGeneration = (a: Generation, b: Generation) =>
  a.digest === b.digest && a.hash === b.hash && a.plugin === b.plugin && a.runtime === b.runtime
