import { Serial } from '../../../../kernel/kit/serial.js'
import type { AttributedFault } from '../../../../kernel/platform.js'
import { Fault, faultOf, messageOf } from '../../../../kernel/plugin.js'
import type { ExtensionRuntime } from '../../subprocess-host/api.js'
import type { ExtensionStatus, InstalledExtension, ShippedItem } from '../api.js'
import { ExtensionErrors } from '../errors.js'
import type { Found } from '../folders/catalog.js'
import { keyOf, type Link } from '../identity.js'
import type { Manifest, SourceTier } from '../manifest/manifest.js'
import { type Happening, next, type Outcome } from '../states.js'
import { itemsOf, type Shipped } from './families.js'
import type { InstanceHost } from './instance-host.js'
import { type Generation, Loader, sameGeneration } from './loader.js'
import { FaultNotes, LogRing } from './log-ring.js'
import { viewOf } from './view.js'

/** Milliseconds for stopping processes on shutdown; all of them share the time of the shutdown. */
const SHUTDOWN_MS = 4000

/** Errors of tables that a later version of the extension has migrated. */
const AHEAD = /\bschema_ahead\b|\bthe database has migration\b/

/** Problems that are not caused by the content of the folder. */
const NOT_ITS_OWN = ['extension_dev_taken', 'change_under_way', 'shutting_down']

/** One extension, from its folder to its running parts. Its changes are serialized. */
export class Instance {
  /** Output of the extension and notes of the daemon; kept across loads. */
  readonly log: LogRing
  readonly #loader: Loader
  #status: ExtensionStatus
  #found: Found
  #generation: Generation | undefined
  #problem: Fault | undefined
  readonly #faults: FaultNotes
  /** Resolves when the last started process is ready, or with the reason why it is not. */
  #starting: Promise<unknown> | undefined
  readonly #line = new Serial()

  constructor(
    /** Name of its folder. */
    readonly name: string,
    readonly tier: () => SourceTier,
    found: Found,
    enabled: boolean,
    private readonly host: InstanceHost,
    /** Set for a developer's link. */
    readonly link?: Link,
  ) {
    this.#found = found
    this.#status = enabled ? 'enabled' : 'disabled'
    // Code that the boot started has a log already, and faults since then belong to it.
    const bootCode = host.bootCodeOf(this)
    this.log = bootCode?.log ?? new LogRing(host.unique(), host.clock)
    this.#faults = new FaultNotes(this.log, bootCode ? 0 : host.clock.now())
    this.#loader = new Loader(host, this, content => viewOf(this, content))
  }

  /** Unique key, which includes the place of a link. */
  get key(): string {
    return keyOf(this.name, this.link)
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

  /** The running generation, which can be older than the folder if that does not load. */
  get generation(): Generation | undefined {
    return this.#generation
  }

  /** Why the current state of the folder does not run. */
  get problem(): Fault | undefined {
    return this.#problem
  }

  /** Why the code is loaded but does not run. */
  get waits(): string | undefined {
    return this.#generation?.waits
  }

  /** The extension as other plugins see it; undefined without a valid manifest. */
  get installed(): InstalledExtension | undefined {
    const from = this.#generation ?? ('fault' in this.#found ? undefined : this.#found)
    return from && viewOf(this, from)
  }

  /** Its items in use, as read by the families. */
  get items(): readonly ShippedItem[] {
    return itemsOf(this.#generation?.shipped ?? [])
  }

  /** Records that its process published, also while it does not run. */
  get published(): readonly ShippedItem[] {
    return this.host.families.publishedBy(this.key)
  }

  /** Keys below `[resources]`, and `tools`, that a family has read. */
  get readKeys(): readonly string[] {
    return this.#generation?.shipped.map(({ family }) => family.name) ?? []
  }

  /**
   * Loads the found folder, instead of the running generation, which stays on failure.
   * @param anew also restarts unchanged parts
   * @param allow throws the reason why a valid manifest must not be loaded
   */
  load(found: Found, anew = false, allow?: (manifest: Manifest) => void): Promise<Outcome> {
    return this.#line.run(async () => {
      this.#found = found
      if (!this.enabled) return 'same'
      const before = this.#generation
      const problem = this.#problem
      try {
        this.#generation = await this.#loader.bring(found, { before, anew, allow })
        this.#problem = undefined
      } catch (error) {
        const fault = this.#faultOf(error)
        const isRunning = before !== undefined || (await this.#runKept())
        // The kept code starts first: only its start distinguishes a failed extension from an outdated one.
        this.#problem = fault
        if (!isRunning) this.#become('fail')
        const outcome = problem?.message === fault.message ? 'same' : before || problem ? 'worse' : 'failed'
        if (outcome !== 'same' || anew) this.#noteProblem()
        return outcome
      }
      this.#settle(this.#generation, before)
      if (!this.link) await this.#loader.keep(this.#generation)
      if (before && sameGeneration(before, this.#generation) && problem === undefined && !anew) return 'same'
      const { version } = this.#generation.manifest
      this.log.note(`${before || problem ? 'loaded again' : 'loaded'}, version ${version}, ${this.#status}`)
      return before || problem ? 'changed' : 'loaded'
    })
  }

  /** Runs the code that started last, if nothing runs and the folder does not load. */
  async #runKept(): Promise<boolean> {
    this.#generation = this.link ? undefined : await this.#loader.bringKept(this.#found.root)
    if (this.#generation) this.#settle(this.#generation, undefined)
    return this.#generation !== undefined
  }

  /**
   * Why the content of the folder does not start; problems caused by other extensions or by a shutdown do not count.
   * @param withProcess also waits until its process is ready or fails
   */
  async failing(withProcess: boolean): Promise<Fault | undefined> {
    const problem = this.#problem
    if (problem) return NOT_ITS_OWN.includes(problem.code) ? undefined : problem
    const failure = withProcess ? await this.#starting : undefined
    return failure === undefined ? undefined : this.#faultOf(new Error(`its process failed: ${messageOf(failure)}`))
  }

  /**
   * Reads the items again after a plugin with families, or its own plugin, was added or removed. @returns whether it
   * was affected
   */
  refit(plugin: string): Promise<boolean> {
    return this.#line.run(async () => {
      const loaded = this.#generation
      if (!loaded) return false
      try {
        const fitted = await this.#loader.refit(loaded, plugin)
        if (!fitted) return false
        this.#generation = fitted
        this.#settle(fitted, loaded)
        if (fitted.runtime) this.#updateStatus(fitted.runtime)
      } catch (error) {
        this.#problem = this.#faultOf(error)
        this.#generation = { ...loaded, shipped: loaded.shipped.filter(({ owner }) => owner !== plugin) }
        this.#noteProblem()
      }
      this.host.changed(this)
      return true
    })
  }

  /** The items that its folder would ship; loads nothing. @throws the faults of a load up to that point */
  plan(): Promise<Shipped> {
    return this.#loader.plan(this.#found)
  }

  /**
   * @param commit stores the change; not called if already enabled
   * @returns whether it was disabled before
   */
  enable(commit: () => Promise<void>): Promise<boolean> {
    return this.#line.run(async () => {
      if (this.enabled) return false
      await commit()
      this.#become('enable')
      return true
    })
  }

  /**
   * Stops everything of the extension.
   * @param commit stores the change; not called if already disabled
   * @returns whether it was enabled before
   */
  disable(commit: () => Promise<void>): Promise<boolean> {
    return this.#line.run(async () => {
      if (!this.enabled) return false
      await commit()
      // First, so that a request without its routes hears the reason.
      this.#become('disable')
      await this.#release()
      this.log.note('switched off')
      return true
    })
  }

  /** Stops everything of the extension, because another instance holds one of its claims. */
  giveWay(why: Fault): Promise<void> {
    return this.#line.run(async () => {
      if (!this.#generation) return
      await this.#release()
      this.#problem = why
      this.#become('fail')
      this.#noteProblem()
    })
  }

  /** Stops everything of the extension, because its folder was removed. */
  unload(): Promise<void> {
    return this.#line.run(async () => {
      if (this.#status === 'disabled' || this.#status === 'enabled') return
      await this.#release()
      this.#become('unload')
    })
  }

  /** Stops only its process, which a shutdown waits for; the rest ends with the daemon. */
  async stopProcess(): Promise<void> {
    await this.#generation?.runtime?.stop({ deadlineMs: SHUTDOWN_MS })
  }

  /** Logs each fault that the daemon attributes to its code or process once. */
  noteFaults(faults: readonly AttributedFault[]): void {
    const plugin = this.#generation?.plugin
    // Faults of a replacement are attributed to the replaced plugin.
    this.#faults.note(faults, [this.name, this.waits === undefined ? plugin?.replaces : undefined])
  }

  /** Starts the process of a loaded generation, unless it already runs, and sets the status. */
  #settle({ runtime, waits }: Generation, before: Generation | undefined): void {
    const isOld = runtime !== undefined && runtime === before?.runtime
    if (runtime && !isOld) {
      runtime.onChange(() => this.#updateStatus(runtime))
      // Not awaited: a process may be slow, and shipped items do not need it.
      this.#starting = runtime.start().then(
        () => void this.#updateStatus(runtime),
        error => {
          this.#updateStatus(runtime)
          return error
        },
      )
    }
    // A process that was given up stays so until a restart.
    if (isOld && this.#status === 'error') return
    const ready = waits === undefined && (!runtime || (isOld && this.#status === 'active'))
    if (this.#status !== 'active' && this.#status !== 'registered') this.#become('register')
    if (ready !== (this.#status === 'active')) this.#become(ready ? 'activate' : 'register')
  }

  /** Updates the status from the health of the process. */
  #updateStatus(runtime: ExtensionRuntime): void {
    if (this.#generation?.runtime !== runtime) return
    const { health, disabled, deferred, pid } = runtime.health()
    const runs = pid !== undefined && health !== 'unhealthy' && this.waits === undefined
    // A process that was given up is retried after it was not needed for a while.
    if (this.#status === 'error' && !disabled && (deferred || runs) && !this.#problem) this.#become('register')
    if (disabled && this.#status !== 'error') this.#become('fail')
    else if (deferred && this.#status === 'active') this.#become('register')
    else if (runs && this.#status === 'registered') this.#become('activate')
    else this.host.changed(this)
    this.host.tell()
  }

  async #release(): Promise<void> {
    const generation = this.#generation
    this.#generation = undefined
    this.#problem = undefined
    const problem = await (generation ? this.#loader.release(generation) : this.#loader.releaseBegun())
    if (problem !== undefined) this.#problem = this.#faultOf(problem)
  }

  #noteProblem(): void {
    if (!this.#problem) return
    this.log.note(`${this.#generation ? 'runs as it was before' : 'is not loaded'}: ${this.#problem.message}`)
  }

  #become(happening: Happening): void {
    this.#status = next(this.#status, happening)
    this.host.changed(this)
  }

  #faultOf(error: unknown): Fault {
    const fault = faultOf(error)
    const version = AHEAD.test(`${fault.code} ${messageOf(error)}`) ? this.host.kept.get(this.name)?.version : undefined
    const writer = version === undefined ? '' : `; version ${version} of ${this.name} ran last`
    if (fault.code === 'internal') {
      const text = `${this.name} did not load: ${messageOf(error)}${writer}`
      return ExtensionErrors.extension_load_failed(text, { cause: error })
    }
    if (writer === '') return fault
    const { code, status, message, next, details } = fault
    return new Fault(code, status, `${message}${writer}`, {
      ...(next !== undefined && { next }),
      ...(details && { details }),
      cause: error,
    })
  }
}
