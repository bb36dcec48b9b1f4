import type { AgentDefinition } from '../api.js'
import { mapInTurns } from '../turns.js'
import type { AgentFolder, Found } from './files.js'

/** Somewhere definitions come from: a folder, the records of a scope, the daemon itself. */
export interface Source {
  /** Changes with every change of what is found. */
  readonly version: number
  /** Absent where there is no folder. */
  readonly where?: AgentFolder
  /** Looks whether something changed. */
  refresh(): Promise<void>
  /** What was found by the last look; a fault of the source itself has the name ''. */
  found(): Iterable<Found>
  /** One name, looked at now. */
  read(name: string): Promise<Found | undefined>
}

export type Broken = Found & { readonly ok: false }

/** A definition with what the catalog searches. */
export interface Listed {
  readonly definition: AgentDefinition
  /** Joined by slashes. */
  readonly category: string
  /** Name and category in lower case. */
  readonly text: string
}

export interface Listing {
  /** Sorted by name. */
  readonly agents: readonly Listed[]
  /** Of all of them, sorted. */
  readonly categories: readonly string[]
  readonly broken: readonly Broken[]
}

/** Definitions that are merged in one turn of the event loop. */
const AT_ONCE = 1024

/**
 * What is visible over several sources. The first definition of a name wins, valid or not: an invalid one does not uncover
 * another with the same name. Merged again only after a source changed.
 */
export class View {
  #merged: { readonly versions: string; readonly listing: Promise<Listing> } | undefined

  constructor(private readonly sources: readonly Source[]) {}

  async listing(): Promise<Listing> {
    await Promise.all(this.sources.map(source => source.refresh()))
    const versions = this.sources.map(source => source.version).join(' ')
    if (this.#merged?.versions !== versions) this.#merged = { versions, listing: this.#merge() }
    return this.#merged.listing
  }

  /** The one of that name that counts, and where it lies; looked at now. */
  async first(name: string): Promise<{ readonly found: Found; readonly where: AgentFolder | undefined } | undefined> {
    for (const source of this.sources) {
      const found = await source.read(name)
      if (found) return { found, where: source.where }
    }
    return undefined
  }

  async #merge(): Promise<Listing> {
    const seen = new Set<string>()
    const agents: Listed[] = []
    const broken: Broken[] = []
    // All sources at one moment: what changes while they are gone through is a later version.
    const all = this.sources.flatMap(source => [...source.found()])
    await mapInTurns(all, AT_ONCE, found => {
      if (seen.has(found.name)) return
      if (found.name !== '') seen.add(found.name)
      if (found.ok) agents.push(listed(found.definition))
      else broken.push(found)
    })
    return { agents: agents.sort(byName), categories: categoriesOf(agents), broken }
  }
}

function listed(definition: AgentDefinition): Listed {
  const category = definition.categoryPath.join('/')
  return { definition, category, text: `${definition.name}\n${category}`.toLowerCase() }
}

/** Categories of rows, each once, sorted. */
export function categoriesOf(rows: readonly Listed[]): string[] {
  return [...new Set(rows.map(row => row.category))].filter(category => category !== '').sort()
}

const byName = (a: Listed, b: Listed) => (a.definition.name < b.definition.name ? -1 : 1)

/** A fixed definition. */
export function fixedSource(definition: AgentDefinition): Source {
  const found: Found = { ok: true, name: definition.name, path: '', definition }
  return {
    version: 0,
    refresh: async () => {},
    found: () => [found],
    read: async name => (name === definition.name ? found : undefined),
  }
}
