import type { Actor, PluginKernel, Tx } from '../../kernel/plugin.js'
import type { Extensions, InstalledExtension, ShippedItem } from '../extensions/api.js'
import { BundleErrors } from './errors.js'
import { BundleKind, type BundleSpec } from './kinds.js'
import { type LoadedBundle, type LoadedProfile, loadBundles } from './load.js'
import type { BundleProblem } from './manifest.js'

type Kernel = Pick<PluginKernel<{ extensions: typeof Extensions }>, 'db' | 'records' | 'reconcile' | 'needs'>

/** Problems that one error names. */
const SHOWN = 50

/** The bundles of all loaded extensions, each with a record that tells of it. */
export class BundleCatalog {
  readonly #byExtension = new Map<string, readonly LoadedBundle[]>()

  constructor(private readonly kernel: Kernel) {}

  /** By extension, then name. */
  all(): LoadedBundle[] {
    const bundles = [...this.#byExtension.values()].flat()
    return bundles.sort((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1))
  }

  /**
   * Names are looked up whatever their case.
   * @throws Fault 404 `bundle_extension_not_found`, `bundle_not_found`, `bundle_profile_not_found`
   */
  find(names: { extension_name: string; bundle_name: string; profile_name: string }): {
    readonly bundle: LoadedBundle
    readonly profile: LoadedProfile
  } {
    const { extension_name, bundle_name, profile_name } = names
    const bundles = this.#byExtension.get(extension_name.trim().toLowerCase())
    if (!bundles) throw this.#noExtension(extension_name)
    const bundle = byName(bundles, bundle_name)
    if (!bundle)
      throw BundleErrors.bundle_not_found(`extension ${shown(extension_name)} has no bundle ${shown(bundle_name)}`)
    const profile = byName(bundle.profiles, profile_name)
    if (profile) return { bundle, profile }
    const known = bundle.profiles.map(({ name }) => name).join(', ')
    throw BundleErrors.bundle_profile_not_found(
      `bundle ${bundle.name} has no profile ${shown(profile_name)}; it has ${known}`,
    )
  }

  /** Reads the bundles of an extension and publishes them. Throws `bundle_invalid`, and what was loaded before stays. */
  async load(extension: InstalledExtension): Promise<readonly ShippedItem[]> {
    const { bundles, problems } = await loadBundles(extension)
    if (problems.length > 0) throw invalid(extension.name, problems)
    this.#byExtension.set(extension.name, bundles)
    await this.#publish(extension.name, bundles)
    return bundles.map(({ id, name }) => ({ kind: BundleKind.name, id, name, live: true }))
  }

  /** The extension is loaded no longer; what activations of its bundles projected stays. */
  async unload(extension: string): Promise<void> {
    this.#byExtension.delete(extension)
    await this.#publish(extension, [])
  }

  /** Drops what extensions do not have any more: some went while no daemon ran, others have no bundles since a change. */
  async sweep(): Promise<void> {
    const having = new Set(
      this.kernel.needs.extensions
        .installed()
        .flatMap(({ name, enabled, manifest }) => (enabled && manifest.resources.bundles.length > 0 ? [name] : [])),
    )
    const published = this.kernel.records.list({ kind: BundleKind }).filter(({ source }) => source.kind === 'extension')
    const known = new Set([...this.#byExtension.keys(), ...published.map(({ source }) => source.id)])
    for (const name of known) if (!having.has(name)) await this.unload(name)
  }

  /** Makes the records of an extension's bundles those given; activations of each are looked at anew. */
  async #publish(extension: string, bundles: readonly LoadedBundle[]): Promise<void> {
    const { db, records, reconcile } = this.kernel
    const party = { kind: 'extension', id: extension }
    const actor: Actor = { kind: 'daemon', id: 'bundles', owner: party, source: party }
    const wanted = new Set(bundles.map(({ id }) => id))
    await db.tx((t: Tx) => {
      for (const { id } of records.list({ kind: BundleKind, source: party }))
        if (!wanted.has(id)) records.delete(t, actor, { kind: BundleKind, id })
      for (const bundle of bundles) {
        const write = { kind: BundleKind, id: bundle.id, scope: { kind: 'global' as const }, spec: specOf(bundle) }
        records.put(t, actor, { ...write, quiet: true })
      }
    })
    // An equal record marks nothing, but it is the first time that this daemon has its content.
    reconcile.mark(bundles.map(({ id }) => ({ kind: BundleKind.name, id })))
  }

  #noExtension(name: string) {
    const found = this.kernel.needs.extensions.installed().find(other => other.name === name.trim().toLowerCase())
    if (!found) return BundleErrors.bundle_extension_not_found(`there is no extension ${shown(name)}`)
    return found.enabled
      ? BundleErrors.bundle_extension_not_found(`extension ${found.name} is ${found.state} and has no bundles now`, {
          next: 'svc extension list',
        })
      : BundleErrors.bundle_extension_not_found(`extension ${found.name} is disabled`, {
          next: `svc extension enable ${found.name}`,
        })
  }
}

const orderOf = ({ extension, name }: LoadedBundle) => `${extension}\n${name}`
const shown = (text: string) => JSON.stringify(text.slice(0, 80))

function byName<T extends { readonly name: string }>(items: readonly T[], name: string): T | undefined {
  const key = name.trim().toLowerCase()
  return items.find(item => item.name.toLowerCase() === key)
}

function specOf(bundle: LoadedBundle): BundleSpec {
  const names = (items: readonly { readonly name: string }[]) => items.map(({ name }) => name)
  return {
    extension_name: bundle.extension,
    extension_version: bundle.version,
    bundle_name: bundle.name,
    ...(bundle.description === undefined ? {} : { description: bundle.description }),
    network_requirement_digest: bundle.requirement,
    profiles: bundle.profiles.map(profile => ({
      name: profile.name,
      ...(profile.description === undefined ? {} : { description: profile.description }),
      content_hash: profile.hash,
      channels: profile.channels.map(channel => ({ ...channel })),
      ...(profile.primaryChannel === undefined ? {} : { primary_channel: profile.primaryChannel }),
      agents: profile.agents.map(({ spec }) => spec.name),
      layouts: profile.layouts.map(({ id }) => id),
      jobs: names(profile.jobs),
      triggers: names(profile.triggers),
      bridges: names(profile.bridges),
    })),
  }
}

/** One error that names every problem: the first in its text, all by file and key in its details. */
function invalid(extension: string, problems: readonly BundleProblem[]) {
  const lines = problems.map(({ file, key, message }) => [[file, key].filter(Boolean).join(': '), message] as const)
  const [[where, what] = ['', '']] = lines
  const more = lines.length > 1 ? ` (and ${lines.length - 1} more)` : ''
  return BundleErrors.bundle_invalid(`the bundles of extension ${extension} are not valid: ${where}: ${what}${more}`, {
    details: Object.fromEntries(lines.slice(0, SHOWN)),
    next: 'svc extension list',
  })
}
