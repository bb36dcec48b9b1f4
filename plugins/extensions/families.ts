import { type Actor, type Kind, messageOf, type PluginKernel, type StoredRecord } from '../../kernel/plugin.js'
import {
  type InstalledExtension,
  ResourceFamilies,
  type ResourceFamily,
  type Shipment,
  type ShippedItem,
} from './api.js'
import { ExtensionErrors } from './errors.js'
import type { Manifest } from './manifest.js'

/** What each family read of one extension. */
export type Shipped = readonly { readonly family: ResourceFamily; readonly shipment: Shipment }[]

/** What extensions ship, from reading it to the records that tell of it: all of an extension in one transaction. */
export class Families {
  constructor(private readonly kernel: Pick<PluginKernel, 'db' | 'records' | 'collect'>) {}

  /** Has every family read its key; changes nothing. @throws what a family throws, or Fault `extension_manifest_invalid` */
  async read(extension: InstalledExtension): Promise<Shipped> {
    const used = new Set(shippedKeys(extension.manifest))
    const shipped: { family: ResourceFamily; shipment: Shipment }[] = []
    for (const family of this.#all()) {
      if (used.has(family.name)) shipped.push({ family, shipment: await family.load(extension) })
    }
    const seen = new Set<string>()
    for (const { kind, id, name } of itemsOf(shipped)) {
      const key = `${kind}/${id}`
      if (seen.has(key)) throw ExtensionErrors.extension_manifest_invalid(`${extension.name} has two ${kind} ${name}`)
      seen.add(key)
    }
    return shipped
  }

  /** Makes that what the daemon has of the extension: what is missing goes, what is equal keeps its version. */
  async publish({ name, workspace }: Pick<InstalledExtension, 'name' | 'workspace'>, shipped: Shipped): Promise<void> {
    const { db, records } = this.kernel
    const actor = actorOf(name)
    const scope = workspace === undefined ? { kind: 'global' as const } : { kind: 'workspace' as const, id: workspace }
    const wanted = shipped.flatMap(({ shipment }) => shipment.records ?? [])
    const keys = new Set(wanted.map(({ kind, id }) => `${kind.name}/${id}`))
    await db.tx(t => {
      for (const { kind, id } of this.#published(name)) {
        if (!keys.has(`${kind}/${id}`)) records.delete(t, actor, { kind, id })
      }
      for (const { kind, id, name: called, spec } of wanted) {
        const before = records.get(kind, id)
        if (before && before.source.id !== name) throw taken(kind, called, before)
        try {
          records.put(t, actor, { kind, id, scope, spec, quiet: true })
        } catch (error) {
          throw ExtensionErrors.extension_manifest_invalid(`${kind.name} ${called} of ${name}: ${messageOf(error)}`)
        }
      }
      for (const { shipment } of shipped) shipment.taken?.()
      for (const family of this.#all()) if (!shipped.some(one => one.family.name === family.name)) family.unload?.(name)
    })
  }

  /** Takes away all that an extension shipped. */
  withdraw(name: string): Promise<void> {
    return this.publish({ name }, [])
  }

  /** Takes away what was shipped by extensions that are loaded no longer: they went while no daemon ran, say. */
  async sweep(loaded: ReadonlySet<string>): Promise<void> {
    const all = this.#kinds().flatMap(kind => this.kernel.records.list({ kind }))
    const names = new Set(all.flatMap(({ source }) => (source.kind === 'extension' ? [source.id] : [])))
    for (const name of names) if (!loaded.has(name)) await this.withdraw(name)
  }

  #all(): ResourceFamily[] {
    return this.kernel.collect(ResourceFamilies).map(({ entry }) => entry)
  }

  #kinds(): Kind[] {
    return this.#all().flatMap(({ kinds = [] }) => kinds)
  }

  #published(name: string): StoredRecord[] {
    const kinds = new Set(this.#kinds().map(kind => kind.name))
    return this.kernel.records.list({ source: { kind: 'extension', id: name } }).filter(({ kind }) => kinds.has(kind))
  }
}

/** The daemon, on behalf of an extension. */
function actorOf(name: string): Actor {
  const party = { kind: 'extension', id: name }
  return { kind: 'daemon', id: 'extensions', owner: party, source: party }
}

function taken({ name }: Kind, called: string, { id, source }: StoredRecord) {
  return ExtensionErrors.extension_record_taken(`${name} ${called}: ${source.kind}/${source.id} has one as ${id}`)
}

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
