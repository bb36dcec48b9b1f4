import { command } from '../../../kernel/kit/commands/command-line.js'
import type { Actor, Batch, Fault, StoredRecord } from '../../../kernel/plugin.js'
import type {
  BundleActivation,
  BundleActivationPatch,
  BundleActivationRequest,
  BundleCatalogReply,
  BundleNetworkReply,
} from '../../../schemas/bundles.js'
import type { DeclaredChannel } from '../../../schemas/network.js'
import { isElsewhere } from '../../desk/workspaces/api.js'
import type { ResourceFamily } from '../extensions/api.js'
import { Activations, notFound } from './activations.js'
import type { BundlesApi } from './api.js'
import { BundleCatalog } from './catalog.js'
import { BundleErrors } from './errors.js'
import { ActivationKind, type ActivationSpec, BundleKind, type BundleSpec } from './kinds.js'
import type { K } from './needs.js'
import { catalogToWire, channelsOf } from './view.js'

/** Bundles: presets of agents, jobs, triggers, layouts and bridges that extensions provide. */
export class BundlesService implements BundlesApi {
  readonly #catalog: BundleCatalog
  readonly #activations: Activations
  /** Ids of activations that wait for their extension to load, with its name. */
  readonly #waiting = new Map<string, string>()

  constructor(private readonly kernel: K) {
    this.#catalog = new BundleCatalog(kernel)
    this.#activations = new Activations(kernel, this.#catalog)
  }

  /** The family that reads bundles of extensions. */
  family(): ResourceFamily {
    return {
      name: 'bundles',
      kinds: [BundleKind],
      load: async extension => {
        const shipment = await this.#catalog.load(extension)
        return { ...shipment, automationStarting: this.#activations.starting(shipment.bundles) }
      },
      unload: key => this.#catalog.unload(key),
    }
  }

  /** Resolves when the bundles of all extensions have been read, at most 5 s after the start. */
  settled(): Promise<void> {
    return this.kernel.needs.extensions.settled()
  }

  /** Projects activations whose extension has finished loading or does not exist. */
  extensionsChanged(): void {
    const due = [...this.#waiting].filter(([, name]) => !this.kernel.needs.extensions.isLoading(name))
    for (const [id] of due) this.#waiting.delete(id)
    this.kernel.needs.reconcile.mark(due.map(([id]) => ({ kind: ActivationKind.name, id })))
  }

  /** Refuses to remove an extension while activations depend on it. */
  async disabling(extension: string): Promise<Fault | undefined> {
    const key = extension.toLowerCase()
    const ids = this.#activations
      .list()
      .flatMap(({ id, spec }) => (spec.extension_name.toLowerCase() === key ? [id] : []))
    const [first] = ids
    if (first === undefined) return undefined
    return BundleErrors.bundle_in_use(`activations depend on extension ${extension}: ${ids.join(', ')}`, {
      details: { activations: ids.join(', ') },
      next: command('bundle deactivate', first),
    })
  }

  /** Activations of a bundle, by its record. */
  activationsOf({ spec }: StoredRecord<BundleSpec>): string[] {
    const names = ({ extension_name, bundle_name }: BundleSpec | ActivationSpec) =>
      `${extension_name}\n${bundle_name}`.toLowerCase()
    return this.#activations.list().flatMap(record => (names(record.spec) === names(spec) ? [record.id] : []))
  }

  /** Projects activations one by one, so that a conflict affects only its own activation. */
  async reconcile({ records, removed, fail }: Batch<ActivationSpec>): Promise<void> {
    if (removed.length > 0) await this.#activations.forget(removed)
    for (const { id, spec } of records) {
      const extension = spec.extension_name.trim().toLowerCase()
      // Extensions load after the boot: a missing one is final only then.
      if (!this.#activations.found(spec) && this.kernel.needs.extensions.isLoading(extension)) {
        this.#waiting.set(id, extension)
      } else await this.#activations.follow(id).catch(error => fail(id, error))
    }
  }

  async shown(): Promise<BundleCatalogReply['bundles']> {
    await this.settled()
    return this.catalog().bundles
  }

  catalog(): BundleCatalogReply {
    return catalogToWire(this.#catalog.all())
  }

  preview(request: BundleActivationRequest, actor: Actor): Promise<BundleActivation> {
    return this.#activations.preview(request, actor)
  }

  activate(request: BundleActivationRequest, actor: Actor): Promise<BundleActivation> {
    return this.#activations.activate(request, actor)
  }

  async update(id: string, patch: BundleActivationPatch, actor: Actor): Promise<BundleActivation> {
    this.#checkHere(id, actor)
    return this.#activations.update(id, patch, actor)
  }

  async deactivate(id: string, actor: Actor): Promise<void> {
    this.#checkHere(id, actor)
    return this.#activations.remove(id, actor)
  }

  get(id: string, actor: Actor): BundleActivation {
    this.#checkHere(id, actor)
    return this.#activations.view(this.#activations.get(id))
  }

  /** Throws `bundle_activation_not_found` for an activation outside the caller's workspace. */
  #checkHere(id: string, actor: Actor): void {
    const record = this.kernel.records.get(ActivationKind.name, id)
    if (record && isElsewhere(actor, record.scope)) throw notFound(id)
  }

  /** The activations that the caller may see: global ones, and those of its workspace. */
  list(actor: Actor): BundleActivation[] {
    const here = this.#activations.list().filter(({ scope }) => !isElsewhere(actor, scope))
    return here.map(record => this.#activations.view(record))
  }

  /** Channels that active profiles declare, by extension, bundle, profile and name. A declaration alone makes no session take part. */
  declaredChannels(): DeclaredChannel[] {
    return this.#activations
      .list()
      .flatMap(({ id, spec, scope }) => {
        const profile = this.#activations.found(spec)?.profile
        const { extension_name, bundle_name, profile_name } = spec
        const where = scope.id === undefined ? {} : { workspace_id: scope.id }
        const from = { activation_id: id, extension_name, bundle_name, profile_name, ...where }
        return profile ? channelsOf(profile).map(channel => ({ ...channel, ...from })) : []
      })
      .map(channel => ({
        channel,
        key: [channel.extension_name, channel.bundle_name, channel.profile_name, channel.name].join('\n'),
      }))
      .sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
      .map(({ channel }) => channel)
  }

  networkSettings(): BundleNetworkReply {
    return { network: { declared_channels: this.declaredChannels() } }
  }
}
