import * as v from 'valibot'
import { issueText } from '../../../../kernel/kit/issue-text.js'
import {
  type Actor,
  type Contribution,
  type Kind,
  messageOf,
  type Party,
  type PluginKernel,
  type StoredRecord,
} from '../../../../kernel/plugin.js'
import type { SubprocessHostApi } from '../../subprocess-host/api.js'
import {
  type InstalledExtension,
  ResourceFamilies,
  type ResourceFamily,
  type Shipment,
  type ShippedItem,
} from '../api.js'
import { type Brought, broughtNetwork, broughtProcess, broughtPublication, unhidden } from '../consent/brought.js'
import { ExtensionErrors } from '../errors.js'
import { isLink, isLinkOf } from '../identity.js'
import { askedFor, type Manifest, publishFamilies } from '../manifest/manifest.js'
import { secretReference } from '../secret-path.js'

/** Kinds of records that processes publish themselves. */
const PROCESS_KINDS: readonly string[] = Object.values(publishFamilies)

/** Shipments of one extension by family. */
export type Shipped = readonly {
  readonly family: ResourceFamily
  /** Plugin that contributes the family. */
  readonly owner: string
  readonly shipment: Shipment
}[]

/** The publisher of records: a loaded extension, or only the key of an unloaded one. */
type Publisher = Pick<InstalledExtension, 'key' | 'name'> & Partial<Pick<InstalledExtension, 'workspace' | 'manifest'>>

/** Reads what extensions ship and publishes their records: those of one extension in one transaction. */
export class Families {
  constructor(
    private readonly kernel: Pick<PluginKernel, 'db' | 'records' | 'collect'>,
    private readonly host: {
      /** Throws if an extension brings more than it may. */
      readonly judge?: (extension: InstalledExtension, brought: readonly Brought[]) => void
      /** Deletes all records of a source. */
      readonly reset?: SubprocessHostApi['reset']
    } = {},
  ) {}

  /**
   * Reads the extension with every family; has no side effects.
   * @throws what a family throws, or Fault `extension_manifest_invalid`, `extension_consent_required`
   */
  async read(extension: InstalledExtension): Promise<Shipped> {
    const shipped = await this.#read(extension)
    this.host.judge?.(extension, broughtBy(extension, shipped))
    return shipped
  }

  /** Everything that an extension brings, allowed or not. @throws like {@link read} */
  async brought(extension: InstalledExtension): Promise<Brought[]> {
    return broughtBy(extension, await this.#read(extension))
  }

  async #read(extension: InstalledExtension): Promise<Shipped> {
    const used = new Set(shippedKeys(extension.manifest))
    const shipped: Shipped[number][] = []
    // A family can be registered while another one reads; a family that is skipped would lose its records.
    const next = () =>
      this.#all().find(({ entry }) => used.has(entry.name) && !shipped.some(one => one.family.name === entry.name))
    for (let one = next(); one; one = next())
      shipped.push({ owner: one.owner, family: one.entry, shipment: judged(await one.entry.load(extension)) })
    const knownKeys = new Set<string>()
    for (const { kind, id, name } of itemsOf(shipped)) {
      const key = `${kind}/${id}`
      if (knownKeys.has(key))
        throw ExtensionErrors.extension_manifest_invalid(`${extension.name} has two ${kind} ${name}`)
      knownKeys.add(key)
    }
    return shipped
  }

  /** Whether a plugin has, or had, a family for items of that extension. */
  concerns(owner: string, { manifest }: Pick<InstalledExtension, 'manifest'>, shipped: Shipped): boolean {
    const used = shippedKeys(manifest)
    const reads = this.#all().some(({ owner: by, entry }) => by === owner && used.includes(entry.name))
    return reads || shipped.some(({ owner: by }) => by === owner)
  }

  /**
   * Publishes the shipped records as the complete set of the extension: missing ones are deleted, equal ones keep their
   * version.
   */
  async publish(extension: Publisher, shipped: Shipped): Promise<void> {
    const { db, records } = this.kernel
    const { key, name, workspace } = extension
    const actor = actorOf(key)
    const scope = workspace === undefined ? { kind: 'global' as const } : { kind: 'workspace' as const, id: workspace }
    await db.tx(t => {
      // The schema of a plugin that was removed since the read is gone: its records stay as stored and are not written.
      const there = new Set(this.#all().map(({ entry }) => entry.name))
      const wanted = shipped.flatMap(({ family, shipment }) => (there.has(family.name) ? (shipment.records ?? []) : []))
      const keys = new Set(wanted.map(({ kind, id }) => `${kind.name}/${id}`))
      for (const { kind, id } of this.#published(extension)) {
        if (!keys.has(`${kind}/${id}`)) records.delete(t, actor, { kind, id })
      }
      for (const { kind, id, name: called, spec } of wanted) {
        const before = records.get(kind, id)
        if (before && !isFrom(before, key)) {
          if (key !== name || !isFromLinkOf(before, name)) throw taken(kind, called, before)
          // The record is left from a link's last run; the installed extension takes precedence.
          records.delete(t, actorOf(before.source.id), { kind, id })
        }
        try {
          records.put(t, actor, { kind, id, scope, spec, quiet: true })
        } catch (error) {
          throw ExtensionErrors.extension_manifest_invalid(`${kind.name} ${called} of ${name}: ${messageOf(error)}`)
        }
      }
      for (const { shipment } of shipped) shipment.taken?.()
      for (const { entry: family } of this.#all()) {
        if (!shipped.some(one => one.family.name === family.name)) family.unload?.(key)
      }
    })
  }

  /** Records that the process of an extension has published. */
  publishedBy(key: string): ShippedItem[] {
    const all = this.kernel.records.list({ source: partyOf(key) })
    return all.flatMap(({ kind, id }) => (PROCESS_KINDS.includes(kind) ? [{ kind, id, name: id, live: true }] : []))
  }

  /** Removes records that the extension's process published for families that its manifest does not name. */
  async retract({ key, manifest }: InstalledExtension): Promise<void> {
    const { db, records } = this.kernel
    const granted: readonly string[] = (manifest.resources.publish?.families ?? []).map(one => publishFamilies[one])
    const all = records.list({ source: partyOf(key) })
    const spent = all.filter(({ kind }) => PROCESS_KINDS.includes(kind) && !granted.includes(kind))
    if (spent.length === 0) return
    await db.tx(t => {
      for (const { kind, id } of spent) records.delete(t, actorOf(key), { kind, id })
    })
  }

  /** Removes all shipped records of an extension; records published by its process stay. */
  withdraw({ key, name }: Pick<InstalledExtension, 'key' | 'name'>): Promise<void> {
    return this.publish({ key, name }, [])
  }

  /** Removes all records of a source, including those published by its process. */
  forget(key: string): Promise<void> {
    return this.kernel.db.tx(t => this.host.reset?.(t, actorOf(key), partyOf(key)))
  }

  /**
   * Removes shipped records of extensions that are no longer loaded, for example because they were removed while no
   * daemon ran.
   * @param linked keys of links; all records of other links are removed
   */
  async sweep(loaded: ReadonlySet<string>, linked: readonly string[]): Promise<void> {
    for (const key of this.kernel.records.sources('extension')) {
      if (isLink(key) && !linked.includes(key)) await this.forget(key)
      else if (!loaded.has(key)) await this.withdraw({ key, name: key })
    }
  }

  #all(): readonly Contribution<ResourceFamily>[] {
    return this.kernel.collect(ResourceFamilies)
  }

  /**
   * Records that exist only while the extension ships them, without those that its process publishes. Records without a
   * registered family stay as stored, like all records of a missing plugin.
   */
  #published({ key, manifest }: Publisher): StoredRecord[] {
    const families = this.#all().map(({ entry }) => entry)
    const read = new Set(families.flatMap(({ kinds = [] }) => kinds.map(kind => kind.name)))
    const waits = manifest && shippedKeys(manifest).some(used => !families.some(({ name }) => name === used))
    return this.kernel.records
      .list({ source: partyOf(key) })
      .filter(({ kind }) => !PROCESS_KINDS.includes(kind) && (read.has(kind) || !waits))
  }
}

const partyOf = (key: string): Party => ({ kind: 'extension', id: key })
const isFrom = ({ source: { kind, id } }: StoredRecord, key: string) => kind === 'extension' && id === key
const isFromLinkOf = ({ source: { kind, id } }: StoredRecord, name: string) =>
  kind === 'extension' && isLinkOf(id, name)

/** The daemon as actor for an extension. */
function actorOf(key: string): Actor {
  const party = partyOf(key)
  return { kind: 'daemon', id: 'extensions', owner: party, source: party }
}

function taken({ name }: Kind, called: string, { id, source }: StoredRecord) {
  return ExtensionErrors.extension_record_taken(`${name} ${called}: ${source.kind}/${source.id} has one as ${id}`)
}

/**
 * The complete list for consent: what runs, what is reached and what receives secrets. Previews and loads use the same
 * list.
 */
function broughtBy({ name, key, manifest }: InstalledExtension, shipped: Shipped): Brought[] {
  const { subprocess, permissions, capabilities, resources, network_participation: net } = manifest
  const asksFor = askedFor(manifest).map(variable => secretReference({ name, key }, variable))
  return [
    ...broughtProcess(name, {
      subprocess,
      permissions: permissions.requires,
      provides: capabilities.provides,
      asksFor,
    }),
    ...broughtPublication(resources.publish),
    ...broughtNetwork(net),
    ...shipped.flatMap(({ shipment }) => shipment.brings),
  ].map(unhidden)
}

/** Leaves out records with an invalid spec, but not a required hook, which guards something and must fail the load. */
function judged(shipment: Shipment): Shipment {
  const leftOut = [...(shipment.leftOut ?? [])]
  const records = shipment.records?.filter(({ kind, name, spec }) => {
    const decoded = v.safeParse(kind.spec, spec)
    if (decoded.success || Object(spec).required === true) return true
    const [issue] = decoded.issues
    const member = v.getDotPath(issue)
    leftOut.push(`${kind.name} ${name}: ${member === null ? '' : `${member}: `}${issueText(issue)}`)
    return false
  })
  return { ...shipment, ...(records && { records }), ...(leftOut.length > 0 && { leftOut }) }
}

/** Unusable entries of an extension. */
export const leftOutOf = ({ manifest, shipped }: { manifest: Manifest; shipped: Shipped }): readonly string[] => [
  ...(manifest.leftOut ?? []),
  ...shipped.flatMap(({ shipment }) => shipment.leftOut ?? []),
]

export function itemsOf(shipped: Shipped): ShippedItem[] {
  return shipped.flatMap(({ shipment: { items = [], records = [] } }) => [
    ...items,
    ...records.map(({ kind, id, name }) => ({ kind: kind.name, id, name, live: true })),
  ])
}

/** Non-empty keys below `[resources]`, and `tools`. `publish` is excluded: it only permits later records. */
export function shippedKeys({ resources: { publish: _, ...resources }, tools }: Manifest): string[] {
  return Object.entries({ ...resources, tools }).flatMap(([key, value]) => (Object.keys(value).length > 0 ? [key] : []))
}
