import path from 'node:path'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { SerialBy } from '../../../../kernel/kit/serial.js'
import { type Actor, messageOf } from '../../../../kernel/plugin.js'
import { ExtensionDevLinked, ExtensionDevUnlinked, ExtensionErrors } from '../api.js'
import { EVERYWHERE, keyOf, placeOf } from '../identity.js'
import { checkAgreed } from '../load/agreement.js'
import type { Instance } from '../load/instance.js'
import { type Manifest, requirementDigest } from '../manifest/manifest.js'
import type { K } from '../needs.js'
import { type DevLink, DevTable, flags } from '../tables.js'
import type { Catalog, Found } from './catalog.js'
import { Watcher } from './watcher.js'

export interface LinkRequest {
  /** Absolute. */
  readonly origin: string
  /** Id, name or path; absent or `*` for all. */
  readonly workspace?: string | undefined
  /** SHA-256 that the builder gave. */
  readonly generation: string
  /** Digest of the network requirement that the developer agrees to. */
  readonly confirmed?: string | undefined
}

/** The part of the extensions service that the links use. */
export interface DevHost {
  readonly make: (link: DevLink, found: Found) => Instance
  /** Applies the found folder to the instance. */
  readonly take: (
    instance: Instance,
    found: Found,
    anew: boolean,
    allow?: (manifest: Manifest) => void,
  ) => Promise<void>
  /** Removes all records of the link of that key from the database. */
  readonly forget: (key: string) => Promise<void>
  /** Called when the link of that key was restored or failed to. */
  readonly onRestored: (key: string) => void
  readonly tell: () => Promise<void>
}

interface Linked {
  readonly instance: Instance
  readonly link: DevLink
  readonly watcher: Watcher
  readonly close: () => Promise<void>
}

/**
 * Builds in developers' working folders. Each has its own instance, keyed by name and workspace. It runs beside the
 * installed extension and the links to other workspaces, and never replaces them.
 */
export class DevLinks {
  /** The links by key. */
  readonly #linked = new Map<string, Linked>()
  readonly #table: DevTable
  readonly #turns = new SerialBy()

  constructor(
    private readonly kernel: K,
    private readonly catalog: Catalog,
    private readonly host: DevHost,
  ) {
    this.#table = new DevTable(kernel.db)
  }

  get(key: string): Instance | undefined {
    return this.#linked.get(key)?.instance
  }

  /** The instances sorted by key. */
  all(): Instance[] {
    return [...this.#linked.values()].map(({ instance }) => instance).sort((a, b) => (a.key < b.key ? -1 : 1))
  }

  /** Links of that name, oldest first. */
  of(name: string): Instance[] {
    return [...this.#linked.values()].flatMap(({ instance }) => (instance.name === name ? [instance] : []))
  }

  /** Keys of all links, including those not loaded yet. */
  keys(): string[] {
    return this.#table.list().map(link => keyOf(link.name, link))
  }

  /** Restores the stored links on a start, one after the other; a failed one is shown with its error. */
  async restore(): Promise<void> {
    for (const link of this.#table.list()) {
      await this.#open(link).catch(error =>
        this.kernel.log.error(`${keyOf(link.name, link)} is not linked: ${messageOf(error)}`),
      )
      this.host.onRestored(keyOf(link.name, link))
    }
  }

  /**
   * Links a folder and loads it; a repeated link reloads it, and a failed reload keeps the running generation.
   * @throws Fault `extension_dev_invalid`, `extension_dev_taken`, `extension_network_unconfirmed`, of the manifest or
   *   the workspace, or the reason of a failed load
   */
  async link({ origin, workspace, generation, confirmed }: LinkRequest, actor: Actor): Promise<Instance> {
    if (!path.isAbsolute(origin)) throw ExtensionErrors.extension_dev_invalid('origin_path is not absolute')
    const found = await this.catalog.read(origin)
    if (!found) throw ExtensionErrors.extension_dev_invalid(`there is no folder ${origin}`)
    if ('fault' in found) throw found.fault
    const { name } = found.manifest
    const workspaceId = await this.workspaceOf(workspace)
    const wanted = { name, workspace: workspaceId, origin: found.root, generation }
    return this.#alone(keyOf(name, wanted), () => this.#link(wanted, found.manifest, confirmed, actor))
  }

  async #link(
    wanted: Omit<DevLink, 'agreed'>,
    manifest: Manifest,
    confirmed: string | undefined,
    actor: Actor,
  ): Promise<Instance> {
    const { name, workspace, origin } = wanted
    const key = keyOf(name, wanted)
    const at = placeOf({ name, key })
    const other = this.#linked.get(key)
    if (other && other.link.origin !== origin) {
      throw ExtensionErrors.extension_dev_taken(`${key} is already linked to ${other.link.origin}`, {
        next: command('extension remove', name, '--workspace', at),
      })
    }
    checkAgreed(manifest, [other?.link.agreed, confirmed], command('extension dev', origin, '--workspace', at))
    const link = { ...wanted, agreed: requirementDigest(manifest) }
    const { instance, close } = await this.#open(link)
    if (instance.problem && !instance.generation && !other) {
      this.#linked.delete(key)
      await close()
      throw instance.problem
    }
    const {
      db,
      clock,
      needs: { events },
    } = this.kernel
    await db.tx(t => {
      this.#table.put(t, link, clock.now())
      events.emit(t, ExtensionDevLinked, { name, workspace }, { actor, subject: name })
    })
    await this.host.tell()
    return instance
  }

  /**
   * Reloads and restarts a linked folder. If that fails and the last good generation keeps running, the returned
   * instance has the `problem`.
   * @throws Fault `extension_network_unconfirmed`, or the reason why nothing runs
   */
  async reload(instance: Instance, confirmed: string | undefined): Promise<Instance> {
    const { key, found } = instance
    const current = await this.catalog.read(found.root)
    if (current && !('fault' in current)) await this.#agree(key, current.manifest, confirmed)
    await this.refresh(key, true)
    if (instance.problem && !instance.generation) throw instance.problem
    return instance
  }

  /** Reads a linked folder again; a missing folder keeps the running generation. */
  async refresh(key: string, anew = false): Promise<void> {
    await this.#turns.run(key, async () => {
      const linked = this.#linked.get(key)
      const found = linked && (await this.catalog.read(linked.link.origin))
      if (found) await this.#take(linked, found, anew)
    })
    await this.host.tell()
  }

  /**
   * A reload by a saved file or a start must not agree to a new network requirement, so only the stored agreement
   * counts.
   */
  #take({ instance, link }: Linked, found: Found, anew: boolean): Promise<void> {
    return this.host.take(instance, found, anew, manifest => checkAgreed(manifest, [link.agreed], reloadOf(link)))
  }

  /** Stores the developer's agreement, for later reloads and starts. */
  async #agree(key: string, manifest: Manifest, confirmed: string | undefined): Promise<void> {
    const linked = this.#linked.get(key)
    if (!linked) return
    checkAgreed(manifest, [linked.link.agreed, confirmed], reloadOf(linked.link))
    const agreed = requirementDigest(manifest)
    if (agreed === '' || agreed === linked.link.agreed) return
    const link = { ...linked.link, agreed }
    await this.kernel.db.tx(t => this.#table.put(t, link, this.kernel.clock.now()))
    this.#linked.set(key, { ...linked, link })
  }

  /** Retries the failed links of that name, after a claim became free. */
  async retry(name: string): Promise<void> {
    for (const { key, problem } of this.of(name)) if (problem) await this.refresh(key)
  }

  /** Stops a link and removes it with its records; its folder stays. @returns that folder */
  unlink({ key }: Pick<Instance, 'key'>, actor: Actor): Promise<string | undefined> {
    return this.#alone(key, () => this.#unlink(key, actor))
  }

  async #unlink(key: string, actor: Actor): Promise<string | undefined> {
    const linked = this.#linked.get(key)
    if (!linked) return undefined
    const {
      db,
      needs: { events },
    } = this.kernel
    const { name, workspace, origin } = linked.link
    const forget = () =>
      db.tx(t => {
        this.#table.delete(t, linked.link)
        flags.delete(t, { name: key })
        events.emit(t, ExtensionDevUnlinked, { name, workspace }, { actor, subject: name })
      })
    // A disabled link has nothing to stop.
    if (!(await linked.instance.disable(forget))) await forget()
    this.#linked.delete(key)
    await linked.close()
    await this.host.forget(key)
    await this.retry(name)
    await this.host.tell()
    return origin
  }

  /** Id of a workspace; empty for all. @throws Fault of the workspaces */
  async workspaceOf(reference: string | undefined): Promise<string> {
    if (!reference || reference === EVERYWHERE) return ''
    const workspaces = this.kernel.needs.workspaces.current
    if (!workspaces) throw ExtensionErrors.extension_dev_invalid('this daemon has no workspaces')
    return (await workspaces.find(reference)).id
  }

  /** Serializes linking and unlinking of one key. */
  #alone<T>(key: string, work: () => Promise<T>): Promise<T> {
    return this.#turns.run(`link ${key}`, work)
  }

  async #open(link: DevLink): Promise<Linked> {
    const found = await this.catalog.read(link.origin)
    if (!found) throw ExtensionErrors.extension_dev_invalid(`there is no folder ${link.origin}`)
    const key = keyOf(link.name, link)
    const before = this.#linked.get(key)
    const linked = before ? { ...before, link } : this.#begin(link, this.host.make(link, found))
    this.#linked.set(key, linked)
    await this.#turns.run(key, () => this.#take(linked, found, false))
    if (!before) {
      await linked.watcher.start()
      // The watcher reports no changes from before it started.
      await this.refresh(key)
    }
    return linked
  }

  #begin(link: DevLink, instance: Instance): Linked {
    const { clock, log, scope } = this.kernel
    const { key } = instance
    const watcher = new Watcher({
      dir: link.origin,
      name: key,
      clock,
      changed: key => void this.refresh(key).catch(error => log.error(`${key}: ${messageOf(error)}`)),
      failed: error => log.warn(`the folder of ${key} is not watched: ${messageOf(error)}`),
    })
    return { instance, link, watcher, close: scope.defer(`watch ${key}`, () => watcher.close()) }
  }
}

/** The command that reads a link again. */
const reloadOf = ({ name, ...link }: DevLink) =>
  command('extension reload', name, '--workspace', placeOf({ name, key: keyOf(name, link) }))
