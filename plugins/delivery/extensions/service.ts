import path from 'node:path'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { type Actor, type Fault, messageOf } from '../../../kernel/plugin.js'
import type { Extension } from '../../../schemas/extensions.js'
import type { Check } from '../../desk/daemon/api.js'
import { type Installations, Unsandboxed } from '../installer/api.js'
import type { ExtensionRuntime } from '../subprocess-host/api.js'
import {
  ExtensionDisabled,
  ExtensionEnabled,
  ExtensionErrors,
  type ExtensionStorage,
  type ExtensionsApi,
  type InstalledExtension,
  points,
} from './api.js'
import { extensionItems } from './checks.js'
import { checkConsent } from './consent/check.js'
import { type Owner, ownerAmong } from './consent/owner.js'
import { BundledExtensions } from './folders/bundled.js'
import { Catalog, type Found } from './folders/catalog.js'
import { Claims } from './folders/claims.js'
import { DevLinks } from './folders/dev.js'
import { honourDisableNotes } from './folders/honour-notes.js'
import { InstalledFolder } from './folders/installed.js'
import { News } from './folders/news.js'
import { tellOutcome } from './folders/outcome.js'
import { isLink, keyOf, type Link, placeOf } from './identity.js'
import { installTarget } from './install-target.js'
import { BootCodes } from './load/boot-code.js'
import { CodeCache } from './load/code.js'
import { Expected } from './load/expected.js'
import { Families } from './load/families.js'
import { Instance } from './load/instance.js'
import type { InstanceHost } from './load/instance-host.js'
import { KeptCode } from './load/kept-code.js'
import { unrouted } from './load/unrouted.js'
import type { Manifest, SourceTier } from './manifest/manifest.js'
import type { K } from './needs.js'
import { Secrets } from './secrets.js'
import { storageOf } from './storage/storage.js'
import { flags, isEnabled } from './tables.js'
import { Views } from './views.js'

/** All installed and linked extensions. */
export class ExtensionsService implements ExtensionsApi {
  readonly changed
  readonly disabling
  readonly secrets: Secrets
  readonly views: Views
  readonly dev: DevLinks
  readonly folder: InstalledFolder
  readonly #bundled: BundledExtensions
  readonly installations: Installations
  readonly #catalog: Catalog
  readonly #code: CodeCache
  readonly #kept: KeptCode
  readonly #families: Families
  readonly #host: InstanceHost
  readonly #news: News
  readonly #expected: Expected

  constructor(readonly kernel: K) {
    const { home, clock, ids, hooks, db, needs } = kernel
    const { host, dropIns, file } = needs
    const own = hooks.of(points)
    this.changed = own.changed
    this.disabling = own.disabling
    this.#news = new News(async names => {
      await this.changed.call(names)
      await this.#code.tidy()
    })
    this.#expected = new Expected(clock)
    this.secrets = new Secrets(kernel)
    this.views = new Views(this)
    this.#catalog = new Catalog(file('cache', 'manifests.json'), () => clock.now(), host.version)
    this.#families = new Families(kernel, {
      judge: (...brought) => checkConsent(this.installations, ...brought),
      reset: (...source) => needs.subprocesses.reset(...source),
    })
    this.#code = new CodeCache(home.path('cache', 'extensions'))
    this.#kept = new KeptCode(kernel, this.#code, this.#catalog)
    kernel.scope.defer('copies of code', () => this.#code.end())
    const stateOf = (name: string) => host.plugins().find(plugin => (plugin.replacedBy ?? plugin.name) === name)?.state
    this.#host = {
      clock,
      spawn: needs.processes.spawn,
      claims: new Claims(),
      daemonVersion: host.version,
      dropIns,
      code: this.#code,
      kept: this.#kept,
      unique: () => ids.hex(16),
      families: this.#families,
      runtime: (extension, logs) =>
        needs.subprocesses.runtimeOf(extension, {
          logs,
          storage: this.storageOf(extension.key),
          bound: () => this.secrets.references(extension),
          consents: () => (isLink(extension.key) ? [] : this.consentsOf(extension.name)),
          confined: () => this.owner(extension.key).confined,
        }),
      bootCodeOf: ({ name, key }) => this.#bootCodes().find(code => code.key === key && stateOf(name)),
      stateOf,
      changed: ({ name }) => void this.#news.note(name),
      tell: () => void this.#news.tell(),
    }
    const isOn = (name: string, link?: Link) => isEnabled(db, keyOf(name, link))
    this.#bundled = new BundledExtensions(kernel, this.#catalog, {
      make: (name, found) => new Instance(name, () => 'bundled', found, isOn(name), this.#host),
      take: (instance, found) => this.#load(instance, found, false),
      isInstalled: name => this.folder.get(name) !== undefined,
    })
    this.folder = new InstalledFolder(home.path('extensions'), kernel, this.#catalog, {
      make: (name, found) => new Instance(name, () => this.tierOf(name), found, isOn(name), this.#host),
      isPlacing: name => this.installations.isPlacing(name),
      isKnown: root => path.dirname(root) === this.#bundled.dir,
      take: async (instance, found, anew) => {
        await this.#bundled.giveWay(instance.name)
        await this.#load(instance, found, anew)
      },
      freed: name => this.dev.retry(name),
      gone: name => this.#kept.gone(name).then(() => this.#news.note(name)),
      onRead: name => this.#expected.end(name),
      tell: () => this.#news.tell(),
    })
    this.dev = new DevLinks(kernel, this.#catalog, {
      make: (link, found) => new Instance(link.name, () => 'workspace', found, isOn(link.name, link), this.#host, link),
      take: (instance, found, anew, allow) => this.#load(instance, found, anew, allow),
      forget: key => this.#families.forget(key),
      onRestored: key => this.#expected.end(key),
      tell: () => this.#news.tell(),
    })
    const parts = { families: this.#families, kept: this.#kept, code: this.#code }
    this.installations = needs.installer.open(installTarget(this, parts), kernel.scope.signal)
  }

  /** Removes a link, because its workspace was removed. */
  async unlinkFrom(name: string, workspace: string): Promise<void> {
    await this.dev.unlink({ key: keyOf(name, { workspace }) }, this.kernel.actor)
  }

  /** Prepares the loading: rolls installations and removals of an earlier daemon forward. */
  async start(): Promise<void> {
    await honourDisableNotes(this.kernel)
    for (const { hash } of this.#bootCodes()) this.#code.keep(hash)
    this.#kept.start()
    await this.installations.start()
    await this.#bundled.read()
    this.#expected.add([...(await this.folder.names()), ...this.dev.keys()])
  }

  /** Names of all extensions, including those not loaded yet. */
  names(): string[] {
    return [...this.all().map(({ name }) => name), ...this.#expected.keys()]
  }

  isLoading = (name?: string): boolean => this.#expected.has(name)

  settled = async (): Promise<void> => void (await this.#expected.none())

  /** Handles a request that matches no route. */
  unrouted(path: string): Promise<Fault | true | undefined> {
    const all = () => this.all()
    return unrouted(path, { clock: this.kernel.clock, expected: this.#expected, folder: this.folder, all })
  }

  readonly #bootCodes = () => this.kernel.collect(BootCodes).map(({ entry }) => entry)

  installed = (): readonly InstalledExtension[] => this.all().flatMap(({ installed }) => installed ?? [])

  bundled = (): readonly InstalledExtension[] => this.#bundled.unused()

  /** All instances by key: the installed or used bundled extension before the links of its name. */
  all(): Instance[] {
    return [...this.folder.all(), ...this.#bundled.used(), ...this.dev.all()].sort((a, b) => (a.key < b.key ? -1 : 1))
  }

  /** @throws Fault `extension_not_found` */
  get(key: string): Instance {
    const instance = this.#instanceOf(key)
    if (!instance) throw ExtensionErrors.extension_not_found(`no extension is named ${key}`)
    return instance
  }

  #instanceOf(key: string): Instance | undefined {
    return this.folder.get(key) ?? this.dev.get(key) ?? this.#bundled.get(key)
  }

  /**
   * The instance that a request means: with a workspace or `*` the link to it; else the installed one, or the only
   * link.
   * @throws Fault `extension_not_found`, `extension_ambiguous`, of the workspace
   */
  async choose(name: string, workspace?: string, by?: Actor): Promise<Instance> {
    if (!this.folder.get(name)) await this.settled()
    // A caller limited to a workspace sees its link first, then the installed extension.
    const here = by?.maxScope?.id ? [{ workspace: by.maxScope.id }, undefined, { workspace: '' }] : []
    const [instance] = here.flatMap(at => (at ? this.dev : this.folder).get(keyOf(name, at)) ?? [])
    if (here.length > 0) return instance ?? this.get(name)
    if (workspace) return this.get(keyOf(name, { workspace: await this.dev.workspaceOf(workspace) }))
    const [first, second] = this.folder.get(name) ? [] : this.dev.of(name)
    if (!first || !second) return first ?? this.get(name)
    const places = this.dev.of(name).map(placeOf)
    throw ExtensionErrors.extension_ambiguous(`${name} is linked to several workspaces: ${places.join(', ')}`, {
      next: `repeat with --workspace '${places[0]}'`,
    })
  }

  /** Source tier; an extension without provenance was copied there by the owner of the home. */
  tierOf(name: string): SourceTier {
    return this.installations.provenance(name)?.tier ?? 'user'
  }

  consentsOf = (name: string) => this.installations.provenance(name)?.consents ?? []

  async shown(actor: Actor): Promise<readonly Extension[]> {
    await this.settled()
    return this.views.list(actor).extensions
  }

  owner = (key: string): Owner => ownerAmong(this.installed(), key, this.kernel.config.get(Unsandboxed))

  async call(...[key, method, params, options]: Parameters<ExtensionsApi['call']>): Promise<unknown> {
    await this.#expected.none(key)
    const runtime = this.get(key).generation?.runtime
    if (!runtime) throw ExtensionErrors.extension_not_running(`no process of ${key} runs`)
    return runtime.call(method, params, options)
  }

  implements = (key: string, method: string): boolean => this.#runtimeOf(key)?.implements(method) === true

  reconsider = async (key: string): Promise<void> => {
    const bundled = this.#bundled.get(key)
    const { subprocesses } = this.kernel.needs
    if (bundled?.installed && subprocesses.isNeeded(bundled.installed)) await this.#bundled.load(key)
    await this.#changed(key, runtime => runtime.reconsider())
  }

  storageOf = (name: string): ExtensionStorage => storageOf(this.kernel, name)

  restart = async (key: string): Promise<void> => this.#changed(key, runtime => runtime.restart())

  async control<T>(...[key, launch, work, signal]: Parameters<ExtensionsApi['control']>): Promise<T> {
    await this.#expected.none(key)
    await this.#bundled.load(key)
    const runtime = this.get(key).generation?.runtime
    if (!runtime) throw ExtensionErrors.extension_not_running(`no process of ${key} can be started`)
    return runtime.control(launch, work, signal) as Promise<T>
  }

  async #changed(key: string, change: (runtime: ExtensionRuntime) => Promise<void>): Promise<void> {
    const runtime = this.#runtimeOf(key)
    if (!runtime) return
    await change(runtime).catch(error => {
      throw ExtensionErrors.extension_not_running(`the process of ${key} does not run: ${messageOf(error)}`)
    })
  }

  #runtimeOf(key: string): ExtensionRuntime | undefined {
    return this.#instanceOf(key)?.generation?.runtime
  }

  /** Loads the existing extensions and follows the folder until the signal aborts. */
  async follow(signal: AbortSignal): Promise<void> {
    const sweep = (keys: readonly string[]) => this.#families.sweep(new Set(keys), this.dev.keys())
    await this.folder.follow(signal, {
      // Records of removed or disabled extensions go first, so that they do not conflict with others.
      before: names => sweep([...names, ...this.dev.keys()].filter(key => isEnabled(this.kernel.db, key))),
      after: async () => {
        await this.dev.restore()
        await this.installations.conclude()
        await sweep(this.all().flatMap(({ key, generation }) => (generation ? [key] : [])))
        await this.#code.sweep()
        this.#expected.end()
        await this.#news.tellAnyway()
      },
    })
  }

  /** Reads the folder again and restarts code and process. @throws Fault with the reason of a failed load */
  async reload(instance: Instance, confirmed?: string): Promise<Instance> {
    const { name } = instance
    if (!instance.enabled) {
      throw ExtensionErrors.extension_disabled(`${name} is disabled`, { next: command('extension enable', name) })
    }
    if (instance.link) return this.dev.reload(instance, confirmed)
    await (this.folder.get(name) ? this.folder.refresh(name, true) : this.#load(instance, instance.found, true))
    if (instance.problem) throw instance.problem
    const off = this.kernel.needs.dropIns.whyNot(name)
    if (off === undefined) return this.get(name)
    const next = this.kernel.needs.dropIns.isLeftOut(name)
      ? `change its code, or ${command('daemon restart')}`
      : command('doctor')
    throw ExtensionErrors.extension_not_loaded(`${name} was reloaded and does not run: ${off}`, { next })
  }

  /** Idempotent; stored durably before anything is loaded. */
  async enable(instance: Instance, actor: Actor): Promise<Instance> {
    await instance.enable(() => this.#setFlag(instance, true, ExtensionEnabled, actor))
    await (instance.link ? this.dev.refresh(instance.key) : this.folder.refresh(instance.name))
    await this.#news.tell()
    return instance
  }

  /** Idempotent; durable on return. @throws Fault of dependents */
  async disable(instance: Instance, actor: Actor): Promise<Instance> {
    if (!instance.enabled) return instance
    const { name } = instance
    // Dependents need the enabled installed extension; disabling a link beside it affects none.
    const refused = instance.link && this.folder.get(name)?.enabled ? undefined : await this.disabling.ask(name)
    if (refused) throw refused
    await instance.disable(() => this.#setFlag(instance, false, ExtensionDisabled, actor))
    await this.dev.retry(name)
    await this.#news.tell()
    return instance
  }

  /** Stops all processes; nothing else needs time on shutdown. */
  async quiesce(): Promise<void> {
    await Promise.all(this.all().map(instance => instance.stopProcess()))
  }

  checks(): readonly Check[] {
    return [
      {
        id: 'runtime.extensions',
        category: 'extensions',
        run: async () => extensionItems(this.all(), this.#expected.has()),
      },
    ]
  }

  /** Applies the found folder to an instance and announces the outcome. */
  async #load(instance: Instance, found: Found, anew: boolean, allow?: (manifest: Manifest) => void): Promise<void> {
    if (this.kernel.scope.signal.aborted) return
    const outcome = await instance.load(found, anew, allow)
    // An error caused by the shutdown of the daemon is not reported.
    if (outcome === 'same' || this.kernel.scope.signal.aborted) return
    this.#news.note(instance.name)
    await tellOutcome(this.kernel, instance, outcome)
  }

  /** Reads the items again after families of that plugin were added or removed. */
  async refit(plugin: string): Promise<void> {
    for (const instance of this.all()) {
      if (await instance.refit(plugin)) this.#news.note(instance.name)
      // The plugin may own a provision of the process.
      void instance.generation?.runtime?.reconsider().catch(() => {})
    }
    await this.#news.tell()
  }

  async #setFlag({ name, key, link, installed }: Instance, on: boolean, type: typeof ExtensionEnabled, actor: Actor) {
    const {
      db,
      clock,
      needs: { events },
    } = this.kernel
    await db.tx(t => {
      flags.replace(t, { name: key, enabled: on, updated_at: clock.now() })
      const payload = { name, version: installed?.version, ...(link ? { workspace: link.workspace } : {}) }
      events.emit(t, type, payload, { actor, subject: name })
    })
  }
}
