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
import { type Manifest, publishFamilies } from '../manifest/manifest.js'
import { secretReference } from '../secret-path.js'
import { askedFor } from '../subprocess/environment.js'
import { Snapshots } from '../subprocess/snapshots.js'

/** Kinds of records that processes publish by themselves. */
const PROCESS_KINDS: readonly string[] = Object.values(publishFamilies)

/** What each family read of one extension. */
export type Shipped = readonly {
  readonly family: ResourceFamily
  /** Plugin that has the family. */
  readonly owner: string
  readonly shipment: Shipment
}[]

/** Of what is published: an extension as it is loaded, or the key alone of one that is loaded no longer. */
type Publisher = Pick<InstalledExtension, 'key' | 'name'> & Partial<Pick<InstalledExtension, 'workspace' | 'manifest'>>

/** What extensions ship, from reading it to the records that tell of it: all of an extension in one transaction. */
export class Families {
  constructor(
    private readonly kernel: Pick<PluginKernel, 'db' | 'records' | 'collect'>,
    /** Throws where an extension brings more than it may. */
    private readonly judge: (extension: InstalledExtension, brought: readonly Brought[]) => void = () => {},
  ) {}

  /**
   * Has every family read its key; changes nothing.
   * @throws what a family throws, or Fault `extension_manifest_invalid`, `extension_consent_required`
   */
  async read(extension: InstalledExtension): Promise<Shipped> {
    const shipped = await this.#read(extension)
    this.judge(extension, broughtBy(extension, shipped))
    return shipped
  }

  /** Everything that an extension brings, whether or not it may. @throws like {@link read} */
  async brought(extension: InstalledExtension): Promise<Brought[]> {
    return broughtBy(extension, await this.#read(extension))
  }

  async #read(extension: InstalledExtension): Promise<Shipped> {
    const used = new Set(shippedKeys(extension.manifest))
    const shipped: Shipped[number][] = []
    // A family may come while another one reads: without what it reads its records would be deleted.
    const next = () =>
      this.#all().find(({ entry }) => used.has(entry.name) && !shipped.some(one => one.family.name === entry.name))
    for (let one = next(); one; one = next())
      shipped.push({ owner: one.owner, family: one.entry, shipment: judged(await one.entry.load(extension)) })
    const seen = new Set<string>()
    for (const { kind, id, name } of itemsOf(shipped)) {
      const key = `${kind}/${id}`
      if (seen.has(key)) throw ExtensionErrors.extension_manifest_invalid(`${extension.name} has two ${kind} ${name}`)
      seen.add(key)
    }
    return shipped
  }

  /** Whether a plugin reads something of what that extension ships, or has read it. */
  concerns(owner: string, { manifest }: Pick<InstalledExtension, 'manifest'>, shipped: Shipped): boolean {
    const used = shippedKeys(manifest)
    const reads = this.#all().some(({ owner: by, entry }) => by === owner && used.includes(entry.name))
    return reads || shipped.some(({ owner: by }) => by === owner)
  }

  /** Makes that what the daemon has of the extension: what is missing goes, what is equal keeps its version. */
  async publish(extension: Publisher, shipped: Shipped): Promise<void> {
    const { db, records } = this.kernel
    const { key, name, workspace } = extension
    const actor = actorOf(key)
    const scope = workspace === undefined ? { kind: 'global' as const } : { kind: 'workspace' as const, id: workspace }
    await db.tx(t => {
      // A plugin that went since it read takes its schema with it: its records wait raw, and are not written.
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
          // A link has it since it last ran; it gives way to what is installed.
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

  /** Takes away what its process published of families that the manifest names no longer. */
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

  /** Takes away all that an extension shipped; what its process published stays. */
  withdraw({ key, name }: Pick<InstalledExtension, 'key' | 'name'>): Promise<void> {
    return this.publish({ key, name }, [])
  }

  /** Takes away all that came from there, what its process published as well. */
  forget(key: string): Promise<void> {
    return this.kernel.db.tx(t => new Snapshots(this.kernel).reset(t, actorOf(key), partyOf(key)))
  }

  /**
   * Takes away what was shipped by extensions that are loaded no longer: they went while no daemon ran, say.
   * @param linked keys of links; of any other link nothing stays
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
   * Records of an extension that are there only as long as it ships them: not those that its process publishes. What nobody
   * reads now waits raw, like every record whose plugin is gone.
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

/** The daemon, on behalf of an extension. */
function actorOf(key: string): Actor {
  const party = partyOf(key)
  return { kind: 'daemon', id: 'extensions', owner: party, source: party }
}

function taken({ name }: Kind, called: string, { id, source }: StoredRecord) {
  return ExtensionErrors.extension_record_taken(`${name} ${called}: ${source.kind}/${source.id} has one as ${id}`)
}

/** The one list of all that runs, is reached and is given something, from which previews and loads are judged. */
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

/** A record that its kind refuses is left out; a hook that is required is not, because it guards something. */
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

/** Entries of an extension that cannot be used. */
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

/** What a manifest has something of: keys below `[resources]`, and `tools`. What it may publish later is none of that. */
export function shippedKeys({ resources: { publish: _, ...resources }, tools }: Manifest): string[] {
  return Object.entries({ ...resources, tools }).flatMap(([key, value]) => (Object.keys(value).length > 0 ? [key] : []))
}
