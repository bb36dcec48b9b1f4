import { Serial } from '../../../../kernel/kit/serial.js'
import type { AttributedFault } from '../../../../kernel/platform.js'
import { Fault, faultOf, messageOf } from '../../../../kernel/plugin.js'
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
import type { ExtensionRuntime } from './runtime.js'
import { viewOf } from './view.js'

/** Milliseconds that a process has when the daemon stops; all of them share the time that a shutdown has. */
const SHUTDOWN_MS = 4000

/** How tables that a later version of an extension has migrated are told of. */
const AHEAD = /\bschema_ahead\b|\bthe database has migration\b/

/** Codes of problems that tell nothing about what is in the folder. */
const NOT_ITS_OWN = ['extension_dev_taken', 'change_under_way', 'shutting_down']

/** One extension from its folder to what runs of it. Its changes are made one after the other. */
export class Instance {
  /** What it says and what is said about it; it lasts from one load to the next. */
  readonly log: LogRing
  readonly #loader: Loader
  #status: ExtensionStatus
  #found: Found
  #generation: Generation | undefined
  #problem: Fault | undefined
  readonly #faults: FaultNotes
  /** Resolves when the process that was started last is ready, or with why it is not. */
  #starting: Promise<unknown> | undefined
  readonly #line = new Serial()

  constructor(
    /** Name of its folder. */
    readonly name: string,
    readonly tier: () => SourceTier,
    found: Found,
    enabled: boolean,
    private readonly host: InstanceHost,
    /** Of one that a developer linked. */
    readonly link?: Link,
  ) {
    this.#found = found
    this.#status = enabled ? 'enabled' : 'disabled'
    // What the boot began with has a log already, and faults since then are its own.
    const begun = host.begun(this)
    this.log = begun?.log ?? new LogRing(host.unique(), host.clock)
    this.#faults = new FaultNotes(this.log, begun ? 0 : host.clock.now())
    this.#loader = new Loader(host, this, seen => viewOf(this, seen))
  }

  /** What tells it from others of its name. */
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

  /** What runs, which is not what is in the folder while that does not load. */
  get generation(): Generation | undefined {
    return this.#generation
  }

  /** Why the folder as it is now is not what runs. */
  get problem(): Fault | undefined {
    return this.#problem
  }

  /** Why it does not run although it is loaded. */
  get waits(): string | undefined {
    return this.#generation?.waits
  }

  /** As others see it; undefined while there is no valid manifest. */
  get installed(): InstalledExtension | undefined {
    const from = this.#generation ?? ('fault' in this.#found ? undefined : this.#found)
    return from && viewOf(this, from)
  }

  /** What of it is in use, as its families read it. */
  get items(): readonly ShippedItem[] {
    return itemsOf(this.#generation?.shipped ?? [])
  }

  /** What its process has published, also when it does not run now. */
  get published(): readonly ShippedItem[] {
    return this.host.families.publishedBy(this.key)
  }

  /** Keys below `[resources]`, and `tools`, that a family has read. */
  get readKeys(): readonly string[] {
    return this.#generation?.shipped.map(({ family }) => family.name) ?? []
  }

  /**
   * Loads the extension from its folder as it was found, or puts that in the place of what runs, which stays if it fails.
   * @param anew also what did not change is started again
   * @param allow throws why that may not be loaded, though it is valid
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
        // The kept code starts first: only its start tells a failed extension from an outdated one.
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

  /** Nothing of it runs, and what is in the folder does not load: the code that started last does. */
  async #runKept(): Promise<boolean> {
    this.#generation = this.link ? undefined : await this.#loader.bringKept(this.#found.root)
    if (this.#generation) this.#settle(this.#generation, undefined)
    return this.#generation !== undefined
  }

  /**
   * Why what is in the folder does not start; what other extensions or the end of the daemon cause is no fault of it.
   * @param withProcess also waits for its process, until that is ready or fails
   */
  async failing(withProcess: boolean): Promise<Fault | undefined> {
    const problem = this.#problem
    if (problem) return NOT_ITS_OWN.includes(problem.code) ? undefined : problem
    const failure = withProcess ? await this.#starting : undefined
    return failure === undefined ? undefined : this.#faultOf(new Error(`its process failed: ${messageOf(failure)}`))
  }

  /** A plugin that may have families of what it ships, or its own, came or went. @returns whether that has to do with it */
  refit(plugin: string): Promise<boolean> {
    return this.#line.run(async () => {
      const loaded = this.#generation
      if (!loaded) return false
      try {
        const fitted = await this.#loader.refit(loaded, plugin)
        if (!fitted) return false
        this.#generation = fitted
        this.#settle(fitted, loaded)
        if (fitted.runtime) this.#look(fitted.runtime)
      } catch (error) {
        this.#problem = this.#faultOf(error)
        this.#generation = { ...loaded, shipped: loaded.shipped.filter(({ owner }) => owner !== plugin) }
        this.#noteProblem()
      }
      this.host.changed(this)
      return true
    })
  }

  /** What an extension of that folder would ship; loads nothing. @throws what loading it would throw, up to there */
  plan(): Promise<Shipped> {
    return this.#loader.plan(this.#found)
  }

  /**
   * @param commit makes that last; not called when it is on already
   * @returns whether it was off before
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
   * Ends what runs of it.
   * @param commit makes that last; not called when it is off already
   * @returns whether it was on before
   */
  disable(commit: () => Promise<void>): Promise<boolean> {
    return this.#line.run(async () => {
      if (!this.enabled) return false
      await commit()
      await this.#release()
      this.#become('disable')
      this.log.note('switched off')
      return true
    })
  }

  /** Ends what runs of it: another one has what there can be only once. */
  giveWay(why: Fault): Promise<void> {
    return this.#line.run(async () => {
      if (!this.#generation) return
      await this.#release()
      this.#problem = why
      this.#become('fail')
      this.#noteProblem()
    })
  }

  /** Ends what runs of it: its folder is gone. */
  unload(): Promise<void> {
    return this.#line.run(async () => {
      if (this.#status === 'disabled' || this.#status === 'enabled') return
      await this.#release()
      this.#become('unload')
    })
  }

  /** Ends its process alone, which a shutdown waits for; the rest goes with the daemon. */
  async stopProcess(): Promise<void> {
    await this.#generation?.runtime?.stop({ deadlineMs: SHUTDOWN_MS })
  }

  /** Faults that the daemon attributes to its code or its process go into its log, each once. */
  noteFaults(faults: readonly AttributedFault[]): void {
    const plugin = this.#generation?.plugin
    // In the place of another it goes by the name of that one.
    this.#faults.note(faults, [this.name, this.waits === undefined ? plugin?.replaces : undefined])
  }

  /** It is loaded: its process is started unless it is the one that runs, and its status says whether all of it runs. */
  #settle({ runtime, waits }: Generation, before: Generation | undefined): void {
    const isOld = runtime !== undefined && runtime === before?.runtime
    if (runtime && !isOld) {
      runtime.onChange(() => this.#look(runtime))
      // Not awaited: a process may take its time, and what it ships is there without it.
      this.#starting = runtime.start().then(
        () => void this.#look(runtime),
        error => {
          this.#look(runtime)
          return error
        },
      )
    }
    // One that was given up stays so until it is started anew.
    if (isOld && this.#status === 'error') return
    const ready = waits === undefined && (!runtime || (isOld && this.#status === 'active'))
    if (this.#status !== 'active' && this.#status !== 'registered') this.#become('register')
    if (ready !== (this.#status === 'active')) this.#become(ready ? 'activate' : 'register')
  }

  /** The process is another than it was when last looked at. */
  #look(runtime: ExtensionRuntime): void {
    if (this.#generation?.runtime !== runtime) return
    const { health, disabled, deferred, pid } = runtime.health()
    const runs = pid !== undefined && health !== 'unhealthy' && this.waits === undefined
    // A process that was given up is tried anew where it was not needed for a while.
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
