import type { AgentDefinition } from '../api.js'
import { mapInTurns } from '../turns.js'
import type { AgentFolder, Found } from './files.js'

/** A source of definitions: a folder, the records of a scope, or the daemon itself. */
export interface Source {
  /** Changes with every change of the results. */
  readonly version: number
  /** Absent for sources without a folder. */
  readonly where?: AgentFolder
  /** Checks for changes. */
  refresh(): Promise<void>
  /** Results of the last check; a problem of the source itself has the name ''. */
  found(): Iterable<Found>
  /** Checks and returns one name. */
  read(name: string): Promise<Found | undefined>
}

export type Broken = Found & { readonly ok: false }

/** A definition with its searchable text. */
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
  /** Categories of all agents, sorted. */
  readonly categories: readonly string[]
  readonly broken: readonly Broken[]
}

/** Definitions merged per event loop turn. */
const AT_ONCE = 1024

/**
 * The visible definitions of several sources. The first definition of a name wins, even if invalid: it does not uncover
 * another one. Merged again only after a source changed.
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

  /** Checks and returns the effective definition of a name with its place. */
  async first(name: string): Promise<{ readonly found: Found; readonly where: AgentFolder | undefined } | undefined> {
    for (const source of this.sources) {
      const found = await source.read(name)
      if (found) return { found, where: source.where }
    }
    return undefined
  }

  async #merge(): Promise<Listing> {
    const knownNames = new Set<string>()
    const agents: Listed[] = []
    const broken: Broken[] = []
    // A snapshot of all sources: changes during the merge get a later version.
    const all = this.sources.flatMap(source => [...source.found()])
    await mapInTurns(all, AT_ONCE, found => {
      if (knownNames.has(found.name)) return
      if (found.name !== '') knownNames.add(found.name)
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

/** Distinct categories of rows, sorted. */
export function categoriesOf(rows: readonly Listed[]): string[] {
  return [...new Set(rows.map(row => row.category))].filter(category => category !== '').sort()
}

const byName = (a: Listed, b: Listed) => (a.definition.name < b.definition.name ? -1 : 1)

/** A source with one constant definition. */
export function fixedSource(definition: AgentDefinition): Source {
  const found: Found = { ok: true, name: definition.name, path: '', definition }
  return {
    version: 0,
    refresh: async () => {},
    found: () => [found],
    read: async name => (name === definition.name ? found : undefined),
  }
}
