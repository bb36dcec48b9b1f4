import { realpath } from 'node:fs/promises'
import path from 'node:path'
import { type Actor, messageOf, type PluginKernel } from '../../kernel/plugin.js'
import { ExtensionDevLinked, ExtensionDevUnlinked, ExtensionErrors } from './api.js'
import type { Catalog } from './catalog.js'
import { Instance, type InstanceHost } from './instance.js'
import { type DevLink, DevTable } from './tables.js'

export interface LinkRequest {
  /** Absolute. */
  readonly origin: string
  /** Id; empty for all. */
  readonly workspace: string
  /** SHA-256 that the builder gave. */
  readonly generation: string
}

/** Builds in working folders of developers, which run beside what is installed, one of a name. */
export class DevLinks {
  readonly #linked = new Map<string, { instance: Instance; link: DevLink }>()
  readonly #table: DevTable

  constructor(
    private readonly kernel: PluginKernel,
    private readonly catalog: Catalog,
    private readonly host: InstanceHost,
  ) {
    this.#table = new DevTable(kernel.db)
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
      await this.#open(link).catch(error => this.kernel.log.error(`${link.name} is not linked: ${messageOf(error)}`))
    }
  }

  /**
   * Links a folder and loads it; linked again it is read again, and what ran before stays when that fails.
   * @throws Fault `extension_dev_invalid`, `extension_dev_taken`, of the manifest, or why it did not load
   */
  async link(
    { origin, workspace, generation }: LinkRequest,
    published: (name: string) => Instance | undefined,
    actor: Actor,
  ) {
    if (!path.isAbsolute(origin)) throw ExtensionErrors.extension_dev_invalid('origin_path is not absolute')
    const found = await this.catalog.read(origin)
    if (!found) throw ExtensionErrors.extension_dev_invalid(`there is no folder ${origin}`)
    if ('fault' in found) throw found.fault
    const { name } = found.manifest
    const other = this.#linked.get(name)?.link
    if (other && (other.workspace !== workspace || other.origin !== (await realpath(origin)))) {
      throw ExtensionErrors.extension_dev_taken(`${name} is linked to ${other.origin} already`)
    }
    if (published(name)?.enabled) {
      throw ExtensionErrors.extension_dev_taken(`${name} is installed and on, and is not displaced`, {
        next: `svc extension disable ${name}`,
      })
    }
    const link = { name, workspace, origin: found.root, generation }
    const { instance } = await this.#open(link)
    if (instance.problem && !other) {
      this.#linked.delete(name)
      throw instance.problem
    }
    const { db, events, clock } = this.kernel
    await db.tx(t => {
      this.#table.put(t, link, clock.now())
      events.emit(t, ExtensionDevLinked, { name, workspace }, { actor, subject: name })
    })
    return instance
  }

  /** Reads a linked folder again. */
  async look(name: string, anew: boolean): Promise<void> {
    const linked = this.#linked.get(name)
    const found = linked && (await this.catalog.read(linked.link.origin))
    if (found) await linked.instance.load(found, anew)
  }

  async unlink(name: string, actor: Actor): Promise<void> {
    const linked = this.#linked.get(name)
    if (!linked) return
    const { db, events } = this.kernel
    const { workspace } = linked.link
    await linked.instance.disable(() =>
      db.tx(t => {
        this.#table.delete(t, linked.link)
        events.emit(t, ExtensionDevUnlinked, { name, workspace }, { actor, subject: name })
      }),
    )
    this.#linked.delete(name)
  }

  async #open(link: DevLink): Promise<{ instance: Instance }> {
    const found = await this.catalog.read(link.origin)
    if (!found) throw ExtensionErrors.extension_dev_invalid(`there is no folder ${link.origin}`)
    const before = this.#linked.get(link.name)?.instance
    const instance = before ?? new Instance(link.name, () => 'workspace', found, true, this.host)
    this.#linked.set(link.name, { instance, link })
    await instance.load(found)
    return { instance }
  }
}
