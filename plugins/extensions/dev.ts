import { realpath } from 'node:fs/promises'
import path from 'node:path'
import { type Actor, messageOf, type PluginKernel } from '../../kernel/plugin.js'
import type { Daemon } from '../daemon/api.js'
import type { Workspaces } from '../workspaces/api.js'
import { ExtensionDevLinked, ExtensionDevUnlinked, ExtensionErrors } from './api.js'
import type { Catalog } from './catalog.js'
import { Instance } from './instance.js'
import type { InstanceHost } from './instance-host.js'
import { type Manifest, requirementDigest } from './manifest.js'
import { type DevLink, DevTable, FlagTable, keyOf } from './tables.js'
import { Turns } from './turns.js'
import { Watcher } from './watcher.js'

export type ExtensionNeeds = { daemon: typeof Daemon; workspaces: { readonly maybe: typeof Workspaces } }

export interface LinkRequest {
  /** Absolute. */
  readonly origin: string
  /** Id, name or path; absent for all. */
  readonly workspace?: string | undefined
  /** SHA-256 that the builder gave. */
  readonly generation: string
  /** Digest of the network requirement that the developer agrees to. */
  readonly confirmed?: string | undefined
}

/** What links ask of the service that runs what is installed. */
export interface DevHost {
  readonly published: (name: string) => Instance | undefined
  readonly tell: () => Promise<void>
}

interface Linked {
  readonly instance: Instance
  readonly link: DevLink
  readonly watcher: Watcher
  readonly close: () => Promise<void>
}

/** Builds in working folders of developers, which run beside what is installed and never in its place, one of a name. */
export class DevLinks {
  readonly #linked = new Map<string, Linked>()
  readonly #table: DevTable
  readonly #flags: FlagTable
  readonly #turns = new Turns()

  constructor(
    private readonly kernel: PluginKernel<ExtensionNeeds>,
    private readonly catalog: Catalog,
    private readonly host: InstanceHost,
    private readonly others: DevHost,
  ) {
    this.#table = new DevTable(kernel.db)
    this.#flags = new FlagTable(kernel.db)
  }

  get(name: string): Instance | undefined {
    return this.#linked.get(name)?.instance
  }

  linkOf(name: string): DevLink | undefined {
    return this.#linked.get(name)?.link
  }

  all(): Instance[] {
    return [...this.#linked.values()].map(({ instance }) => instance)
  }

  /** Loads what was linked when the daemon ended; one that fails is shown as such. */
  async restore(): Promise<void> {
    for (const link of this.#table.list()) {
      const open = async () => {
        if (this.#flags.enabled(keyOf(link))) this.checkFree(link.name)
        await this.#open(link)
      }
      await open().catch(error => this.kernel.log.error(`${link.name} is not linked: ${messageOf(error)}`))
    }
  }

  /**
   * Links a folder and loads it; linked again it is read again, and what ran before stays when that fails.
   * @throws Fault `extension_dev_invalid`, `extension_dev_taken`, `extension_network_unconfirmed`, of the manifest or the
   * workspace, or why it did not load
   */
  async link({ origin, workspace, generation, confirmed }: LinkRequest, actor: Actor): Promise<Instance> {
    if (!path.isAbsolute(origin)) throw ExtensionErrors.extension_dev_invalid('origin_path is not absolute')
    const found = await this.catalog.read(origin)
    if (!found) throw ExtensionErrors.extension_dev_invalid(`there is no folder ${origin}`)
    if ('fault' in found) throw found.fault
    const { name } = found.manifest
    const place = await this.#workspace(workspace)
    const other = this.#linked.get(name)
    if (other && (other.link.workspace !== place || other.link.origin !== (await realpath(origin)))) {
      throw ExtensionErrors.extension_dev_taken(`${name} is linked to ${other.link.origin} already`, {
        next: `svc extension remove ${name}`,
      })
    }
    this.checkFree(name)
    checkConfirmed(found.manifest, other?.instance.generation?.manifest, confirmed)
    const link = { name, workspace: place, origin: found.root, generation }
    const { instance, close } = await this.#open(link)
    if (instance.problem && !other) {
      this.#linked.delete(name)
      await close()
      throw instance.problem
    }
    const { db, events, clock } = this.kernel
    await db.tx(t => {
      this.#table.put(t, link, clock.now())
      events.emit(t, ExtensionDevLinked, { name, workspace: place }, { actor, subject: name })
    })
    await this.others.tell()
    return instance
  }

  /** Both would be one source of records and one plugin. @throws Fault `extension_dev_taken` while what is installed is on */
  checkFree(name: string): void {
    if (!this.others.published(name)?.enabled) return
    throw ExtensionErrors.extension_dev_taken(`${name} is installed and on, and is not displaced`, {
      next: `svc extension disable ${name}`,
    })
  }

  /**
   * Reads a linked folder again and starts it again. Where that fails and the last good generation runs on, that is told by the
   * `problem` of what is returned.
   * @throws Fault `extension_network_unconfirmed`, or why nothing of it runs
   */
  async reload(name: string, confirmed: string | undefined): Promise<Instance> {
    const linked = this.#linked.get(name)
    if (!linked) throw ExtensionErrors.extension_not_found(`${name} is not linked`)
    const found = await this.catalog.read(linked.link.origin)
    if (found && !('fault' in found)) checkConfirmed(found.manifest, linked.instance.generation?.manifest, confirmed)
    await this.look(name, true)
    const { instance } = linked
    if (instance.problem && !instance.generation) throw instance.problem
    return instance
  }

  /** Looks at a linked folder again; one that is gone leaves what runs. */
  async look(name: string, anew = false): Promise<void> {
    await this.#turns.run(name, async () => {
      const linked = this.#linked.get(name)
      const found = linked && (await this.catalog.read(linked.link.origin))
      if (found) await linked.instance.load(found, anew)
    })
    await this.others.tell()
  }

  /** Ends what runs of a link and forgets it; its folder stays as it is. @returns that folder; undefined when there is no link */
  async unlink(name: string, actor: Actor): Promise<string | undefined> {
    const linked = this.#linked.get(name)
    if (!linked) return undefined
    const { db, events } = this.kernel
    const { workspace, origin } = linked.link
    const forget = () =>
      db.tx(t => {
        this.#table.delete(t, linked.link)
        this.#flags.delete(t, linked.instance.key)
        events.emit(t, ExtensionDevUnlinked, { name, workspace }, { actor, subject: name })
      })
    // One that was switched off has nothing that could end.
    if (!(await linked.instance.disable(forget))) await forget()
    this.#linked.delete(name)
    await linked.close()
    await this.others.tell()
    return origin
  }

  async #open(link: DevLink): Promise<Linked> {
    const found = await this.catalog.read(link.origin)
    if (!found) throw ExtensionErrors.extension_dev_invalid(`there is no folder ${link.origin}`)
    const before = this.#linked.get(link.name)
    const linked = before
      ? { ...before, link }
      : this.#begin(
          link,
          new Instance(link.name, () => 'workspace', found, this.#flags.enabled(keyOf(link)), this.host, link),
        )
    this.#linked.set(link.name, linked)
    await linked.instance.load(found)
    if (!before) {
      await linked.watcher.start()
      // What changed before it was watched was not told of.
      await this.look(link.name)
    }
    return linked
  }

  #begin(link: DevLink, instance: Instance): Linked {
    const { clock, log, scope } = this.kernel
    const watcher = new Watcher({
      dir: link.origin,
      name: link.name,
      clock,
      changed: name => void this.look(name).catch(error => log.error(`${name}: ${messageOf(error)}`)),
      failed: error => log.warn(`the folder of ${link.name} is not watched: ${messageOf(error)}`),
    })
    return { instance, link, watcher, close: scope.defer(`watch ${link.name}`, () => watcher.close()) }
  }

  async #workspace(reference: string | undefined): Promise<string> {
    if (!reference) return ''
    const workspaces = this.kernel.needs.workspaces.current
    if (!workspaces) throw ExtensionErrors.extension_dev_invalid('this daemon has no workspaces')
    return (await workspaces.find(reference)).id
  }
}

/** What it requires of the network has to be agreed to, unless what runs requires the same already. */
function checkConfirmed(wanted: Manifest, running: Manifest | undefined, confirmed: string | undefined): void {
  const digest = requirementDigest(wanted)
  if (digest === '' || digest === confirmed || (running && digest === requirementDigest(running))) return
  throw ExtensionErrors.extension_network_unconfirmed(`${wanted.name} takes part in the network`, {
    details: { confirm_network_digest: digest },
  })
}
