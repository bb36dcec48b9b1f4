import type { Fault } from '../../../../kernel/plugin.js'
import { messageOf, within } from '../../../../kernel/plugin.js'
import type { ReasonCode } from '../../../../schemas/tools.js'
import { type OfferedTool, type ToolBackend, ToolBackends, type ToolDescriptor, type ToolPlace } from '../api.js'
import type { K } from '../needs.js'
import { idProblem, isForeign, ownerOf } from './ids.js'
import { schemaProblem } from './schema-check.js'
import { SearchIndex } from './search.js'

/** Milliseconds for a backend to list its tools. */
const TELL_MS = 5000
/** Cached catalogs. */
const KEPT = 32
/** Places whose latest lists are cached. */
const MOST_PLACES = 256

/** A tool with its backend and availability. */
export interface Entry extends OfferedTool {
  readonly backend: ToolBackend
  /** Whether another tool has the same id: neither can be called. */
  readonly conflicted: boolean
}

/** The combined tools of one place. */
export class Catalog {
  readonly entries: readonly Entry[]
  readonly #byId: ReadonlyMap<string, Entry>
  #index: SearchIndex | undefined

  constructor(readonly parts: readonly Part[]) {
    const byId = new Map<string, Entry>()
    for (const { backend, tools } of parts) {
      for (const tool of tools) {
        const before = byId.get(tool.descriptor.id)
        byId.set(tool.descriptor.id, before ? conflicted(before, backend) : judged(tool, backend))
      }
    }
    this.#byId = byId
    this.entries = [...byId.values()].sort((a, b) => (a.descriptor.id < b.descriptor.id ? -1 : 1))
  }

  get(id: string): Entry | undefined {
    return this.#byId.get(id)
  }

  /** Entries by relevance, best first; all entries for an empty query. */
  find(query: string): readonly Entry[] {
    if (query.trim() === '') return this.entries
    this.#index ??= new SearchIndex(this.entries)
    return this.#index.find(query).map(at => this.entries[at] as Entry)
  }
}

interface Part {
  readonly backend: ToolBackend
  readonly tools: readonly OfferedTool[]
}

/** Combines the tools of all backends; the result for the same lists is cached. */
export class Catalogs {
  readonly #kept: Catalog[] = []
  /** By place, the lists that were read last. */
  readonly #latest = new Map<string, readonly Part[]>()

  constructor(
    private readonly kernel: K,
    private readonly own: readonly ToolBackend[],
  ) {}

  /** Waits a limited time for slow backends; resolves with the names of servers still missing. */
  async complete(scope: ToolPlace): Promise<readonly string[]> {
    return (await Promise.all(this.#backends().map(backend => backend.complete?.(scope) ?? []))).flat()
  }

  /** Why an unlisted tool may still exist. */
  async missing(id: string, scope: ToolPlace): Promise<Fault | undefined> {
    const faults = await Promise.all(this.#backends().map(backend => backend.missing?.(id, scope)))
    return faults.find(fault => fault !== undefined)
  }

  #backends(): readonly ToolBackend[] {
    return [...this.own, ...this.kernel.collect(ToolBackends).map(({ entry }) => entry)]
  }

  /**
   * The tools of a place.
   * @param id the only tool of interest: backends that do not own its prefix contribute the lists that were read last, because
   * reading the files of all MCP servers would take longer than the call of a native tool
   */
  async of(scope: ToolPlace, id?: string): Promise<Catalog> {
    const place = JSON.stringify([scope.workspaceId, scope.agentName, scope.sessionId])
    const owner = id === undefined ? undefined : ownerOf(id)
    const latest = owner === undefined ? undefined : this.#latest.get(place)
    const parts = await Promise.all(
      this.#backends().map(
        backend =>
          (backend.kind !== owner && latest?.find(part => part.backend === backend)) || this.#partOf(backend, scope),
      ),
    )
    if (this.#latest.size >= MOST_PLACES && !this.#latest.has(place)) this.#latest.clear()
    this.#latest.set(place, parts)
    const known = this.#kept.find(
      catalog =>
        catalog.parts.length === parts.length &&
        catalog.parts.every(({ backend, tools }, n) => backend === parts[n]?.backend && tools === parts[n]?.tools),
    )
    if (known) return known
    const catalog = new Catalog(parts)
    this.#kept.unshift(catalog)
    this.#kept.splice(KEPT)
    return catalog
  }

  async #partOf(backend: ToolBackend, scope: ToolPlace): Promise<Part> {
    try {
      return { backend, tools: await within(this.kernel.clock, TELL_MS, Promise.resolve(backend.tools(scope))) }
    } catch (error) {
      this.kernel.log.warn('a backend did not list its tools', { backend: backend.kind, error: messageOf(error) })
      return { backend, tools: NONE }
    }
  }
}

const NONE: readonly OfferedTool[] = []

/** Cached results of schema checks, which are the slowest step. */
const problems = new WeakMap<object, { readonly problem: string | undefined }>()

function problemOf({ inputSchema }: ToolDescriptor): string | undefined {
  const known = problems.get(inputSchema)
  if (known) return known.problem
  const problem = schemaProblem(inputSchema)
  problems.set(inputSchema, { problem })
  return problem
}

/** An entry with the registry's own objections before those of its backend. */
function judged(tool: OfferedTool, backend: ToolBackend): Entry {
  const { descriptor } = tool
  const id = idProblem(descriptor.id)
  const foreign: readonly ReasonCode[] =
    !id && isForeign(descriptor.id, descriptor.backend.kind) ? ['reserved_namespace'] : []
  const schema = problemOf(descriptor)
  const own: readonly ReasonCode[] = [...(id ? [id] : []), ...foreign, ...(schema ? (['schema_invalid'] as const) : [])]
  const why = schema === undefined ? tool.why : `its input schema cannot be used: ${schema}`
  return {
    descriptor,
    backend,
    conflicted: false,
    unavailable: [...own, ...(tool.unavailable ?? [])],
    ...(why === undefined ? {} : { why }),
  }
}

function conflicted(before: Entry, backend: ToolBackend): Entry {
  // Within the MCP backend, different names can map to one id; across backends, both ids were given.
  const reason = before.backend === backend && backend.kind === 'mcp' ? 'conflicted_sanitized_name' : 'conflicted_id'
  return { ...before, conflicted: true, unavailable: [reason], why: 'two tools have this id' }
}
