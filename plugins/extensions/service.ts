import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import {
  type Actor,
  type EventType,
  type Gate,
  messageOf,
  type Notify,
  type PluginKernel,
} from '../../kernel/plugin.js'
import type { Check } from '../daemon/api.js'
import {
  ExtensionDisabled,
  ExtensionEnabled,
  ExtensionErrors,
  ExtensionReloaded,
  ExtensionReloadFailed,
  type ExtensionsApi,
  type InstalledExtension,
} from './api.js'
import { BegunCodes } from './begun.js'
import { Catalog, type Found } from './catalog.js'
import { extensionItems } from './checks.js'
import { CodeCache } from './code.js'
import { DevLinks, type ExtensionNeeds } from './dev.js'
import { Families } from './families.js'
import { InstallDoor } from './install/door.js'
import type { Installer } from './install/installer.js'
import { installerFor } from './install/wiring.js'
import { Instance } from './instance.js'
import type { InstanceHost } from './instance-host.js'
import type { SourceTier } from './manifest.js'
import { News } from './news.js'
import { Secrets } from './secrets.js'
import { runtimeFor } from './subprocess/wiring.js'
import { FlagTable } from './tables.js'
import { Turns } from './turns.js'
import { Views } from './views.js'
import { Watcher } from './watcher.js'

/** Extensions that are loaded at once. */
const AT_ONCE = 8

/** Keeps what runs the same as what is in the folder of extensions. */
export class ExtensionsService implements ExtensionsApi {
  readonly changed: Notify<[names: readonly string[]]>
  readonly disabling: Gate<[name: string]>
  readonly secrets: Secrets
  readonly views: Views
  readonly dev: DevLinks
  readonly dir: string
  readonly install: InstallDoor
  readonly #installer: Installer
  readonly #flags: FlagTable
  readonly #catalog: Catalog
  readonly #code: CodeCache
  readonly #families: Families
  readonly #host: InstanceHost
  readonly #instances = new Map<string, Instance>()
  readonly #turns = new Turns()
  readonly #news: News

  constructor(readonly kernel: PluginKernel<ExtensionNeeds>) {
    const { home, clock, ids, hooks, db, host, dropIns } = kernel
    this.changed = hooks.notify('changed')
    this.#news = new News(names => this.changed.call(names))
    this.disabling = hooks.gate('disabling')
    this.secrets = new Secrets(kernel)
    this.views = new Views(this)
    this.dir = home.path('extensions')
    this.#flags = new FlagTable(db)
    this.#catalog = new Catalog(kernel.file('cache', 'manifests.json'), () => clock.now())
    this.#families = new Families(kernel)
    this.#code = new CodeCache(home.path('cache', 'extensions'))
    this.#host = {
      clock,
      daemonVersion: host.version,
      dropIns,
      code: this.#code,
      unique: () => ids.hex(16),
      families: this.#families,
      runtime: extension => runtimeFor(this, extension),
      begun: name => this.#begun().find(code => code.name === name),
      stateOf: name => host.plugins().find(plugin => (plugin.replacedBy ?? plugin.name) === name)?.state,
      keptOff: name => host.keptOff(name),
      changed: ({ name }) => void this.#news.note(name),
      tell: () => void this.#news.tell(),
    }
    this.dev = new DevLinks(kernel, this.#catalog, this.#host, {
      published: name => this.#instances.get(name),
      tell: () => this.#news.tell(),
    })
    this.#installer = installerFor(kernel, {
      disabling: name => this.disabling.ask(name),
      look: name => this.look(name),
      sweep: () => this.#code.sweep(),
    })
    this.install = new InstallDoor(this.#installer, {
      show: name => this.views.toWire(this.get(name)),
      unlink: async (name, actor) => (this.#shown(name)?.link ? this.dev.unlink(name, actor) : undefined),
    })
  }

  /** Before anything is loaded: what an earlier daemon began to install or remove is carried on. */
  start(): Promise<void> {
    for (const { hash } of this.#begun()) this.#code.keep(hash)
    return this.#installer.start()
  }

  #begun() {
    return this.kernel.collect(BegunCodes).map(({ entry }) => entry)
  }

  installed(): readonly InstalledExtension[] {
    return this.all().flatMap(({ installed }) => installed ?? [])
  }

  /** Every folder that may be an extension, by name; of a link and what is installed that which is on, the link if none is. */
  all(): Instance[] {
    const names = new Set([...this.#instances.keys(), ...this.dev.all().map(({ name }) => name)])
    return [...names].sort().flatMap(name => this.#shown(name) ?? [])
  }

  /** @throws Fault `extension_not_found` */
  get(name: string): Instance {
    const instance = this.#shown(name)
    if (!instance) throw ExtensionErrors.extension_not_found(`no extension is named ${name}`)
    return instance
  }

  #shown(name: string): Instance | undefined {
    const installed = this.#instances.get(name)
    return installed?.enabled ? installed : (this.dev.get(name) ?? installed)
  }

  /** Where an extension came from; what nobody installed was put there by the owner of the home. */
  tierOf(name: string): SourceTier {
    return this.#installer.provenance(name)?.tier ?? 'user'
  }

  async call(name: string, method: string, params: unknown): Promise<unknown> {
    const runtime = this.get(name).generation?.runtime
    if (!runtime) throw ExtensionErrors.extension_not_running(`no process of ${name} runs`)
    return runtime.call(method, params)
  }

  /** Loads what is there and follows the folder until the signal aborts. */
  async follow(signal: AbortSignal): Promise<void> {
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
      await Promise.race([this.#begin(watcher, signal), stopped])
      if (!signal.aborted) await stopped
    } finally {
      await close()
    }
  }

  async #begin(watcher: Watcher, signal: AbortSignal): Promise<void> {
    await this.#lookAtAll(signal)
    await this.dev.restore()
    await this.#withdrawOthers()
    await this.#news.tell()
    await watcher.start()
    // What changed between the two looks was not told of.
    await this.#lookAtAll(signal)
    await this.#code.sweep()
  }

  /** Looks at one folder again and makes what runs the same. */
  async look(name: string, anew = false): Promise<void> {
    await this.#look(name, anew)
    await this.#news.tell()
  }

  /** In turn, so that no older look has the last word, and what goes is gone before it comes again. */
  #look(name: string, anew = false): Promise<void> {
    return this.#turns.run(name, async () => {
      const found = await this.#catalog.read(path.join(this.dir, name))
      if (found) await this.#take(name, found, anew)
      else await this.#forget(name)
    })
  }

  /** Whether the folder has one of that name. */
  has(name: string): boolean {
    return this.#instances.has(name)
  }

  /** Reads the folder again and starts its code and its process again. @throws Fault, saying why it did not load */
  async reload(name: string, confirmed?: string): Promise<Instance> {
    const instance = this.get(name)
    if (!instance.enabled) {
      throw ExtensionErrors.extension_disabled(`${name} is switched off`, { next: `svc extension enable ${name}` })
    }
    if (instance.link) return this.dev.reload(name, confirmed)
    await this.look(name, true)
    if (instance.problem) throw instance.problem
    return this.get(name)
  }

  /** Idempotent; durable before anything is loaded. */
  async enable(name: string, actor: Actor): Promise<Instance> {
    const instance = this.get(name)
    if (instance.link) this.dev.checkFree(name)
    await instance.enable(() => this.#setFlag(instance, true, ExtensionEnabled, actor))
    await (instance.link ? this.dev.look(name) : this.look(name))
    return instance
  }

  /** Idempotent; durable when it answers. @throws Fault of what depends on it */
  async disable(name: string, actor: Actor): Promise<Instance> {
    const instance = this.get(name)
    if (!instance.enabled) return instance
    const refused = await this.disabling.ask(name)
    if (refused) throw refused
    await instance.disable(() => this.#setFlag(instance, false, ExtensionDisabled, actor))
    await this.#news.tell()
    return instance
  }

  /** Ends the processes of all; nothing else has to wait for that. */
  async quiesce(): Promise<void> {
    await Promise.all(this.all().map(instance => instance.stopProcess()))
  }

  checks(): readonly Check[] {
    return [{ id: 'runtime.extensions', category: 'extensions', run: async () => extensionItems(this.all()) }]
  }

  async #lookAtAll(signal: AbortSignal): Promise<void> {
    const names = new Set([...(await this.#catalog.folders(this.dir)), ...this.#instances.keys()])
    const queue = [...names]
    const worker = async () => {
      for (let name = queue.shift(); name !== undefined && !signal.aborted; name = queue.shift()) {
        await this.#look(name).catch(error => this.kernel.log.error(messageOf(error), { extension: name }))
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, worker))
    await this.#catalog.save(new Set(this.all().map(({ found }) => found.root)))
    await this.#news.tell()
  }

  async #take(name: string, found: Found, anew = false): Promise<void> {
    let instance = this.#instances.get(name)
    if (!instance) {
      instance = new Instance(name, () => this.tierOf(name), found, this.#flags.enabled(name), this.#host)
      this.#instances.set(name, instance)
    }
    // What is published is not displaced by what a developer has linked.
    if (instance.enabled && this.dev.get(name)?.enabled) await this.dev.unlink(name, this.kernel.actor)
    const outcome = await instance.load(found, anew)
    if (outcome === 'same') return
    this.#news.note(name)
    const { problem, installed } = instance
    if (problem) {
      this.kernel.log.error(`extension ${name}: ${problem.message}`, { extension: name, code: problem.code })
      if (outcome === 'worse') await this.#emit(ExtensionReloadFailed, { name, error: problem.message })
    } else if (outcome === 'changed') {
      await this.#emit(ExtensionReloaded, { name, version: installed?.version })
    }
  }

  async #forget(name: string): Promise<void> {
    const instance = this.#instances.get(name)
    if (!instance) return
    await instance.unload()
    // Not before: who sees it no more may rely on nothing of it running.
    this.#instances.delete(name)
    this.#news.note(name)
  }

  /** What extensions shipped that went, were switched off or broke while no daemon ran. */
  #withdrawOthers(): Promise<void> {
    return this.#families.sweep(new Set(this.all().flatMap(({ name, generation }) => (generation ? [name] : []))))
  }

  async #setFlag({ name, key, installed }: Instance, on: boolean, type: typeof ExtensionEnabled, actor: Actor) {
    const { db, clock, events } = this.kernel
    await db.tx(t => {
      this.#flags.set(t, key, on, clock.now())
      events.emit(t, type, { name, version: installed?.version }, { actor, subject: name })
    })
  }

  async #emit<T extends { name: string }>(type: EventType<T>, payload: T): Promise<void> {
    await this.kernel.db.tx(t => this.kernel.events.emit(t, type, payload, { subject: payload.name }))
  }
}
